"""A session that does with lists what a stream asks of Spark: the same stages and tasks, without
Java, so that hypothesis can afford a thousand of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from wiredump.spark import stages
from wiredump.spark.columns import PACKET_SCHEMA, SQL_SCHEMA
from wiredump.tables.deferred_rows import EXCERPTS, EXCERPTS_SQL, schema_of

_SCHEMAS = {SQL_SCHEMA: PACKET_SCHEMA, EXCERPTS_SQL: schema_of(EXCERPTS)}
_now = 0


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> FakeSession:
    return faked(monkeypatch)


def faked(monkeypatch: pytest.MonkeyPatch) -> FakeSession:
    """The session, with tasks that know their numbers."""
    for module in ("job", "microbatch", "stages"):
        monkeypatch.setattr(f"wiredump.spark.{module}.task_number", lambda: _now)
    assert stages.task_number() == 0
    return FakeSession()


class Condition:
    def __init__(self, holds: Callable[[dict[str, Any]], bool]) -> None:
        self.holds = holds

    def __or__(self, other: Condition) -> Condition:
        return Condition(lambda row: self.holds(row) or other.holds(row))

    def __invert__(self) -> Condition:
        return Condition(lambda row: not self.holds(row))


class Column(Condition):
    def __init__(self, name: str) -> None:
        super().__init__(lambda row: bool(row[name]))
        self._name = name

    def __eq__(self, value: object) -> Condition:  # type: ignore[override]
        return Condition(lambda row: row[self._name] == value)

    def __ne__(self, value: object) -> Condition:  # type: ignore[override]
        return Condition(lambda row: row[self._name] != value)

    def __lt__(self, value: int) -> Condition:
        return Condition(lambda row: row[self._name] < value)

    __hash__ = None  # type: ignore[assignment]


class FakeFrame:
    """Tables, one a partition."""

    def __init__(self, parts: Sequence[pa.Table]) -> None:
        self._parts = list(parts)

    def __getattr__(self, name: str) -> Column:
        if name.startswith("_"):
            raise AttributeError(name)
        return Column(name)

    def mapInArrow(self, task: Callable[..., Iterable[pa.RecordBatch]], schema: str) -> FakeFrame:
        global _now
        made = []
        known = _SCHEMAS.get(schema)
        if not any(part.num_rows for part in self._parts):  # Spark may leave such a stage out
            return FakeFrame([known.empty_table()] if known is not None else [])
        for number, part in enumerate(self._parts):
            _now = number
            batches = list(task(iter(part.to_batches(max_chunksize=37))))
            if batches or known is not None:
                made.append(pa.Table.from_batches(batches, known or batches[0].schema))
        _now = 0
        return FakeFrame(made)

    def filter(self, condition: Condition) -> FakeFrame:
        return FakeFrame(
            [
                part.filter(
                    pa.array([condition.holds(row) for row in part.to_pylist()], pa.bool_())
                )
                for part in self._parts
            ]
        )

    def repartition(self, count: int, *names: str) -> FakeFrame:
        whole = pa.concat_tables(self._parts)
        if not names:
            return FakeFrame([whole] + [whole.slice(0, 0)] * (count - 1))
        share = pa.array(
            [
                zlib.crc32(str(row).encode()) % count
                for row in whole.select(list(names)).to_pylist()
            ],
            pa.int64(),
        )
        return FakeFrame([whole.filter(pa.compute.equal(share, each)) for each in range(count)])

    def sortWithinPartitions(self, *names: str) -> FakeFrame:
        return FakeFrame(
            [part.sort_by([(name, "ascending") for name in names]) for part in self._parts]
        )

    def drop(self, *names: str) -> FakeFrame:
        return FakeFrame([part.drop_columns(list(names)) for part in self._parts])

    def unionAll(self, other: FakeFrame) -> FakeFrame:
        return FakeFrame([*self._parts, *other._parts])

    def collect(self) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for part in self._parts for row in part.to_pylist()]


class FakeSession:
    """What ``wiredump.spark`` uses of a SparkSession."""

    def range(self, start: int, end: int, step: int, parts: int) -> FakeFrame:
        assert (start, step) == (0, 1)
        assert parts == max(1, end)
        return FakeFrame([pa.table({"id": [each]}) for each in range(end)])

    def createDataFrame(self, rows: Sequence[tuple[Any, ...]], schema: str) -> FakeFrame:
        names = [column.split()[0] for column in schema.split(",")]
        return FakeFrame(
            [pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))]
        )
