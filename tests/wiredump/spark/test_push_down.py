"""Filters and columns of the data source: the rows are those that Spark would keep of all, and what
cannot pass is not decoded."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tests.captures.reading import file_of
from tests.support.toolchain import require_module
from tests.wiredump.spark.engines import ENGINES, running_on
from wiredump.tables import table_rows

NAME = "kafka-4.4.0-admin"


def read(table: str, filters: list[Any], **options: str) -> list[dict[str, Any]]:
    """The rows that the data source hands to Spark."""
    require_module("pyspark")
    from wiredump.spark.table_source import FilteredReader

    reader = FilteredReader(table, [str(file_of(NAME))], options)
    assert reader.pushFilters(filters) == filters  # Spark applies them again
    batches = [batch for each in reader.partitions() for batch in reader.read(each)]
    return pa.Table.from_batches(batches).to_pylist() if batches else []


def keys(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.fixture(scope="module")
def everything() -> dict[str, list[dict[str, Any]]]:
    return {name: read(name, []) for name in ("frames", "requests", "bodies", "batches", "records")}


@pytest.fixture
def undecoded(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, decoding a body fails the test."""

    def refuse(*given: Any, **named: Any) -> Any:
        raise AssertionError("a body was decoded")

    def begin() -> None:
        monkeypatch.setattr(table_rows, "printers_of", refuse)
        monkeypatch.setattr(table_rows, "texts_of", refuse)

    return begin


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("tasks", ["1", "2"])
def test_rows_are_those_that_pass(
    everything: dict[str, list[dict[str, Any]]], engine: str, tasks: str
) -> None:
    from pyspark.sql import datasource as ds

    requests = everything["requests"]
    times = sorted(row["requested_ns"] for row in requests if row["requested_ns"] is not None)
    middle, last = times[len(times) // 2], times[-20]
    one = requests[len(requests) // 2]["connection"]
    at = next(row["requested_at"] for row in requests if row["requested_ns"] == last)
    cases: list[tuple[str, list[Any], Callable[[dict[str, Any]], bool]]] = [
        ("requests", [ds.EqualTo(("api",), "Metadata")], lambda row: row["api"] == "Metadata"),
        ("bodies", [ds.In(("api_key",), (0, 1))], lambda row: row["api_key"] in (0, 1)),
        ("frames", [ds.EqualTo(("api_key",), 3)], lambda row: row["api_key"] == 3),
        (
            "requests",
            [ds.GreaterThan(("requested_ns",), middle), ds.LessThanOrEqual(("requested_at",), at)],
            lambda row: row["requested_ns"] > middle and row["requested_at"] <= at,
        ),
        ("frames", [ds.LessThan(("first_ns",), middle)], lambda row: row["first_ns"] < middle),
        ("requests", [ds.EqualTo(("connection",), one)], lambda row: row["connection"] == one),
        ("batches", [ds.EqualTo(("connection",), one)], lambda row: row["connection"] == one),
        ("records", [ds.EqualTo(("connection",), one)], lambda row: row["connection"] == one),
    ]
    for table, filters, passes in cases:
        with running_on(engine):
            found = read(table, filters, tasks=tasks)
        expected = [row for row in everything[table] if passes(row)]
        assert keys([row for row in found if passes(row)]) == keys(expected), filters
        assert len(found) < len(everything[table]) or len(expected) == len(everything[table])


@pytest.mark.parametrize("engine", ENGINES)
def test_what_cannot_pass_is_not_decoded(undecoded: Callable[[], None], engine: str) -> None:
    from pyspark.sql import datasource as ds

    undecoded()
    later = ds.GreaterThanOrEqual(("requested_ns",), time.time_ns() + 10**18)
    with running_on(engine):
        assert read("requests", [later]) == []
        assert read("bodies", [ds.EqualTo(("connection",), 1)]) == []
        assert read("requests", [ds.EqualTo(("api",), "NoSuchApi")]) == []
        (*_, row) = read("requests", [], columns="client_id, requested_at,api_key")
    assert [*row] == ["api_key", "client_id", "requested_at"]


def test_columns_are_those_of_the_whole_table(everything: dict[str, list[dict[str, Any]]]) -> None:
    for columns in (["client_id", "latency_ns"], ["api", "errors"]):
        found = read("requests", [], columns=",".join(columns))
        assert keys(found) == keys(
            [{name: row[name] for name in row if name in columns} for row in everything["requests"]]
        )


def test_an_unknown_column_is_named() -> None:
    require_module("pyspark")
    from wiredump.spark.table_source import OptionError

    with pytest.raises(OptionError, match="the table topics has no column nonsense; its columns"):
        read("topics", [], columns="topic,nonsense")


@pytest.mark.slow
@pytest.mark.java
def test_spark_hands_filters_over(spark: Any) -> None:
    """The plan has them, and the rows are those of a filter without the setting."""
    from wiredump.spark import KafkaCapture

    spark.dataSource.register(KafkaCapture)
    reader = spark.read.format("kafka_capture").option("table", "requests")
    frame = reader.load(str(file_of(NAME))).filter("api = 'Metadata' AND requested_ns > 5")
    plan = frame._jdf.queryExecution().toString()
    found = frame.count()
    assert "PushedFilters" in plan or "requested_ns" in plan
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        again = reader.load(str(file_of(NAME))).filter("api = 'Metadata' AND requested_ns > 5")
        assert again.count() == found > 0
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
