"""The last stage: everything that depends on several connections, from what tasks set aside.

One task merges the names of topic ids, which are as few as topics. Then rows without a name get it,
with a task for each file; and exchanges that others depend on are read by table and key
(``wiredump.knowledge.following``).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wiredump.knowledge.following import FOLLOWED, Follower, follower_of
from wiredump.rows.exchanges import Row
from wiredump.storage import Location
from wiredump.tables.arrow import file_schema, of_file, of_rows
from wiredump.tables.deferred_rows import decode_excerpt, schema_of, unnamed
from wiredump.tables.parts import Manifest, PartWriter
from wiredump.tables.publishing import STAGING, Part
from wiredump.tables.writer import encodings

__all__ = [
    "NAMES", "Named", "Names", "gather_names", "give_names", "merge_names", "name_rows", "named",
    "read_names", "write_followed",
]  # fmt: skip

NAMES: Final = "names.parquet"
"""In the staging folder: what is known of topics when tasks begin that want to know."""


class Names:
    """Topic ids with their names and times: rows of ``topics``, or the file of them that
    ``merge_names`` wrote from what all tasks learnt."""

    def __init__(self, names: Location | pa.Table) -> None:
        self._table = names if isinstance(names, pa.Table) else read_names(names)
        self._known = {
            row["topic_id"]: (row["topic"], row["first_ns"]) for row in self._table.to_pylist()
        }

    def name(self, topic_id: str, at_ns: int) -> str | None:
        """Return the name, if a message had it by then."""
        known = self._known.get(topic_id)
        return known[0] if known is not None and known[1] <= at_ns else None

    def column(self, ids: pa.Array, at_ns: pa.Array) -> pa.Array:
        """Return the names of many ids."""
        index = pc.index_in(ids, value_set=self._table.column("topic_id"))
        since = self._table.column("first_ns").combine_chunks().take(index)
        names = self._table.column("topic").combine_chunks().take(index)
        known = pc.less_equal(since, at_ns)
        return pc.if_else(known, names, pa.nulls(len(ids), pa.string()))


def read_names(file: Location) -> pa.Table:
    """Read a file of ``topics``."""
    with file.open_input() as source, pq.ParquetFile(source) as found:
        return found.read()


def merge_names(files: Iterable[Location], into: Location) -> list[Row]:
    """Merge files of ``topics``: the earliest name of each id."""
    known: dict[str, tuple[int, str]] = {}
    for file in files:
        for row in read_names(file).to_pylist():
            seen = row["first_ns"], row["topic"]
            known[row["topic_id"]] = min(seen, known.get(row["topic_id"], seen))
    rows: list[Row] = [
        ("topics", (topic_id, name, first_ns))
        for topic_id, (first_ns, name) in sorted(known.items())
    ]
    table = of_rows(schema_of("topics"), [row for _, row in rows])
    pq.write_table(table, into.path, filesystem=into.filesystem)
    return rows


def gather_names(folder: str, files: Iterable[str], task: int) -> Manifest:
    """Return the table ``topics`` from what tasks wrote."""
    staging = Location(folder) / STAGING
    rows = merge_names([staging / "topics" / file for file in files], staging / NAMES)
    writer = PartWriter(folder, ("topics",), task)
    writer.add(rows)
    return writer.manifest()


def give_names(folder: str, table: str, file: str) -> Manifest:
    """Return the file's rows in the form of ``table``, with the names that are known."""
    staging = Location(folder) / STAGING
    place = staging / table
    place.mkdir()
    name = f"named-{os.urandom(8).hex()}-{file}"
    names = Names(staging / NAMES)
    rows = name_rows(names, table, staging / f"unnamed-{table}" / file, place / name).rows
    return Manifest(parts={table: Part(name, rows)})


class Named(NamedTuple):
    """How many rows of an unnamed file were written, how many were kept back, and the topic ids of
    those."""

    rows: int
    kept: int
    without: list[str]


