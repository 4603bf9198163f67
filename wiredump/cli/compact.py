"""``wiredump compact``: many small files of tables become few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
import msgspec
from rich.table import Table

from kproto.cli.tables import print_table
from kproto.cli.terminal import echo, echo_json
from wiredump.cli.following import seconds
from wiredump.cli.spark_session import spark_session
from wiredump.storage import shown
from wiredump.tables import require_pyarrow

if TYPE_CHECKING:
    from wiredump.tables.compaction import Compacted

__all__ = ["compact_command"]

_TARGET: Final = 128 << 20


def _seconds(ctx: click.Context, option: click.Parameter, value: str | None) -> float | None:
    return None if value is None else seconds(ctx, option, value)


@click.command("compact")
@click.argument("tables", metavar="TABLES")
@click.option("--target-bytes", type=click.IntRange(1), default=_TARGET, show_default=True,
              help="Greatest size of the files to make, by the sizes of those that they replace. "
                   "Files of half of it or more stay.")  # fmt: skip
@click.option("--table-format", "form", type=click.Choice(("parquet", "delta", "iceberg")),
              default="parquet", show_default=True,
              help="Parquet files; or tables of Delta or Iceberg, which Spark compacts by OPTIMIZE "
                   "or rewrite_data_files.")  # fmt: skip
@click.option("--master", metavar="URL",
              help="With delta and iceberg: Spark's master, as of `wiredump spark`.")  # fmt: skip
@click.option("--remote", metavar="URL",
              help="With delta and iceberg: a Spark Connect server, not --master.")  # fmt: skip
@click.option("--expire", metavar="DURATION", callback=_seconds,
              help="With delta and iceberg: also delete files that only versions older than this "
                   "have, by VACUUM or expire_snapshots: 168h for a week.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compact_command(
    tables: str, target_bytes: int, form: str, master: str | None, remote: str | None,
    expire: float | None, as_json: bool,
) -> None:  # fmt: skip
    """Merge the small files of TABLES, a folder that `wiredump table` or `wiredump spark` wrote, or
    a namespace of Iceberg (CATALOG.NAMESPACE), into larger ones.

    Rows stay, and so do the folders of runs and of --partition-by. Others may read the tables
    meanwhile, and a stream or another run may write to them. A command that was killed is repeated.
    """
    require_pyarrow()
    if form == "parquet":
        if master or remote or expire is not None:
            options = "--master, --remote and --expire"
            raise click.UsageError(f"{options} need --table-format delta or iceberg")
        from wiredump.tables.compaction import compact

        found = compact(tables, target_bytes)
    else:
        with spark_session(master, remote) as spark:
            from wiredump.spark.sinks import Layout, sink_of

            layout = Layout(form="delta" if form == "delta" else "iceberg")
            found = sink_of(layout, tables, run="").compact(spark, target_bytes, expire)
    if as_json:
        echo_json({"out": shown(tables), "tables": msgspec.to_builtins(found)})
    else:
        _print(found)


def _print(found: dict[str, Compacted]) -> None:
    done = {name: each for name, each in found.items() if each.merged}
    if not done:
        echo("There are no small files to merge.")
    else:
        table = Table(box=None, pad_edge=False)
        table.add_column("table")
        for name in ("files merged", "into", "bytes"):
            table.add_column(name, justify="right")
        for name, each in done.items():
            table.add_row(name, f"{each.merged:,}", f"{each.into:,}", f"{each.bytes:,}")
        print_table(table)
    for each in found.values():
        for folder in each.changed:
            echo(f"wiredump: {folder} stays as it is: another process changed it", err=True)
