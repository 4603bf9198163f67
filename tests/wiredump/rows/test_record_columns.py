"""Rows of records come out of columns; here they are made one by one, of objects, and are the same.

On every engine, for any magic and codec, control batches, damage and cuts, whatever else is asked
for, and wherever a piece ends.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.errors import KprotoError
from kproto.records import Record, RecordBatches, build_batch, end_transaction_marker
from tests.records.strategies import batches
from tests.support import engines
from tests.support.full import quick
from tests.wiredump.rows.tabled import Tables, named, tables_of
from tests.wiredump.rows.test_batches import fetched, produce
from wiredump.bodies import read
from wiredump.model import Exchange
from wiredump.rows import record_columns
from wiredump.rows.pieces import Piece, Rows
from wiredump.rows.schema import TABLES
from wiredump.tables import writer
from wiredump.tables.table_rows import TableRows
from wiredump.tables.table_writer import TableWriter

RECORDS = [column.name for column in TABLES["records"].columns]


@pytest.fixture(params=engines.BUILT, autouse=True)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    with engines.running(request.param):
        yield request.param


# ---- one by one ------------------------------------------------------------------------------


def one_by_one(items: list[Exchange]) -> list[tuple[Any, ...]]:
    """Rows of ``records`` by way of JSON and objects, in the order of the bytes."""
    return [row for item in items for row in of_exchange(item)]


def of_exchange(item: Exchange) -> Iterator[tuple[Any, ...]]:
    produced = item.api_key == 0
    said, frame = read(item), item.request if produced else item.response
    side = said.request if produced else said.response
    if frame is None or side is None:
        return
    topics, parts = ("topicData", "partitionData") if produced else ("responses", "partitions")
    for topic in (side.body or {}).get(topics, []):
        name = topic.get("name" if produced else "topic")
        for part in topic.get(parts, []):
            index = part.get("index" if produced else "partitionIndex", -1)
            data = base64.b64decode(part.get("records") or "")
            for number, record in in_field(data, frame.direction == "response"):
                yield (
                    item.connection.id, frame.direction, frame.offset, name, topic.get("topicId"),
                    index, number, *record,
                )  # fmt: skip


def in_field(data: bytes, partial: bool) -> Iterator[tuple[int, tuple[Any, ...]]]:
    found = iter(RecordBatches(data, check_crc=False, allow_partial=partial))
    for number in range(len(data)):
        try:
            batch = next(found, None)
        except KprotoError:
            return
        if batch is None:
            return
        try:
            records = [] if batch.is_control else batch.records()
        except KprotoError:
            continue
        for record in records:
            yield number, of_record(record, batch.magic)


def of_record(record: Record, magic: int) -> tuple[Any, ...]:
    value = record.value
    digest = None if value is None else blake2b(value, digest_size=16).digest()
    time = None if magic == 0 else record.timestamp
    size = None if value is None else len(value)
    return record.offset, time, record.key, size, digest, len(record.headers), value


# ---- what is compared ------------------------------------------------------------------------


MARKER = end_transaction_marker(
    commit=True, producer_id=9, producer_epoch=0, coordinator_epoch=1, timestamp=7, base_offset=3
)
VERSIONS = [(produce, 3), (produce, 9), (produce, 13), (fetched, 4), (fetched, 16)]


@st.composite
def fields(draw: st.DrawFn) -> bytes:
    """Batches one behind the other, of which some bits may be wrong and the end may be missing."""
    built = st.builds(lambda batch: build_batch(batch[0], **batch[1]), batches())
    parts = draw(st.lists(built | st.just(MARKER), max_size=4))
    field = bytearray(b"".join(parts))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 3])) if field else 0):
        at = draw(st.integers(0, len(field) - 1))
        field[at] ^= 1 << draw(st.integers(0, 7))
    return bytes(field[: draw(st.sampled_from([len(field), len(field), len(field) * 2 // 3]))])


def cut(item: Exchange, at: int) -> Exchange:
    """As a capture's snaplen leaves it."""
    whole = item.request if item.api_key == 0 else item.response
    assert whole is not None
    frame = msgspec.structs.replace(whole, raw=whole.raw[:at], missing=whole.size - at)
    if item.api_key == 0:
        item.request = frame
    else:
        item.response = frame
    return item


