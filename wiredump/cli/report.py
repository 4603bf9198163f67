"""``wiredump report``: write one HTML page about tables, or about captures."""

from __future__ import annotations

import click

from kproto.cli.outputs import OutputFile
from kproto.outputs import write_output
from wiredump.cli.making import folder_among, tables_of_sources
from wiredump.cli.progress import status
from wiredump.cli.source_options import (
    SourceOptions,
    dialect_option,
    expanded,
    jobs_option,
    port_option,
    source_options,
)
from wiredump.cli.spark_tables import SparkOptions, spark_options, spark_tables
from wiredump.questions.answers import Tables
from wiredump.questions.database import FolderTables, require_duckdb
from wiredump.tables import require_pyarrow

__all__ = ["report_command"]

_TABLES = (
    "lineage", "account", "connections", "requests", "negotiations", "anomalies", "topics",
    "bodies", "batches", "reassignments", "elections", "groups", "transactions",
)  # fmt: skip
"""The tables that the page needs."""


@click.command("report")
@click.argument("tables", nargs=-1, required=True, metavar="TABLES|CAPTURE...")
@click.option("--out", type=OutputFile(), required=True, metavar="FILE",
              help="Page to write, or - for standard output.")  # fmt: skip
@click.option("--title", default="Kafka traffic", show_default=True, help="Heading of the page.")
@dialect_option("Dialect of CAPTUREs")
@port_option("brokers of CAPTUREs")
@jobs_option
@source_options
@spark_options
def report_command(
    tables: tuple[str, ...], out: str, title: str, options: SourceOptions, spark: SparkOptions
) -> None:
    """Write one HTML page about the traffic in TABLES, a folder that `wiredump table` wrote, or in
    CAPTUREs.

    The page is one file that loads nothing from elsewhere; its script only sorts tables. With
    --spark, TABLES may be in any format and store that Spark reads.
    """
    if spark.wanted:
        with spark_tables(tables, (), spark, "judged") as read:
            _write(read, out, title)
        return
    tables = expanded(tables)
    folder_among(tables)  # refuses several sources before anything is read
    require_pyarrow()
    require_duckdb()
    with tables_of_sources(tables, _TABLES, options, "judged") as (folder, _):
        _write(FolderTables(folder), out, title)


def _write(tables: Tables, out: str, title: str) -> None:
    # Imported late: these need pyarrow and matplotlib.
    from wiredump.report.measured import measure
    from wiredump.report.page import page

    with status("reading tables"):
        text = page(measure(tables), title)
    write_output(out, text)
