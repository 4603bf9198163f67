"""``wiredump sql``: a query in SQL about tables or captures."""

from __future__ import annotations

from datetime import tzinfo

import click

from wiredump.cli.answering import SourceOptions, answering_options, print_answer, put

__all__ = ["sql_command"]


@click.command("sql")
@click.argument("sources", nargs=-1, required=True, metavar="TABLES|CAPTURE...")
@click.argument("query")
@answering_options
def sql_command(
    sources: tuple[str, ...],
    query: str,
    form: str,
    dialect_name: str,
    ports: tuple[int, ...],
    jobs: int,
    keylog: str | None,
    zone: tzinfo,
    memory: int | None,
) -> None:
    """Run QUERY over the traffic in TABLES, a folder that `wiredump table` wrote, or in CAPTUREs.

    QUERY is a SELECT in DuckDB's SQL; `wiredump help tables` lists tables and columns. moment(x)
    makes a timestamp of a column in _ns, and ms(x) makes milliseconds of a duration.
    """
    options = SourceOptions(dialect_name, ports, jobs, keylog, zone, memory)
    print_answer(put(query, sources, options), form)
