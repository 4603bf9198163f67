"""Write runs and a stream's batches to tables of Delta or Iceberg, and print what these have.

A program of its own, because it needs another Spark than the other tests: ``python lake.py FORMAT
JAR,JAR FOLDER CAPTURE CAPTURE``. The session is not one of ours, as in a notebook.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from wiredump.rows.schema import TABLES
from wiredump.spark import KafkaCapture, run
from wiredump.spark.sinks import Files, Format, sink_of
from wiredump.storage import Location
from wiredump.tables.making import make
from wiredump.tables.work import Work

WANTED = ("connections", "requests", "elections")
KEPT = ("spark.sql.adaptive.enabled", "spark.sql.execution.arrow.maxRecordsPerBatch")
"""Settings that the command makes otherwise."""
BY = ("date", "hour", "requests.api")


def session(form: str, jars: str, folder: str) -> SparkSession:
    catalog = "spark.sql.catalog.lake"
    settings = {
        "spark.jars": jars,
        "spark.driver.memory": "1g",
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

    def batch(self, capture: str, number: int) -> None:
        """Write the files of one process as a batch of a stream."""
        sink = sink_of(self.form, self.out, "stream", BY)
        sink.prepare(self.spark, WANTED)
        sink.write(self.spark, self._files(capture), number)

    def _files(self, capture: str) -> Files:
        folder = f"{self.folder}/plain-{Path(capture).name}"
        if not Path(folder).exists():
            make(Work(out=folder, paths={0: capture}, tables=WANTED))
        return {name: list((Location(folder) / name).files()) for name in WANTED}

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


def main(form: Format, jars: str, folder: str, first: str, second: str) -> None:
    spark = session(form, jars, folder)
    before = {name: spark.conf.get(name) for name in KEPT}
    lake = Lake(spark, form, folder)
    again = [lake.write(first, "a"), lake.write(first, "a")]
    assert again[0] == again[1] > 0, again
    with ThreadPoolExecutor(2) as threads:
        assert all(threads.map(lake.write, (first, second), ("b", "c")))
    for capture, number in ((first, 1), (first, 1), (second, 2), (first, 1), (second, 2)):
        lake.batch(capture, number)
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
