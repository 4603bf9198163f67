"""Tables as a data source: the rows of ``wiredump table``, with timestamps, by one task or several;
and what Spark does with them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.captures.reading import file_of
from tests.support.full import quickly_drawn
from tests.support.toolchain import require_module
from tests.wiredump.sources.test_opening import journal as journal_of
from tests.wiredump.sources.test_opening import talk
from tests.wiredump.spark import made_up
from tests.wiredump.spark.knowing import knowing, naming
from tests.wiredump.spark.pipeline import LOCAL, load, single
from wiredump.rows.schema import TABLES
from wiredump.tables.run import derived_run

EVERY = tuple(TABLES)
DURATIONS = {
    "handshake_ns", "latency_ns", "duration_ns", "copy_delay_ns",
    "client_rtt_min_ns", "client_rtt_median_ns", "client_rtt_max_ns",
    "broker_rtt_min_ns", "broker_rtt_median_ns", "broker_rtt_max_ns",
}  # fmt: skip


def read(table: str, paths: list[str], **options: str) -> Iterator[pa.RecordBatch]:
    """The batches of all tasks, without Spark."""
    require_module("pyspark")
    from wiredump.spark.table_source import TableReader

    reader = TableReader(table, paths, options)
    for partition in reader.partitions():
        yield from reader.read(partition)


def rows(table: str, paths: list[str], **options: str) -> list[str]:
    """Its own columns, sorted."""
    names = [each.name for each in TABLES[table].columns]
    return sorted(
        repr(row)
        for batch in read(table, paths, **options)
        for row in batch.select(names).to_pylist()
    )


def compare(paths: list[str], folder: Path, tables: tuple[str, ...], **options: str) -> None:
    single(paths, folder / "one", tables=LOCAL, told=True)
    expected = load(folder / "one", EVERY)
    for table in tables:
        assert rows(table, paths, **options) == expected[table], table


@pytest.mark.parametrize("tasks", ["1", "3"])
def test_every_table_of_captures_and_a_journal(tmp_path: Path, tasks: str) -> None:
    """Of two captures, which are merged; names that one connection learns for another."""
    paths = []
    for number, data in enumerate((knowing(), made_up.capture(3, share=0.2))):
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(data)
        paths.append(str(path))
    path = tmp_path / "journal.jsonl"
    path.write_text(journal_of(talk(3)))
    compare([*paths, str(path)], tmp_path, EVERY, tasks=tasks)


@pytest.mark.parametrize("tasks", ["1", "4"])
def test_names_that_another_task_reads(tmp_path: Path, rng: random.Random, tasks: str) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(naming(rng.randrange(1 << 32), share=0.2))
    compare([str(path)], tmp_path, ("batches", "records", "anomalies"), tasks=tasks)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    quickly_drawn("captures", ["kafka-4.4.0-admin", "kafka-2.4.1-everyday-1", "mock-4.4"], 1),
)
def test_captures_of_real_brokers(tmp_path: Path, name: str) -> None:
    compare([str(file_of(name))], tmp_path, EVERY, tasks="2")


def test_rotated_captures_are_one(tmp_path: Path) -> None:
    paths = []
    for number in range(2):
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(made_up.capture(number, kind="pcap"))
        paths.append(str(path))
    expected = single(paths, tmp_path / "one", tables=("frames",), rotated=True)
    assert rows("frames", paths, rotated="true", tasks="3") == expected["frames"]


def test_timestamps_are_times_and_the_run_is_that_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(knowing())
    for table in ("requests", "groups"):
        (batch, *_) = read(table, [str(path)])
        times = [each.name for each in TABLES[table].columns if each.is_time]
        assert {row["run"] for row in batch.to_pylist()} == {derived_run([str(path)])}
        for row in batch.to_pylist():
            for name in times:
                at, nanoseconds = row[name.replace("_ns", "_at")], row[name]
                assert at == microseconds(nanoseconds)
    assert {row["run"] for batch in read("frames", [str(path)], run="mine") for row in
            batch.to_pylist()} == {"mine"}  # fmt: skip


def microseconds(nanoseconds: int | None) -> datetime | None:
    if nanoseconds is None:
        return None
    whole, rest = divmod(nanoseconds // 1000, 1_000_000)
    return datetime.fromtimestamp(whole, UTC).replace(microsecond=rest)


def test_what_is_no_time() -> None:
    """A new column of nanoseconds is a time or is listed here."""
    others = {
        each.name
        for table in TABLES.values()
        for each in table.columns
        if each.name.endswith("_ns") and not each.is_time
    }
    assert others == DURATIONS


@pytest.mark.parametrize(
    ("table", "options", "problem"),
    [
        ("records", {"bodies": "false"}, "needs bodies"),
        ("frames", {"rotated": "yes"}, "use true or false"),
    ],
)
def test_wrong_options(table: str, options: dict[str, str], problem: str) -> None:
    from kproto.errors import KprotoError

    with pytest.raises(KprotoError, match=problem):
        list(read(table, [], **options))


# ---- through Spark ----------------------------------------------------------------------------


@pytest.fixture
def source(spark: Any) -> Any:
    from wiredump.spark import KafkaCapture

    spark.dataSource.register(KafkaCapture)
    return spark


@pytest.mark.slow
@pytest.mark.java
def test_sql_and_partitions(source: Any, tmp_path: Path) -> None:
    """A view, a function of time, a comment, and files by date and api."""
    path = tmp_path / "a.pcap"
    path.write_bytes(knowing())
    expected = single([str(path)], tmp_path / "one", tables=("requests",))["requests"]
    reader = source.read.format("kafka_capture").option("table", "requests").option("tasks", "2")
    requests = reader.load(str(path)).cache()
    names = [each.name for each in TABLES["requests"].columns]
    assert sorted(repr(row.asDict()) for row in requests.select(names).collect()) == expected
    assert requests.schema["requested_at"].dataType.typeName() == "timestamp"
    assert requests.schema["latency_ns"].metadata["comment"]
    requests.createOrReplaceTempView("requests")
    found = source.sql(
        "select api, count(*) from requests where requested_at >= timestamp '2001-01-01' "
        "and unix_micros(requested_at) = requested_ns div 1000 group by api"
    ).collect()
    assert sum(count for _, count in found) == len(expected)
    requests.selectExpr("*", "date(requested_at) as date").write.partitionBy("date", "api").parquet(
        str(tmp_path / "by")
    )
    assert {place.name for place in (tmp_path / "by").glob("date=*/api=*")} == {
        f"api={api}" for api, _ in found
    }
    assert pq.read_table(tmp_path / "by").num_rows == len(expected)


@pytest.mark.slow
@pytest.mark.java
def test_a_table_that_does_not_exist(source: Any) -> None:
    with pytest.raises(Exception, match="there is no table 'request'; the tables are lineage"):
        source.read.format("kafka_capture").option("table", "request").load("a.pcap")
