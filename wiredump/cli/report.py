"""``wiredump report``: write one HTML page about tables, or about captures."""

from __future__ import annotations

import os
from datetime import tzinfo

import click

from kproto.cli.completing import dialect_names
from kproto.cli.dialect_option import named_dialect
from kproto.dialects import DIALECTS
from kproto.errors import KprotoError
from wiredump.cli.chosen import expanded, source_options
from wiredump.cli.making import jobs_option, make, processes_for
from wiredump.cli.progress import counting, reading
from wiredump.conversation import DEFAULT_PORTS
from wiredump.questions.database import require_duckdb
from wiredump.skipped import require_read
from wiredump.tables import require_pyarrow
from wiredump.tables.work import Work, passing_folder

__all__ = ["report_command"]

_TABLES = (
    "lineage", "account", "connections", "requests", "negotiations", "anomalies", "topics",
    "batches", "reassignments", "elections", "groups", "transactions",
)  # fmt: skip
"""The tables that the page needs."""


@click.command("report")
@click.argument("tables", nargs=-1, required=True, metavar="TABLES|CAPTURE...")
@click.option("--out", required=True, metavar="FILE",
              help="Page to write, or - for standard output.")  # fmt: skip
@click.option("--title", default="Kafka traffic", show_default=True, help="Heading of the page.")
@click.option("--dialect", "dialect_name", default="auto", show_default=True, metavar="NAME|DIR",
              shell_complete=dialect_names,
              help=f"Dialect of CAPTUREs: one of {', '.join(DIALECTS)}, or a folder of "
                   "schemas.")  # fmt: skip
@click.option("--port", "ports", type=click.IntRange(0, 65535), multiple=True,
              default=sorted(DEFAULT_PORTS), show_default=True,
              help="Port on which brokers of CAPTUREs listen; tells clients from brokers. "
                   "Repeatable.")  # fmt: skip
@jobs_option
@source_options
def report_command(
    tables: tuple[str, ...],
    out: str,
    title: str,
    dialect_name: str,
    ports: tuple[int, ...],
    jobs: int,
    keylog: str | None,
    zone: tzinfo,
    memory: int | None,
) -> None:
    """Write one HTML page about the traffic in TABLES, a folder that `wiredump table` wrote, or in
    CAPTUREs.

    The page is one file that loads nothing from elsewhere; its script only sorts tables.
    """
    tables = expanded(tables)
    folders = [path for path in tables if os.path.isdir(path)]
    if folders and len(tables) > 1:
        raise click.UsageError(f"{folders[0]} is a folder of tables and must be the only argument")
    require_pyarrow()
    require_duckdb()
    if folders:
        _write(folders[0], out, title)
        return
    from wiredump.storage import Location

    if tables[0] != "-" and not Location(tables[0]).exists():
        raise KprotoError(f"{tables[0]} does not exist: name a folder of tables, or captures")
    named_dialect(dialect_name)  # fails for an unknown dialect before anything is read
    with passing_folder() as folder:
        work = Work(
            tables, folder, _TABLES, dialect_name, ports, keylog=keylog, zone=zone, memory=memory
        )
        with reading(tables) as progress:
            made = make(work, processes_for(tables, jobs), progress)
        _write(folder, out, title)
    require_read(made.unread, made.account)


def _write(folder: str, out: str, title: str) -> None:
    # Imported late: these need pyarrow and matplotlib.
    from wiredump.report.measured import measure
    from wiredump.report.page import page
    from wiredump.tables.reading import TableFolder

    with counting() as progress:
        text = page(measure(TableFolder(folder, progress)), title)
    with click.open_file(out, "w", encoding="utf-8", atomic=out != "-") as file:
        file.write(text)
