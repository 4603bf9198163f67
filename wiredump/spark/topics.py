"""Frames in a Kafka topic as tables: what ``wiredump table`` makes of the journal that they are
from.

A record's value is a frame as on a socket, size included. Its key names the connection, so that the
frames of a connection are in one partition, in their order. The header ``journal`` has the rest of
the journal's entry as JSON (``kproto.journal.Entry`` without ``raw``); events without a frame have
no value. ``docs/how-to/recipes/journal_to_topic.py`` writes such records.

::

    records = spark.read.format("kafka").option("includeHeaders", "true")...load()
    requests = table_of_frames(frames_of(records), "requests")
    register(spark, {"requests": requests})

``frames_of`` also reads a stream. A table pairs requests with their responses, and takes all frames
of a connection: in a stream use the functions that decode frames, or a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql.functions import col, expr

from kproto.journal import Entry
from wiredump.rows.exchanges import rows_of
from wiredump.sources.journals import JournalItems
from wiredump.spark.table_schema import spark_schema, with_timestamps
from wiredump.spark.table_source import OptionError
from wiredump.tables.arrow import arrow_schema, of_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["OF_FRAMES", "frames_of", "table_of_frames"]

OF_FRAMES: Final = ("frames", "requests", "bodies", "negotiations")
"""The tables whose rows depend on one exchange."""

_ENTRY: Final = (
    "sequence BIGINT, timestamp_ns BIGINT, broker_id INT, connection_id BIGINT, direction STRING, "
    "peer STRING, api_key SMALLINT, api_version SMALLINT, correlation_id INT, client_id STRING, "
    "dialect STRING, event STRING, note STRING"
)


def frames_of(records: DataFrame) -> DataFrame:
    """Return records of Spark's Kafka source, with headers, as frames: ``connection``, ``entry``
    (JSON), the entry's fields, ``frame``. Records without the header are left out."""
    header = "filter(headers, each -> each.key = 'journal')[0].value"
    found = records.select(
        col("key").cast("string").alias("connection"),
        expr(f"CAST({header} AS STRING)").alias("entry"),
        col("value").alias("frame"),
    )
    fields = expr(f"from_json(entry, '{_ENTRY}')").alias("of")
    return (
        found.where("entry IS NOT NULL")
        .select("connection", "entry", "frame", fields)
        .select("connection", "entry", "of.*", "frame")
    )


def table_of_frames(frames: DataFrame, table: str, run: str = "") -> DataFrame:
    """Return a table of ``OF_FRAMES`` about the frames of ``frames_of``: one task has a connection
    at a time, with all of its frames in memory. Raises OptionError for another table."""
    if table not in OF_FRAMES:
        raise OptionError(f"frames make the tables {', '.join(OF_FRAMES)}, not {table!r}")

    schema = arrow_schema(table)

    def rows(connection: pa.Table) -> pa.Table:
        found = of_rows(schema, list(_rows(connection, table)))
        batches = found.to_batches() or [pa.RecordBatch.from_pylist([], schema)]
        return pa.Table.from_batches([with_timestamps(table, each, run) for each in batches])

    grouped = frames.select("connection", "sequence", "entry", "frame").groupBy("connection")
    return grouped.applyInArrow(rows, spark_schema(table))


def _rows(connection: pa.Table, table: str) -> Iterator[tuple[Any, ...]]:
    rows = connection.select(["sequence", "entry", "frame"]).to_pylist()
    rows.sort(key=lambda row: row["sequence"])
    decode = msgspec.json.Decoder(Entry).decode
    entries = (
        msgspec.structs.replace(decode(row["entry"]), raw=row["frame"] or b"") for row in rows
    )
    for item in JournalItems().read(entries):
        yield from (row for name, row in rows_of(item) if name == table)
