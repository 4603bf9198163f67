"""``wiredump report``: one HTML page out of the tables."""

from __future__ import annotations

import click

from wiredump.cli.progress import counting
from wiredump.tables import require_pyarrow

__all__ = ["report_command"]


@click.command("report")
@click.argument("tables", metavar="TABLES")
@click.option("--out", required=True, metavar="FILE", help="The page; - for standard output.")
@click.option("--title", default="Kafka traffic", show_default=True, help="Its heading.")
def report_command(tables: str, out: str, title: str) -> None:
    """Write one page that shows what TABLES hold, a folder that ``wiredump table`` wrote.

    The page is one file: it fetches nothing, and runs nothing.
    """
    require_pyarrow()
    # Only now: these need pyarrow and matplotlib.
    from wiredump.report.measured import measure
    from wiredump.report.page import page
    from wiredump.tables.reading import TableFolder

    with counting() as progress:
        text = page(measure(TableFolder(tables, progress)), title)
    with click.open_file(out, "w", encoding="utf-8", atomic=out != "-") as file:
        file.write(text)
