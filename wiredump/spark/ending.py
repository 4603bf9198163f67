"""What a stream's tables have only when asked for: the tables that depend on all batches and, at
the end of the stream, the rows of connections that were still open and of topics without a name.

All files are written before any is published, so that readers rarely see only some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wiredump.rows.connections import account_rows, lineage_rows
from wiredump.rows.exchanges import Row
from wiredump.spark.microbatch import Micro
from wiredump.spark.naming import changed_names, give
from wiredump.spark.outputs import Parts
from wiredump.spark.stages import from_excerpts
from wiredump.spark.stream_folder import Record, StreamFolder, Waiting
from wiredump.storage import Location
from wiredump.tables.completion import RUN_TABLES
from wiredump.tables.deferred_merge import NAMES, merge_names
from wiredump.tables.deferred_rows import EXCERPTS, NAMED, unnamed
from wiredump.tables.parts import Counts, Manifest, PartWriter, summed
from wiredump.tables.publishing import STAGING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Ending", "learn_names", "prepare", "staged"]

_TOPICS: Final = "topics"


class Ending(NamedTuple):
    """The files of the end, the rows in them by table, and the counts of all batches."""

    parts: list[Parts]
    rows: dict[str, int]
    sums: Counts


def staged(work: str, made: Sequence[Manifest], kind: str) -> list[tuple[int, Location]]:
    """Return the files of one kind that tasks wrote: the number of the task, and the file."""
    folder = Location(work) / STAGING / kind
    return [
        (number, folder / each.parts[kind].file)
        for number, each in enumerate(made)
        if kind in each.parts
    ]


class Learnt(NamedTuple):
    """The names of topics as far as a batch tells them: their file and rows, and the files of
    unnamed rows of earlier batches that get names now."""

    file: Location
    topics: list[Row]
    renamed: list[str]


def learn_names(
    store: StreamFolder, work: str, made: Sequence[Manifest], names: str | None,
    waiting: Mapping[str, Waiting],
) -> Learnt:  # fmt: skip
    """Add the names that tasks learnt to those of earlier batches."""
    new = Location(work) / STAGING / NAMES
    new.parent.mkdir()
    old = store.folder / names if names is not None else None
    learnt = [file for _, file in staged(work, made, _TOPICS)]
    topics = merge_names([*([old] if old is not None else []), *learnt], new)
    changed = changed_names(old, new)
    return Learnt(new, topics, [name for name, each in waiting.items() if changed & set(each.ids)])


def prepare(
    spark: SparkSession, store: StreamFolder, tables: Sequence[str], record: Record | None,
    micro: Micro | None, partitions: int, shown: Callable[[str], str],
) -> Ending:  # fmt: skip
    """Write everything that depends on all batches up to ``record``; ``micro`` has what closed the
    open connections, at the end of the stream."""
    work = str(store.work)
    kept = micro.kept if micro is not None else []
    waiting = record.unnamed if record is not None and micro is not None else {}
    names, topics, _ = learn_names(
        store, work, kept, record.names if record is not None else None, waiting
    )
    sources = [str(file) for table in NAMED for _, file in staged(work, kept, unnamed(table))]
    sources += [store.path(name) for name in waiting]
    parts: list[Parts] = [
        {each.table: each.part} for each in give(spark, sources, str(names), work)
    ]
    excerpts = [*store.excerpts(record), *(str(file) for _, file in staged(work, kept, EXCERPTS))]
    more: list[Manifest] = [*kept]
    if excerpts:
        count = min(len(excerpts), partitions)
        more += from_excerpts(spark, excerpts, work, tables, count)
    writer = PartWriter(work, (*RUN_TABLES, _TOPICS), 0)
    writer.add(lineage_rows(_sources(store, kept, shown)))
    sums = summed([*([record.total] if record is not None else []), *kept])
    writer.add(account_rows(sums.account))
    writer.add(topics)
    more.append(writer.manifest())
    for each in more:
        # Parts of topics that tasks learnt are in the last manifest, all together.
        wanted = {name for name in tables if name != _TOPICS or each is more[-1]}
        parts.append({name: part for name, part in each.parts.items() if name in wanted})
    rows: dict[str, int] = {}
    for made in parts:
        for table, part in made.items():
            rows[table] = rows.get(table, 0) + part.rows
    return Ending(parts, rows, sums)


def _sources(
    store: StreamFolder, kept: Sequence[Manifest], shown: Callable[[str], str]
) -> Iterator[tuple[Any, ...]]:
    """Return the rows of ``lineage``."""
    noted = list(store.noted())
    times = summed(kept)
    for each in noted:
        for number, (first, last) in each.times.items():
            times.span(number, first, last)
    for each in noted:
        for taken in each.files:
            number, file = taken.number, taken.file
            seen = times.times.get(number, (None, None))
            yield number, shown(file.path), file.kind, each.read[number], *seen
