"""The pipeline's stages one after the other in this process, with lists in the place of Spark's
shuffles; and the tables of one process, to compare with."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tests.wiredump.spark.engines import running_on
from wiredump.rows.schema import ON_REQUEST, TABLES
from wiredump.sources import open_sources
from wiredump.spark.columns import FRAGMENT, PACKET_SCHEMA, SPLIT
from wiredump.spark.connections import Options, write_connections
from wiredump.spark.fragments import join_fragments
from wiredump.spark.planning import plan, read_until_certain
from wiredump.spark.splits import Split, read_split
from wiredump.tables.deferred_merge import gather_names, give_names, write_followed
from wiredump.tables.deferred_rows import EXCERPT_ORDER, EXCERPTS, NAMED, unnamed
from wiredump.tables.making import make_tables
from wiredump.tables.parts import Manifest, SplitNote
from wiredump.tables.publishing import STAGING
from wiredump.tables.table_rows import TableRows

LOCAL = tuple(name for name in TABLES if name not in ("lineage", "account"))
Tables = dict[str, list[str]]


def single(
    paths: Sequence[str], folder: Path, *, tables: tuple[str, ...] = LOCAL, bodies: bool = True,
    rotated: bool = False, told: bool = False,
) -> Tables:  # fmt: skip
    """By one process. ``told``: those on request, too."""
    wanted = tuple(name for name in tables if told or name not in ON_REQUEST)
    every = (*wanted, "lineage", "account")
    rows = TableRows(tables=every, bodies=bodies)
    make_tables(open_sources(paths, rotated=rotated), rows, str(folder), every)
    return load(folder, tables)


def load(folder: Path, names: Sequence[str] = LOCAL) -> Tables:
    """The rows of each table, sorted, without timestamps, which the nanoseconds determine."""
    return {name: sorted(map(repr, _rows(folder / name, name))) for name in names}


def _rows(folder: Path, table: str) -> Iterator[dict[str, Any]]:
    if any("=" in each.name for each in folder.glob("*")):
        columns = [each.name for each in TABLES[table].columns]
        yield from ds.dataset(folder, partitioning="hive").to_table(columns).to_pylist()
        return
    for file in sorted(folder.rglob("*.parquet")):
        yield from pq.read_table(file).drop_columns(list(TABLES[table].timestamps)).to_pylist()


def packets(splits: list[Split]) -> tuple[pa.Table, list[SplitNote]]:
    batches = [batch for split in splits for batch in read_split(split)]
    table = pa.Table.from_batches(batches, PACKET_SCHEMA)
    notes = [
        msgspec.msgpack.decode(row["payload"], type=SplitNote)
        for row in table.to_pylist()
        if row["kind"] == SPLIT
    ]
    return table, notes


def read_all(
    paths: Sequence[str], split_bytes: int, told: bool = False
) -> tuple[pa.Table, list[SplitNote], set[int]]:
    """Packets, notes, and the captures that had to be read again. ``told``: with what the table of
    packets takes."""
    splits = plan(list(enumerate(paths)), split_bytes, merged=len(paths) > 1, packets=told)
    read = read_until_certain(lambda splits, learnt: packets(splits), list, splits, split_bytes)
    return read.result, read.notes, read.redone


def _sorted(table: pa.Table, *columns: str) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in columns])


def pipeline(
    paths: Sequence[str], folder: Path, *, split_bytes: int, tasks: int,
    tables: tuple[str, ...] = LOCAL, bodies: bool = True, told: bool = False,
    engines: tuple[str, str] | None = None,
) -> tuple[Tables, set[int], list[Manifest]]:  # fmt: skip
    """By the stages: tables, captures that were read again, manifests of connections. ``told``:
    those on request, too. ``engines`` read packets and connections; None: what is in use."""
    shutil.rmtree(folder, ignore_errors=True)
    wanted = tuple(name for name in tables if told or name not in ON_REQUEST)
    options = Options(out=str(folder), paths=dict(enumerate(paths)), tables=wanted, bodies=bodies)
    with running_on(engines[0]) if engines else nullcontext():
        table, notes, redone = read_all(paths, split_bytes, told)
    known = sorted({each for note in notes for each in note.secrets})
    options = msgspec.structs.replace(options, secrets_within=tuple(known))
    is_fragment = pa.array([kind == FRAGMENT for kind in table["kind"].to_pylist()])
    fragments = _sorted(table.filter(is_fragment), "order_ns", "capture", "ordinal")
    rows = table.filter(pa.compute.invert(is_fragment))
    if sum(note.fragments for note in notes):
        joined = list(join_fragments(fragments.to_batches(max_chunksize=7)))
        rows = pa.concat_tables([rows, pa.Table.from_batches(joined, PACKET_SCHEMA)])
    share = [zlib.crc32(key) % tasks for key in rows["key"].to_pylist()]
    manifests = []
    for task in range(tasks):
        mine = rows.filter(pa.array([each == task for each in share]))
        mine = _sorted(mine, "key", "order_ns", "capture", "ordinal")
        with running_on(engines[1]) if engines else nullcontext():
            manifests.append(write_connections(mine.to_batches(max_chunksize=50), options, task))
    assert sum(each.account["payload"] for each in manifests) == sum(
        each.expected for each in manifests
    )
    made = [*manifests, *(_learn(str(folder), manifests, tasks, tables) if bodies else ())]
    for name in tables:
        (folder / name).mkdir(exist_ok=True)
        for each in made:
            if name in each.parts:
                file = each.parts[name].file
                (folder / STAGING / name / file).rename(folder / name / file)
    return load(folder, tables), redone, manifests


def _learn(
    folder: str, manifests: list[Manifest], tasks: int, tables: Sequence[str]
) -> list[Manifest]:
    files = [each.parts.pop("topics").file for each in manifests if "topics" in each.parts]
    made = [gather_names(folder, files, 0)]
    for name in NAMED:
        for each in manifests:
            if unnamed(name) in each.parts:
                made.append(give_names(folder, name, each.parts[unnamed(name)].file))
    excerpts: list[dict[str, Any]] = []
    for each in manifests:
        if EXCERPTS in each.parts:
            place = Path(folder) / STAGING / EXCERPTS / each.parts[EXCERPTS].file
            excerpts += pq.read_table(place).to_pylist()
    for task in range(tasks):
        mine = [
            row
            for row in excerpts
            if zlib.crc32(f"{row['table_name']} {row['key']}".encode()) % tasks == task
        ]
        mine.sort(key=lambda row: tuple(row[name] for name in EXCERPT_ORDER))
        made.append(write_followed(folder, tables, _batches(mine), task))
    return made


def _batches(rows: list[dict[str, Any]]) -> list[pa.RecordBatch]:
    return pa.Table.from_pylist(rows).to_batches() if rows else []
