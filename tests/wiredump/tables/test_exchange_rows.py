"""Rows that are made in C, without an exchange, are those that Python makes of exchanges."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kproto
from kproto.capture import Conversation
from kproto.capture.packets import ethernet_frame
from kproto.records import Compression, Record, build_batch, end_transaction_marker
from tests.captures.reading import NAMES
from tests.captures.test_captures import uncompressed
from tests.native.test_memory import LOOPS, least_growth
from tests.support.full import quick
from tests.wiredump.quickly import tables_of
from tests.wiredump.rows.test_batches import fetched, metadata, produce
from tests.wiredump.rows.test_record_columns import fields
from tests.wiredump.spark.made_up import pcap, times, torn
from wiredump import native
from wiredump.rows.batches import BatchRows
from wiredump.rows.schema import TABLES
from wiredump.tables import writer
from wiredump.tables.arrow import CODES_OF_TYPES, arrow_schema
from wiredump.tables.table_rows import TableRows

pytestmark = pytest.mark.usefixtures("extension")

PRINTS_BODIES = pytest.mark.skipif(
    kproto.engine != "native", reason="the engine is pure Python, which prints bodies of exchanges"
)
ALL = tuple(name for name in TABLES if name != "packets")
"""Whoever wants packets reads them one by one."""

WANTED = [
    ALL, ("records",), ("records", "topics", "lineage", "account"),
    ("records", "fetches"), ("frames", "requests"), ("connections", "batches"),
    ("bodies", "anomalies"), ("negotiations",), ("transactions",), ("frames", "elections"),
]  # fmt: skip


@st.composite
def captures(draw: st.DrawFn) -> bytes:
    """Some connections with records, and with names for their topics in some; torn a little."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    packets = []
    for number in range(draw(st.integers(1, 3))):
        talk = Conversation(
            ("10.0.0.1", 40_000 + number), ("10.0.1.1", 9092),
            segment_size=draw(st.sampled_from([100, 1448])),
        )  # fmt: skip
        packets += talk.open()
        for at, field in enumerate(draw(st.lists(fields() | st.none(), max_size=5))):
            make = draw(st.sampled_from([produce, fetched]))
            version = draw(st.sampled_from([7, 9, 13] if make is produce else [4, 11, 16]))
            item = metadata(at) if field is None else make(field, version, at=at)
            packets += talk.send(item.request.raw)
            if at and draw(st.sampled_from([True] * 7 + [False])):
                packets += talk.send(item.response.raw, from_server=True)
    taken = torn(packets, rng, draw(st.sampled_from([0, 0, 0.02])))
    moments = times(rng, len(taken), 0)
    return pcap([(time, data, size) for time, (data, size) in zip(moments, taken, strict=True)])


def made(
    data: bytes, folder: Path, tables: tuple[str, ...], *, quickly: bool, bodies: bool = True
) -> list[Any]:
    place = folder / "capture.pcap"
    place.write_bytes(data)
    with native.using(native.built() if quickly else None):
        found = tables_of(place, folder / ("quick" if quickly else "slow"), tables, bodies=bodies)
    return [(name, sorted(map(repr, rows))) for name, _, rows in found]


def assert_same(data: bytes, tables: tuple[str, ...], *, bodies: bool = True) -> None:
    with TemporaryDirectory() as folder:
        slow = made(data, Path(folder), tables, quickly=False, bodies=bodies)
        assert made(data, Path(folder), tables, quickly=True, bodies=bodies) == slow


@settings(max_examples=quick(60, 6))
@given(captures(), st.sampled_from(WANTED), st.sampled_from([True, True, False]))
def test_made_up_captures(data: bytes, tables: tuple[str, ...], bodies: bool):
    assert_same(data, tables, bodies=bodies)


@pytest.mark.slow
@settings(max_examples=quick(30, 3))
@given(captures())
def test_small_row_groups(data: bytes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "ROW_GROUP", 3)
        assert_same(data, ALL)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if "everyday" not in name])
def test_real_captures(name: str):
    for tables in WANTED:
        assert_same(uncompressed(name), tables)


def _pcap(packets: list[Any]) -> bytes:
    frames = map(ethernet_frame, packets)
    return pcap([(1000 * at, frame, len(frame)) for at, frame in enumerate(frames)])


@pytest.mark.parametrize("tables", [("records",), pytest.param(ALL, marks=PRINTS_BODIES)])
def test_no_exchange_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tables: tuple[str, ...]
):
    """Of what a frame tells alone; and of what it does not, one is."""
    talk = Conversation(("10.0.0.1", 40_000), ("10.0.1.1", 9092), segment_size=1448)
    packets = talk.open()
    for at in range(20):
        item = produce(b"", 9, at=at)
        packets += talk.send(item.request.raw)
        packets += talk.send(item.response.raw, from_server=True)
    damaged = bytearray(produce(b"", 9, at=21).request.raw)
    damaged[-1] = 9  # so many tagged fields
    packets += talk.send(bytes(damaged))
    packets += talk.send(produce(b"", 9, at=21).response.raw, from_server=True)
    seen = 0
    add = TableRows.add

    def added(self: TableRows, item: Any) -> Any:
        nonlocal seen
        seen += 1
        return add(self, item)

    monkeypatch.setattr(TableRows, "add", added)
    made(_pcap(packets), tmp_path, tables, quickly=True)
    assert 1 <= seen <= 3  # the first, before a connection is known, and the damaged one


