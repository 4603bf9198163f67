"""Write runs and a stream to tables of Delta or Iceberg, and print what these have.

A program of its own, because it needs another Spark than the other tests: ``python lake.py FORMAT
JAR,JAR FOLDER CAPTURE CAPTURE ROTATED``. The session is not one of ours, as in a notebook.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from unittest import mock

from pyspark.sql import SparkSession

from wiredump.rows.schema import TABLES
from wiredump.spark import KafkaCapture, end, run, sinks
from wiredump.spark.connections import Options
from wiredump.spark.rotation import Rotation
from wiredump.spark.sinks import Format, Layout
from wiredump.spark.stream_folder import Planned, StreamFolder, Taken
from wiredump.spark.streaming import Stream

WANTED = ("connections", "requests", "batches")
KEPT = ("spark.sql.adaptive.enabled", "spark.sql.execution.arrow.maxRecordsPerBatch")
"""Settings that the command makes otherwise."""
BY = ("date", "hour", "requests.api")


def session(form: str, jars: str, folder: str) -> SparkSession:
    catalog = "spark.sql.catalog.lake"
    settings = {
        "spark.jars": jars,
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.ui.enabled": "false",
        # Iceberg shuffles by the hour, into 200 tasks if nobody says otherwise.
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hadoop",
        f"{catalog}.warehouse": folder,
    }
    if form == "delta":
        settings |= {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


class KilledError(Exception):
    """Stands for the end of the driver."""


@contextmanager
def killed(owner: Any, name: str, calls: int) -> Iterator[None]:
    """End the driver when a function is called once more than ``calls`` times."""
    real, left = getattr(owner, name), calls

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise KilledError
        return real(*arguments, **named)

    with mock.patch.object(owner, name, counted):
        try:
            yield
        except Exception as error:  # perhaps of the query
            if "KilledError" not in f"{error!r} {error}":
                raise
    assert left < 0, f"{name} was not called often enough"


class Lake:
    def __init__(self, spark: SparkSession, form: Format, folder: str) -> None:
        self.spark, self.form, self.folder = spark, form, folder
        self.out = "lake.kafka" if form == "iceberg" else f"{folder}/tables"

    def write(self, capture: str, run_id: str, **more: Any) -> int:
        made = run(
            self.spark, capture, out=self.out, format=self.form, staging=f"{self.folder}/staging",
            partition_by=BY, mode="append", run=run_id, tables=WANTED, partitions=2, **more,
        )  # fmt: skip
        return made.rows["requests"]

    def name(self, table: str) -> str:
        return f"{self.out}.{table}" if self.form == "iceberg" else f"delta.`{self.out}/{table}`"

    def follow(self, where: str) -> int:
        """Write a stream, a file a batch, whose driver dies before a table has its rows, before a
        batch has its record, and before the end has one."""
        stream = Stream(
            where=where, checkpoint=f"{self.folder}/checkpoint", max_files=1, closed=True,
            layout=Layout(form=self.form, partition_by=BY, staging=f"{self.folder}/staging"),
            options=Options(out=self.out, paths={}, tables=WANTED, run="stream"), partitions=2,
        )  # fmt: skip
        stream.begin(self.spark)
        run_batches = self._query if self.form == "delta" else self._batches
        prepared = 5 if self.form == "delta" else 0  # by a call for each table
        with killed(sinks, "rows_of", prepared + 2):
            run_batches(stream)
        with killed(StreamFolder, "commit", 0):
            run_batches(stream)
        assert StreamFolder(stream.folder).made is not None
        run_batches(stream)
        with killed(StreamFolder, "end", 0):
            end(self.spark, stream.checkpoint)
        return end(self.spark, stream.checkpoint).rows["requests"]

    def _query(self, stream: Stream) -> None:
        stream.start(self.spark, {"availableNow": True}).awaitTermination()

    def _batches(self, stream: Stream) -> None:
        """The batches of such a query, by a Spark that lacks its interfaces."""
        stream.begin(self.spark)
        files = Rotation(stream.where).new({}, None).files
        done = StreamFolder(stream.folder).batches
        for number, file in enumerate(files[done:], done):
            stream.batch.run(self.spark, number, Planned(files=[Taken(number, file)]))

    def compact(self) -> None:
        for table in WANTED:
            if self.form == "iceberg":
                named = f"table => '{self.name(table).removeprefix('lake.')}'"
                options = "options => map('rewrite-all', 'true')"
                self.spark.sql(f"CALL lake.system.rewrite_data_files({named}, {options})").collect()
            else:
                self.spark.sql(f"OPTIMIZE {self.name(table)}").collect()

    def rows(self) -> dict[str, list[list[str]]]:
        found = {}
        for table in WANTED:
            names = [each.name for each in TABLES[table].columns]
            rows = self.spark.sql(f"SELECT * FROM {self.name(table)}").collect()
            found[table] = sorted(
                [row["run"], repr({name: row[name] for name in names})] for row in rows
            )
        return found


def main(form: Format, jars: str, folder: str, first: str, second: str, rotated: str) -> None:
    spark = session(form, jars, folder)
    before = {name: spark.conf.get(name) for name in KEPT}
    lake = Lake(spark, form, folder)
    again = [lake.write(first, "a"), lake.write(first, "a")]
    assert again[0] == again[1] > 0, again
    with ThreadPoolExecutor(2) as threads:
        assert all(threads.map(lake.write, (first, second), ("b", "c")))
    assert lake.follow(rotated) > 0
    lake.compact()
    lake.write(second, "a")
    lake.write(first, "a")
    assert {name: spark.conf.get(name) for name in KEPT} == before
    schema = spark.table(lake.name("requests")).schema if form == "iceberg" else None
    requests = spark.sql(f"SELECT * FROM {lake.name('requests')}")
    found = {
        "rows": lake.rows(),
        "types": {
            name: requests.schema[name].dataType.simpleString()
            for name in ("requested_at", "date", "hour", "run")
        },
        "hours": [
            list(row) for row in requests.selectExpr(
                "cast(date as string)", "hour",
                "date_format(requested_at, 'yyyy-MM-dd H')",
            ).distinct().collect()
        ],
        "comment": schema["latency_ns"].metadata.get("comment") if schema is not None else None,
    }  # fmt: skip
    spark.dataSource.register(KafkaCapture)
    reader = spark.read.format("kafka_capture").option("table", "requests")
    found["source"] = reader.load(first).count()
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    form, *arguments = sys.argv[1:]
    main(form, *arguments)  # type: ignore[arg-type]
