"""The batch as a function, for notebooks and jobs of your own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from wiredump.sources.request_logs import time_zone
from wiredump.spark.arguments import SPLIT_BYTES, chosen_tables, dialect_of_tasks
from wiredump.spark.bad_files import OnBadFile
from wiredump.spark.connections import Options
from wiredump.spark.job import Job
from wiredump.spark.sinks import Format, Layout
from wiredump.storage import absolute, expand, has_magic, shown
from wiredump.tables.making import Made
from wiredump.tables.run import Mode, derived_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run"]


def run(
    spark: SparkSession,
    captures: str | Sequence[str],
    *,
    out: str,
    format: Format = "parquet",
    partition_by: Sequence[str] = (),
    mode: Mode = "error",
    run: str | None = None,
    tables: Sequence[str] | None = None,
    on_bad_file: OnBadFile = "fail",
    staging: str | None = None,
    rotated: bool = False,
    bodies: bool = True,
    values: bool = False,
    secrets: bool = False,
    ports: Sequence[int] = (9092,),
    dialect: str = "auto",
    keylog: str | None = None,
    zone: str = "UTC",
    memory: int | None = None,
    max_decompressed: int | None = None,
    split_bytes: int = SPLIT_BYTES,
    partitions: int | None = None,
    say: Callable[[str], object] = lambda text: None,
) -> Made:
    """Write the tables of captures, journals and request logs with a session of yours, which goes
    on afterwards; none of its settings changes.

    ``captures`` are paths or URIs, which may be patterns. ``out`` is a folder, by path or URI; with
    ``format="iceberg"`` it is ``CATALOG.NAMESPACE``, and ``staging`` a folder for files that are
    not complete. ``memory`` and ``max_decompressed`` are in bytes. The other arguments are the
    options of ``wiredump spark``.

    Returns the rows by table, the account of bytes, and in ``unread`` the reasons of the files that
    were skipped. Running it again replaces the rows of the same ``run``, whose id the contents of
    the captures give by default. Raises OutputError if ``out`` cannot be used, BadFileError for a
    file of which nothing can be read (``on_bad_file``), and whatever Spark raises for a failed
    task; then nothing was written.
    """
    paths = [captures] if isinstance(captures, str) else list(captures)
    paths = [each for path in paths for each in (expand(path) if has_magic(path) else [path])]
    layout = Layout(form=format, partition_by=tuple(partition_by), staging=staging)
    layout.require()
    options = Options(
        out=layout.absolute(out),
        paths=dict(enumerate(map(absolute, paths))),
        names=dict(enumerate(map(shown, paths))),
        tables=chosen_tables(tables, bodies),
        dialect=dialect_of_tasks(dialect),
        ports=tuple(ports),
        bodies=bodies,
        values=values,
        secrets=secrets,
        keylog=absolute(keylog) if keylog is not None else None,
        zone=time_zone(zone),
        memory=memory,
        max_decompressed=max_decompressed,
        run=run or derived_run(paths),
    )
    return Job(
        options=options,
        split_bytes=split_bytes,
        partitions=partitions,
        rotated=rotated,
        mode=mode,
        layout=layout,
        on_bad_file=on_bad_file,
        say=say,
    ).run(spark)