@st.composite
def exchanges(draw: st.DrawFn) -> list[Exchange]:
    items = []
    for at, field in enumerate(draw(st.lists(fields(), max_size=4))):
        make, version = draw(st.sampled_from(VERSIONS))
        item = make(field, version, at=1 + at)
        size = (item.request if make is produce else item.response).size
        items.append(cut(item, draw(st.sampled_from([size, size, size, size * 2 // 3]))))
    return items


def rows_in(tables: Tables, **nulls: None) -> list[tuple[Any, ...]]:
    return [tuple({**row, **nulls}.values()) for row in tables.get("records", [])]


@settings(max_examples=quick(50, 12))
@given(exchanges(), st.integers(1, 5))
def test_rows_are_the_same_one_by_one(items, most: int) -> None:
    expected = named(("records", row) for row in one_by_one(items))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_columns, "MOST_ROWS", most)
        everything = tables_of(items, values=True)
        alone = tables_of(items, tables=["records"], values=True)
        hidden = tables_of(items, tables=["records", "batches"])
    assert everything.get("records", []) == alone.get("records", []) == expected.get("records", [])
    assert rows_in(hidden) == rows_in(alone, value=None)
    counted = [row["records"] or 0 for row in everything.get("batches", []) if not row["control"]]
    assert sum(counted) == len(rows_in(alone))
    assert hidden.get("batches", []) == everything.get("batches", [])


def parquet(folder: Path, given: list[Rows]) -> list[list[dict[str, Any]]]:
    """The rows of each row group that was written."""
    with TableWriter(folder, ["records"]) as files:
        files.add(given)
    with pq.ParquetFile(folder / "records" / "part-0.parquet") as file:
        return [file.read_row_group(at).to_pylist() for at in range(file.num_row_groups)]


@settings(max_examples=quick(15, 5))
@given(exchanges(), st.integers(1, 9), st.integers(1, 300), st.integers(1, 7), st.data())
def test_row_groups_are_the_same_of_pieces_and_of_rows(items, most, size, each, data) -> None:
    """And of pieces and rows one after the other, as they come."""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(record_columns, "MOST_ROWS", each)
        patch.setattr(writer, "ROW_GROUP", most)
        patch.setattr(writer, "ROW_GROUP_BYTES", size)
        patch.setattr(writer, "FEW", data.draw(st.sampled_from([0, 0, 3])))
        rows = TableRows(tables=["records"], values=True)
        pieces = [*chain.from_iterable(map(rows.add, items)), *rows.end({}, [], {})]
        alone: list[Rows] = []
        mixed: list[Rows] = []
        for name, piece in pieces:
            if name == "records":
                assert isinstance(piece, Piece)
                apart = [(name, row) for row in piece.rows(RECORDS)]
                assert len(apart) == piece.number
                alone += apart
                mixed += apart if data.draw(st.booleans()) else [(name, piece)]
        expected = parquet(Path(folder, "alone"), alone)
        assert sum(map(len, expected)) == len(one_by_one(items))
        assert parquet(Path(folder, "pieces"), pieces) == expected
        assert parquet(Path(folder, "mixed"), mixed) == expected


def test_a_batch_that_does_not_fit_is_a_piece_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_columns, "MOST_BYTES", 100)
    sizes = [40, 40, 90, 400, 1, 30]
    items = [
        produce(build_batch([Record(value=bytes(size))]), at=at) for at, size in enumerate(sizes)
    ]
    rows = TableRows(tables=["records"], values=True)
    found = [*chain.from_iterable(map(rows.add, items)), *rows.end({}, [], {})]
    told = [list(piece.rows(["value_size"])) for _, piece in found if isinstance(piece, Piece)]
    assert told == [[(40,), (40,)], [(90,)], [(400,)], [(1,), (30,)]]
