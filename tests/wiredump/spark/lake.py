"""Write runs and a stream to tables of Delta or Iceberg, compact them meanwhile, ask questions
about them, and print what these have.

A program of its own, because it needs another Spark than the other tests: ``python lake.py FORMAT
JAR,JAR FOLDER CAPTURE CAPTURE ROTATED TABLES QUESTION,QUESTION``. TABLES are Parquet files to ask
about. The session is not one of ours, as in a notebook.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import unquote

from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession

from wiredump.cli import cli
from wiredump.cli.spark_tables import tables_in
from wiredump.questions.answers import Answer, answer
from wiredump.questions.saved import questions
from wiredump.rows.schema import TABLES
from wiredump.spark import KafkaCapture, end, register, run, sinks
from wiredump.spark.connections import Options
from wiredump.spark.rotation import Rotation
from wiredump.spark.sinks import Format, Layout, sink_of
from wiredump.spark.stream_folder import Planned, StreamFolder, Taken
from wiredump.spark.streaming import Stream
from wiredump.storage import Location

WANTED = ("requests", "batches", "topics")
"""Two of which batches of a stream have rows, and one that its end replaces."""
KEPT = ("spark.sql.adaptive.enabled", "spark.sql.execution.arrow.maxRecordsPerBatch")
"""Settings that the command makes otherwise."""
BY = ("date", "hour", "requests.api")


def session(form: str, jars: str, folder: str) -> SparkSession:
    catalog = "spark.sql.catalog.lake"
    settings = {
        "spark.jars": jars,
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.ui.enabled": "false",
        # Iceberg shuffles by the hour, into 200 tasks if nobody says otherwise.
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        # VACUUM lists the files of a table of any size by so many tasks: 10,000 by default.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        # Code for some rows takes half of the processor's time to generate and compile.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.ui.showConsoleProgress": "false",
        # Deltas of any age are to be deleted.
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
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
        self.out = "lake.kafka" if form == "iceberg" else f"{folder}/kafka"

    def write(self, capture: str, run_id: str) -> int:
        made = run(
            self.spark, capture, out=self.out, format=self.form, staging=f"{self.folder}/staging",
            partition_by=BY, mode="append", run=run_id, tables=WANTED, partitions=2,
        )  # fmt: skip
        return made.rows["requests"]

    def name(self, table: str) -> str:
        return f"{self.out}.{table}" if self.form == "iceberg" else f"delta.`{self.out}/{table}`"

    def follow(self, where: str) -> None:
        """Write a stream, a file a batch, whose driver dies before a table has its rows, before a
        batch has its record, and before the end has one. Before it goes on, tables are compacted,
        and their versions expire; then they are compacted while it goes on. Another query reads
        what was added since."""
        stream = Stream(
            where=where, checkpoint=f"{self.folder}/checkpoint", max_files=1, closed=True,
            layout=Layout(form=self.form, partition_by=BY, staging=f"{self.folder}/staging"),
            options=Options(out=self.out, paths={}, tables=WANTED, run="stream"), partitions=2,
        )  # fmt: skip
        stream.begin(self.spark)
        run_batches = self._query if self.form == "delta" else self._batches
        with killed(sinks, "rows_of", 1):
            run_batches(stream)
        with killed(StreamFolder, "commit", 0):
            run_batches(stream)
        assert StreamFolder(stream.folder).made is not None
        self._compact_all()
        before = self.requests()
        since = self._version() if self.form == "delta" else time.time_ns() // 1_000_000
        with ThreadPoolExecutor(1) as threads:
            compacting = threads.submit(self.compact, 1 << 30)
            run_batches(stream)
            compacting.result()
        with killed(StreamFolder, "end", 0):
            end(self.spark, stream.checkpoint)
        made = end(self.spark, stream.checkpoint).rows["requests"]
        assert made > 0
        read = self._added(since)
        assert read
        assert sorted([*before, *read]) == self.requests(), "the other query has each row once"

    def _query(self, stream: Stream) -> None:
        stream.start(self.spark, {"availableNow": True}).awaitTermination()

    def _batches(self, stream: Stream) -> None:
        """The batches of such a query, by a Spark that lacks its interfaces."""
        stream.begin(self.spark)
        files = Rotation(stream.where).new({}, None).files
        done = StreamFolder(stream.folder).batches
        for number, file in enumerate(files[done:], done):
            stream.batch.run(self.spark, number, Planned(files=[Taken(number, file)]))

    def _added(self, since: int) -> list[list[str]]:
        """The rows that a query reads that begins with a version or, of Iceberg, at a time."""
        reader = self.spark.readStream.format(self.form)
        if self.form == "delta":
            place, reader = f"{self.out}/requests", reader.option("startingVersion", str(since))
        else:
            place, reader = (
                self.name("requests"),
                reader.option("stream-from-timestamp", str(since)),
            )
        writer = reader.load(place).writeStream.format("memory").trigger(availableNow=True)
        writer.queryName("read").start().awaitTermination()
        return rows_in(self.spark.table("read"))

    def _compact_all(self) -> None:
        """Compact tables, whose version of before is read as it was; then let it expire, so that
        only the last one has files."""
        before, version = self.requests(), self._version()
        made = self.compact(1 << 30)
        assert made["requests"]["merged"] > made["requests"]["into"] > 0
        assert self.requests() == before
        assert self.requests(version) == before, "the version of before"
        files = self._files()
        assert self.compact(1 << 30, "--expire", "0")["requests"]["merged"] == 0
        assert self.requests() == before
        left = self._files()
        assert left < files
        if self.form == "delta":
            now = self.spark.sql(f"SELECT * FROM {self.name('requests')}").inputFiles()
        else:
            now = [row["file_path"] for row in self._sql("SELECT file_path FROM {}.files")]
        assert {unquote(each.rpartition("/")[2]) for each in now} == left

    def _files(self) -> set[str]:
        """The names of files of rows."""
        found = Path(self.folder, "kafka", "requests").rglob("*.parquet")
        return {each.name for each in found if "_delta_log" not in each.parts}

    def compact(self, target_bytes: int, *more: str) -> dict[str, dict[str, int]]:
        """By the command, in this session."""
        arguments = [self.out, "--table-format", self.form, "--target-bytes", str(target_bytes)]
        done = CliRunner().invoke(cli, ["compact", *arguments, *more, "--json"])
        assert done.exit_code == 0, (done.output, done.exception)
        found: dict[str, dict[str, int]] = json.loads(done.stdout)["tables"]
        assert found.keys() >= set(WANTED)
        return found

    def _version(self) -> int:
        """The version of a table."""
        if self.form == "delta":
            return max(int(row["version"]) for row in self._sql("DESCRIBE HISTORY {}"))
        statement = "SELECT snapshot_id FROM {}.history ORDER BY made_current_at"
        return [int(row["snapshot_id"]) for row in self._sql(statement)][-1]

    def _sql(self, statement: str) -> list[Any]:
        return self.spark.sql(statement.format(self.name("requests"))).collect()

    def requests(self, version: int | None = None) -> list[list[str]]:
        """The rows of a table, as of a version or now."""
        of = "" if version is None else f" VERSION AS OF {version}"
        return rows_in(self.spark.sql(f"SELECT * FROM {self.name('requests')}{of}"))

    def rows(self) -> dict[str, list[list[str]]]:
        return {
            table: rows_in(self.spark.sql(f"SELECT * FROM {self.name(table)}"), table)
            for table in WANTED
        }

    def ask(self, folder: str, names: list[str]) -> dict[str, Any]:
        """Write tables, and return the answers to questions about them, and what the command
        prints for one."""
        needed = {table for name in names for table in tables_in(questions()[name].query)}
        out = "lake.asked" if self.form == "iceberg" else f"{self.folder}/asked"
        (run_id,) = {each.name.removeprefix("run=") for each in Path(folder).glob("*/run=*")}
        sink = sink_of(Layout(form=self.form), out, run_id)
        sink.prepare(self.spark, sorted(needed))
        files = {name: list((Location(folder) / name).glob("**/*.parquet")) for name in needed}
        sink.write(self.spark, files)
        form = "catalog" if self.form == "iceberg" else "delta"
        tables = register(self.spark, out, form=form)
        assert set(tables.names) == needed
        found = {name: told(answer(tables, questions()[name].query)) for name in names}
        command = ["ask", names[0], out, "--spark", "--table-format", form, "--format", "json"]
        done = CliRunner().invoke(cli, command)
        assert done.exit_code == 0, (done.output, done.exception)
        return {"answers": found, "printed": done.stdout}


def told(found: Answer) -> str:
    """What an answer says. Its types have other names in other engines."""
    return repr((found.columns, found.rows))


def rows_in(frame: DataFrame, table: str = "requests") -> list[list[str]]:
    """The rows of a table with their runs, sorted."""
    names = [each.name for each in TABLES[table].columns]
    rows = frame.collect()
    return sorted([row["run"], repr({name: row[name] for name in names})] for row in rows)


def main(
    form: Format, jars: str, folder: str, first: str, second: str, rotated: str, asked: str,
    names: str,
) -> None:  # fmt: skip
    spark = session(form, jars, folder)
    before = {name: spark.conf.get(name) for name in KEPT}
    lake = Lake(spark, form, folder)
    assert lake.write(second, "a") != lake.write(first, "a") > 0
    lake.follow(rotated)
    with ThreadPoolExecutor(2) as threads:
        assert all(threads.map(lake.write, (second, first), ("a", "b")))
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
        "asked": lake.ask(asked, names.split(",")),
    }  # fmt: skip
    spark.dataSource.register(KafkaCapture)
    reader = spark.read.format("kafka_capture").option("table", "requests")
    found["source"] = reader.load(first).count()
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    form, *arguments = sys.argv[1:]
    main(form, *arguments)  # type: ignore[arg-type]