@PRINTS_BODIES
def test_no_exchange_is_made_for_an_unusual_field_or_bytes_left_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Python makes the rows of one field, and of an exchange that others depend on."""
    plain = build_batch([Record(value=b"v")])
    wrong = bytearray(plain)
    wrong[-2] ^= 1  # its checksum does not fit
    talk = Conversation(("10.0.0.1", 40_000), ("10.0.1.1", 9092), segment_size=1448)
    packets = talk.open()
    for at, item in enumerate(
        [produce(plain, 9, at=0), metadata(1), fetched(bytes(wrong), 11, at=2),
         fetched(plain + bytes(wrong), 16, at=3), fetched(plain[:-1], 11, at=4)]
    ):  # fmt: skip
        response = item.response.raw
        if at == 1:
            response = (len(response) - 3).to_bytes(4) + response[4:] + b"?"
        packets += talk.send(item.request.raw)
        packets += talk.send(response, from_server=True)
    seen: list[Any] = []
    add = TableRows.add

    def added(self: TableRows, item: Any) -> Any:
        seen.append(item)
        return add(self, item)

    with monkeypatch.context() as patch:
        patch.setattr(TableRows, "add", added)
        quickly = made(_pcap(packets), tmp_path, ALL, quickly=True)
    assert len(seen) <= 1  # the first, before a connection is known
    assert quickly == made(_pcap(packets), tmp_path, ALL, quickly=False)
    rows = dict(quickly)
    assert len(rows["anomalies"]) == 2
    assert sum("bytes left over" in row for row in rows["requests"]) == 1


@PRINTS_BODIES
def test_only_the_usual_control_batches_have_their_rows_from_c(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Those that a broker writes at the end of a transaction."""
    plain = build_batch([Record(value=b"v")])
    usual = [
        end_transaction_marker(
            commit=commit, producer_id=9, producer_epoch=1, coordinator_epoch=2, timestamp=7
        )
        for commit in (True, False)
    ]
    marker = Record(key=bytes(4), value=bytes(6))
    unusual = [
        build_batch([marker, marker], is_control=True),
        build_batch(
            [Record(key=bytes(4), value=bytes(6), headers=(("a", None),))], is_control=True
        ),
        build_batch([Record(key=bytes(4), value=bytes(7))], is_control=True),
        build_batch([Record(key=bytes(5), value=bytes(5))], is_control=True),
        build_batch([marker], is_control=True, compression=Compression.GZIP),
    ]
    talk = Conversation(("10.0.0.1", 40_000), ("10.0.1.1", 9092), segment_size=1448)
    packets = talk.open()
    for at, field in enumerate([plain, plain + b"".join(usual), *unusual]):
        item = fetched(field, 11, at=at)
        packets += talk.send(item.request.raw)
        packets += talk.send(item.response.raw, from_server=True)
    left: list[bytes] = []
    rows = BatchRows._left_rows

    def left_rows(self: BatchRows, *field: Any) -> Any:
        left.append(field[-1])
        return rows(self, *field)

    monkeypatch.setattr(BatchRows, "_left_rows", left_rows)
    quickly = made(_pcap(packets), tmp_path, ALL, quickly=True)
    assert left == unusual
    assert quickly == made(_pcap(packets), tmp_path, ALL, quickly=False)


@pytest.mark.parametrize("tables", [("transactions",), ("batches", "transactions")])
def test_python_gets_the_bytes_of_a_request_without_response(tables: tuple[str, ...]):
    """Only those of a transaction are needed where they are answered."""
    talk = Conversation(("10.0.0.1", 40_000), ("10.0.1.1", 9092), segment_size=1448)
    packets = talk.open()
    for at in range(3):
        item = produce(b"", 9, at=at)
        packets += talk.send(item.request.raw)
        if at < 2:
            packets += talk.send(item.response.raw, from_server=True)
    assert_same(_pcap(packets), tables)


@PRINTS_BODIES
def test_what_goes_wrong_in_what_is_called_comes_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    def failing(*_: Any) -> None:
        raise ZeroDivisionError

    item = produce(b"", 9, at=1)
    talk = Conversation(("10.0.0.1", 40_000), ("10.0.1.1", 9092), segment_size=1448)
    packets = [*talk.open(), *talk.send(item.request.raw)]
    packets += talk.send(item.response.raw, from_server=True)
    for place in ("wiredump.tables.table_rows.printers_of", "wiredump.rows.batches.places_of"):
        with monkeypatch.context() as patch:
            patch.setattr(place, failing)
            with pytest.raises(ZeroDivisionError):
                made(_pcap(packets), tmp_path, ALL, quickly=True)


def test_wrong_arguments() -> None:
    module: Any = native.built()
    calls = (None,) * 3 + (True,) + (None,) * 4 + ((),) + (None,) * 2
    assert module.ExchangeRows(*calls, "kafka", (), ())
    frames = module.HeldRows(b"q", 1, 1)
    wrongs: Any = (
        (), (frames, *calls[1:], "kafka", (), ()), (*calls, None, (), ()),
        (*calls, "kafka", [], ()), (*calls, "kafka", ("x",), ()), (*calls[:10], 1, "kafka", (), ()),
        (*calls[:8], None, *calls[9:], "kafka", (), ()),
    )  # fmt: skip
    for wrong in wrongs:
        with pytest.raises(TypeError):
            module.ExchangeRows(*wrong)


@pytest.mark.slow
@pytest.mark.counts_memory
def test_nothing_is_left_behind(tmp_path: Path) -> None:
    module: Any = native.built()

    def once() -> None:
        rows = TableRows()
        held = {
            name: module.HeldRows(
                b"".join(CODES_OF_TYPES[each.type] for each in arrow_schema(name)), 9, 9
            )
            for name in ("frames", "requests", "bodies", "batches")
        }
        rows.of_exchanges(held.get, lambda name: None, lambda rows: None)

    with native.using(module):
        assert least_growth(once) < LOOPS
