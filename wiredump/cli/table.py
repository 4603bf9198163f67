"""``wiredump table``: captures and journals to Parquet files."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import tzinfo

import click

from kproto.cli.dialect_option import named_dialect
from wiredump.cli.chosen import chosen_tables, counts, source_options, table_options
from wiredump.cli.progress import reading
from wiredump.tables import require_pyarrow

__all__ = ["table_command"]


@contextmanager
def _uncollected() -> Iterator[None]:
    """What is imported stays: the collector need not look through it, now or later."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
    gc.freeze()


@click.command("table")
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option("--out", required=True, metavar="DIR", help="A folder: a new one, or empty.")
@click.option(
    "--jobs",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    metavar="N",
    help="Processes that share out the connections among them; 0: one a processor.",
)
@click.option("--rotated", is_flag=True,
              help="CAPTUREs are one in pieces, in this order: not merged by time.")  # fmt: skip
@table_options
@source_options
def table_command(
    captures: tuple[str, ...],
    out: str,
    jobs: int,
    rotated: bool,
    wanted: str | None,
    no_bodies: bool,
    secrets: bool,
    values: bool,
    dialect_name: str,
    ports: tuple[int, ...],
    as_json: bool,
    keylog: str | None,
    zone: tzinfo,
) -> int:
    """Write what CAPTUREs hold as tables: one folder of Parquet each, below DIR.

    A CAPTURE is a pcap or pcapng file, perhaps compressed, a journal, a broker's request log, or -
    for standard input.
    """
    tables = chosen_tables(wanted, not no_bodies)
    codec = named_dialect(dialect_name)
    require_pyarrow()
    with _uncollected():
        # Only now: these need pyarrow, or are slow to import.
        from wiredump.rows.together import TableRows
        from wiredump.sources import open_sources
        from wiredump.tables.making import make_tables

    with reading(captures) as progress:
        if jobs != 1:
            from wiredump.tables.jobs import Work, make_tables_together, usable_cores

            if rotated:
                raise click.UsageError("--rotated and --jobs do not go together.")
            work = Work(
                captures, out, tables, dialect_name, ports, not no_bodies, values, secrets,
                keylog, zone,
            )  # fmt: skip
            made = make_tables_together(work, jobs or usable_cores(), progress)
        else:
            rows = TableRows(
                codec, tables=tables, bodies=not no_bodies, values=values, secrets=secrets
            )
            sources = open_sources(
                captures,
                codec=codec,
                ports=frozenset(ports),
                alone=True,
                rotated=rotated,
                keylog=keylog,
                zone=zone,
                progress=progress,
            )
            made = make_tables(sources, rows, out, tables)
    if as_json:
        record = {"out": out, "rows": dict(made.rows), "bytes": dict(made.account)}
        click.echo(json.dumps({**record, "late": made.late}))
        return 0
    click.echo(counts("rows", made.rows))
    if made.account:
        click.echo(counts("bytes of TCP payload", made.account))
    if made.late:
        click.echo(f"wiredump: {made.late} exchanges came too late to be in order", err=True)
    return 0