def name_rows(
    names: Names, table: str, source: Location, target: Location, rest: Location | None = None
) -> Named:
    """Write the rows of an unnamed file in the form of ``table``: all of them or, with ``rest``,
    those that get a name. The others go to ``rest``, unnamed."""
    count, kept, without = 0, 0, set[str]()
    with (
        _Writer(target, file_schema(table)) as writer,
        _Writer(rest, schema_of(unnamed(table))) as others,
    ):
        for batch, known, before in named(names, table, source):
            rows = of_file(table, pa.Table.from_batches([batch]))
            if rest is not None:
                is_known = pc.is_valid(known)
                rows, left = rows.filter(is_known), before.filter(pc.invert(is_known))
                without.update(pc.unique(left.column("wanted_id")).to_pylist())
                kept += left.num_rows
                others.add(pa.Table.from_batches([left]))
            count += rows.num_rows
            writer.add(rows)
    return Named(count, kept, sorted(without))


class _Writer:
    """Writes a file of rows; without a ``place`` it must get none."""

    def __init__(self, place: Location | None, schema: pa.Schema) -> None:
        self._place, self._schema = place, schema
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> _Writer:
        if self._place is not None:
            files = self._place.filesystem
            self._writer = pq.ParquetWriter(
                self._place.path, self._schema, filesystem=files, **encodings(self._schema)
            )
        return self

    def add(self, rows: pa.Table) -> None:
        assert self._writer is not None
        self._writer.write_table(rows)

    def __exit__(self, *about: object) -> None:
        if self._writer is not None:
            self._writer.close()


def named(
    names: Names, table: str, source: Location
) -> Iterator[tuple[pa.RecordBatch, pa.Array, pa.RecordBatch]]:
    """Yield the rows of an unnamed file in the form of ``table``, their names, and the rows as they
    were."""
    schema = schema_of(table)
    with source.open_input() as opened, pq.ParquetFile(opened) as file:
        for batch in file.iter_batches():
            wanted = batch.column("wanted_id")
            known = names.column(wanted, batch.column("wanted_ns"))
            if table == "anomalies":
                at, column = schema.get_field_index("reason"), _with_names(batch, known)
            else:
                at, column = schema.get_field_index("topic"), known
            arrays = batch.columns[: len(schema)]
            arrays[at] = column
            yield pa.RecordBatch.from_arrays(arrays, schema=schema), known, batch


def _with_names(batch: pa.RecordBatch, known: pa.Array) -> pa.Array:
    """Replace the id at the beginning of reasons by its name."""
    reasons = []
    for reason, wanted, name in zip(
        batch.column("reason").to_pylist(), batch.column("wanted_id").to_pylist(),
        known.to_pylist(), strict=True,
    ):  # fmt: skip
        reasons.append(reason if name is None else name + reason[len(wanted) :])
    return pa.array(reasons, pa.string())


def write_followed(
    folder: str, tables: Collection[str], batches: Iterable[pa.RecordBatch], task: int
) -> Manifest:
    """Write those of ``tables`` that depend on earlier exchanges, from exchanges that are sorted by
    ``EXCERPT_ORDER``."""
    names = Names(Location(folder) / STAGING / NAMES).name if "fetches" in tables else _nameless
    writer = PartWriter(folder, tuple(name for name in FOLLOWED if name in tables), task)
    place: tuple[str, str] | None = None
    follower: Follower | None = None
    for each in _excerpt_rows(batches):
        if (each["table_name"], each["key"]) != place:
            if follower is not None:
                writer.add(follower.end())
            place = each["table_name"], each["key"]
            follower = follower_of(each["table_name"], names)
        assert follower is not None
        writer.add(follower.feed(decode_excerpt(each["excerpt"])))
    if follower is not None:
        writer.add(follower.end())
    return writer.manifest()


def _nameless(topic_id: str, at_ns: int) -> None:
    return None


def _excerpt_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()
