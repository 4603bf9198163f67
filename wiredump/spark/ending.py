"""What a stream's tables have only at the end: rows of connections that were still open, and the
tables that depend on all traffic. All files are written before any is published, so that readers
rarely see only some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wiredump.rows.connections import account_rows, lineage_rows
from wiredump.rows.exchanges import Row
from wiredump.spark.carrying import Kept
from wiredump.spark.checkpoint import Checkpoint, Taken, put
from wiredump.spark.microbatch import Micro
from wiredump.spark.naming import changed_names, give, table_of_file
from wiredump.spark.outputs import Outputs
from wiredump.spark.stages import from_excerpts
from wiredump.storage import Location
from wiredump.tables.completion import RUN_TABLES
from wiredump.tables.deferred_merge import NAMES, merge_names
from wiredump.tables.deferred_rows import EXCERPTS, NAMED, unnamed
from wiredump.tables.parts import Manifest, PartWriter
from wiredump.tables.publishing import STAGING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Ending", "Sums", "learn_names", "prepare", "staged"]

_TOPICS: Final = "topics"


class Ending(NamedTuple):
    """The files of the end and their places; ``renamed`` are files of unnamed rows of batches that
    get names now. ``rows`` counts by table."""

    moves: list[tuple[Location, Location]]
    renamed: list[str]
    rows: dict[str, int]

    def show(self) -> None:
        """Publish the files."""
        for source, target in self.moves:
            put(source, target)


class Sums(NamedTuple):
    """The driver's totals of all batches and the end. ``shown`` returns the name of a file for
    people."""

    shown: Callable[[str], str]
    files: Sequence[Taken]
    read: Mapping[int, int]
    times: Mapping[int, tuple[int, int]]
    account: Mapping[str, int]


def staged(work: str, kept: Sequence[Kept], kind: str) -> list[tuple[int, Location, int]]:
    """Yield the files of one kind that tasks wrote: the task, the file, its rows."""
    folder = Location(work) / STAGING / kind
    return [
        (each.task, folder / each.parts[kind].file, each.parts[kind].rows)
        for each in kept
        if kind in each.parts
    ]


class Learnt(NamedTuple):
    """The names of topics as far as a batch tells them: their file and rows, and the files of
    unnamed rows of earlier batches that get names now."""

    file: Location
    topics: list[Row]
    renamed: list[str]


def learn_names(store: Checkpoint, work: str, kept: Sequence[Kept]) -> Learnt:
    """Add the names that tasks learnt to those of earlier batches."""
    last, new = store.last, Location(work) / STAGING / NAMES
    old = store.folder / last.names if last is not None and last.names else None
    learnt = [file for _, file, _ in staged(work, kept, _TOPICS)]
    topics = merge_names([*([old] if old is not None else []), *learnt], new)
    changed = changed_names(old, new)
    wanting = last.unnamed if last is not None else {}
    return Learnt(new, topics, [name for name, ids in wanting.items() if changed & set(ids)])


def prepare(
    spark: SparkSession, store: Checkpoint, work: str, out: Outputs, micro: Micro, sums: Sums
) -> Ending:
    """Write everything that is not published yet."""
    staging = Location(work) / STAGING
    names, topics, renamed = learn_names(store, work, micro.kept)
    rows: dict[str, int] = {}
    moves: list[tuple[Location, Location]] = []
    fresh = [
        str(file) for table in NAMED for _, file, _ in staged(work, micro.kept, unnamed(table))
    ]
    sources = [*fresh, *(str(store.folder / name) for name in renamed)]
    for source, given in give(spark, sources, str(names), work).items():
        table, name = table_of_file(Location(source))
        begin = f"batch-{name}-named"
        if source in fresh:
            rows[table] = rows.get(table, 0) + given.rows
            begin = f"end-named-{len(moves):05d}"
        moves.append((Location(given.file), out.place(table, begin)))
    excerpts = [str(store.folder / name) for commit in store.commits for name in commit.excerpts]
    excerpts += [str(file) for _, file, _ in staged(work, micro.kept, EXCERPTS)]
    more: list[Manifest] = [*micro.kept]
    if excerpts:
        more += from_excerpts(
            spark, excerpts, work, out.tables, min(len(excerpts), len(micro.kept))
        )
    writer = PartWriter(work, (*RUN_TABLES, _TOPICS), 0)
    writer.add(lineage_rows(_sources(sums)))
    writer.add(account_rows(sums.account))
    writer.add(topics)
    more.append(writer.manifest())
    for number, each in enumerate(more):
        for table, part in each.parts.items():
            # Parts of topics that tasks learnt are in the last manifest, all together.
            if table in out.tables and (table != _TOPICS or each is more[-1]):
                source_of = staging / table / part.file
                moves.append((source_of, out.place(table, f"end-{number:05d}")))
                rows[table] = rows.get(table, 0) + part.rows
    return Ending(moves, renamed, rows)


def _sources(sums: Sums) -> Iterator[tuple[Any, ...]]:
    for each in sums.files:
        times = sums.times.get(each.number, (None, None))
        name = sums.shown(each.file.path)
        yield each.number, name, "capture", sums.read[each.number], *times
