"""``wiredump table``: captures and journals to Parquet files."""

from __future__ import annotations

import json

import click

from kproto.cli.codec import named_dialect
from kproto.dialects import DIALECTS
from wiredump.cli.chosen import chosen_tables, counts
from wiredump.cli.output import Output
from wiredump.cli.progress import reading
from wiredump.conversation import DEFAULT_PORTS
from wiredump.rows.schema import TABLES
from wiredump.tables import require_pyarrow

__all__ = ["table_command"]


@click.command("table")
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option("--out", required=True, metavar="DIR", help="A folder: a new one, or empty.")
@click.option("--tables", "wanted", metavar="NAME,NAME...",
              help=f"Only these. All: {', '.join(TABLES)}.")  # fmt: skip
@click.option("--no-bodies", is_flag=True, help="Decode headers only, which is quicker.")
@click.option("--secrets", is_flag=True, help="Keep passwords, tokens and keys in bodies.")
@click.option("--values", is_flag=True, help="Keep the values of records, not only their hashes.")
@click.option("--dialect", "dialect_name", default="auto", show_default=True, metavar="NAME|DIR",
              help=f"One of {', '.join(DIALECTS)}, or a folder of schemas.")  # fmt: skip
@click.option("--port", "ports", type=click.IntRange(0, 65535), multiple=True,
              default=sorted(DEFAULT_PORTS), show_default=True,
              help="A hint at which end is the broker. Repeatable.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="The counts as one JSON object.")
def table_command(
    captures: tuple[str, ...],
    out: str,
    wanted: str | None,
    no_bodies: bool,
    secrets: bool,
    values: bool,
    dialect_name: str,
    ports: tuple[int, ...],
    as_json: bool,
) -> int:
    """Write what CAPTUREs hold as tables: one folder of Parquet each, below DIR.

    A CAPTURE is a pcap or pcapng file, perhaps compressed, a journal, a broker's request log, or -
    for standard input.
    """
    tables = chosen_tables(wanted, not no_bodies)
    codec = named_dialect(dialect_name)
    require_pyarrow()
    # Only now: these need pyarrow, or are slow to import.
    from wiredump.rows.together import TableRows
    from wiredump.sources import open_sources
    from wiredump.tables.making import make_tables

    rows = TableRows(codec, tables=tables, bodies=not no_bodies, values=values, secrets=secrets)
    with reading(captures) as progress:
        sources = open_sources(
            captures, codec=codec, ports=frozenset(ports), alone=True, progress=progress
        )
        made = make_tables(sources, rows, out, tables)
    if as_json:
        record = {"out": out, "rows": dict(made.rows), "bytes": dict(made.account)}
        click.echo(json.dumps({**record, "late": made.late}))
        return 0
    output = Output()
    output.render(counts("rows", dict(made.rows)))
    if made.account:
        output.render(counts("bytes of TCP payload", dict(made.account)))
    if made.late:
        click.echo(f"wiredump: {made.late} exchanges came too late to be in order", err=True)
    return 0
