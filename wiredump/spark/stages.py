"""What the stages of a batch and of a stream have in common: how tasks return results, and the
order in which they get rows."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from wiredump.spark.columns import FRAGMENT, SQL_SCHEMA
from wiredump.storage import Location
from wiredump.tables.deferred_merge import write_followed
from wiredump.tables.deferred_rows import EXCERPT_ORDER, EXCERPTS_SQL
from wiredump.tables.parts import Manifest, decode_manifest, encode_manifest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = [
    "Task",
    "answer",
    "answer_batch",
    "answers",
    "by_connection",
    "each_of",
    "from_excerpts",
    "manifests_of",
    "run_tasks",
    "task_number",
]

_ORDER: Final = ("order_ns", "capture", "ordinal")
_ANSWER: Final = "answer string"
_ROWS: Final = 1024

Task: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def answer_batch(text: str) -> pa.RecordBatch:
    """Return a task's result as a row."""
    return pa.RecordBatch.from_pydict({"answer": [text]})


def answer(manifest: Manifest) -> pa.RecordBatch:
    """Return the result of a task that wrote files."""
    return answer_batch(encode_manifest(manifest))


def by_connection(rows: DataFrame, count: int, join: Task | None) -> DataFrame:
    """Return the rows of packets in the order in which ``count`` tasks take them, all those between
    two ends together. ``join`` makes rows of fragments, in one task."""
    if join is not None:
        fragments = rows.filter((rows.kind == FRAGMENT) | (rows.capture < 0)).repartition(1)
        joined = fragments.sortWithinPartitions(*_ORDER).mapInArrow(join, SQL_SCHEMA)
        rows = rows.filter(rows.kind != FRAGMENT).unionAll(joined)
    return rows.repartition(count, "key").sortWithinPartitions("key", *_ORDER)


def run_tasks(rows: DataFrame, task: Task) -> list[Manifest]:
    """Return the results of all tasks."""
    return [decode_manifest(text) for text in answers(rows, task)]


def answers(rows: DataFrame, task: Task) -> list[str]:
    """Return the same without decoding."""
    return [row[0] for row in rows.mapInArrow(_at_home(task), _ANSWER).collect()]


def _at_home(task: Task) -> Task:
    """Keep PySpark's workers from collecting garbage after each task, which takes longer than many
    a task, since everything imported is traversed. What a worker has after its first task is not
    garbage."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from task(batches)
        if is_task() and not gc.get_freeze_count():
            gc.collect()
            gc.freeze()

    return run


def task_number() -> int:
    """Return the number of the task's partition."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


def is_task() -> bool:
    """Whether this runs in a worker of Spark's."""
    from pyspark import TaskContext

    return TaskContext.get() is not None


def each_of(
    spark: SparkSession, items: Sequence[Any], task: Callable[[Any], Iterable[pa.RecordBatch]],
    schema: str | StructType = _ANSWER,
) -> DataFrame:  # fmt: skip
    """Return a task for each item, which is sent with the code."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from task(items[number])

    return spark.range(0, len(items), 1, max(1, len(items))).mapInArrow(_at_home(run), schema)


def manifests_of(
    spark: SparkSession, items: Sequence[Any], task: Callable[[Any], Manifest]
) -> list[Manifest]:
    """Return the results of a task for each item."""

    def run(item: Any) -> Iterator[pa.RecordBatch]:
        yield answer(task(item))

    return [decode_manifest(row[0]) for row in each_of(spark, items, run).collect()]


def _excerpt_rows(file: str) -> Iterator[pa.RecordBatch]:
    with Location(file).open_input() as source, pq.ParquetFile(source) as found:
        yield from found.iter_batches(_ROWS)


def from_excerpts(
    spark: SparkSession, files: Sequence[str], folder: str, tables: Collection[str], count: int
) -> list[Manifest]:
    """Return those of ``tables`` that depend on earlier exchanges, from the exchanges kept."""
    rows = each_of(spark, files, _excerpt_rows, EXCERPTS_SQL).repartition(
        count, "table_name", "key"
    )

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield answer(write_followed(folder, tables, batches, task_number()))

    return run_tasks(rows.sortWithinPartitions(*EXCERPT_ORDER), task)
