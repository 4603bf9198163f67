"""What C gathers of a frame is what ``BatchRows.add_frame`` does, to the last piece."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.messages import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kproto.messages.fetch_response import PartitionData
from kproto.records import Record, build_batch
from tests.native.test_memory import LOOPS, least_growth
from tests.support.full import quick
from tests.wiredump.rows.tabled import exchange
from tests.wiredump.rows.test_batches import produce
from tests.wiredump.rows.test_record_columns import RECORDS, fields
from wiredump import native
from wiredump.rows import record_columns
from wiredump.rows.batches import BatchRows
from wiredump.rows.pieces import Piece

pytestmark = pytest.mark.usefixtures("extension")

Frame = tuple[int, int, int, int, int, bytes]
SINCE = 50
"""From when on names are known."""


def name_of(topic_id: str, at_ns: int) -> str | None:
    return f"named-{topic_id[-2:]}" if at_ns >= SINCE else None


@st.composite
def frames(draw: st.DrawFn) -> list[Frame]:
    """Produce requests and responses of fetches, of some topics with some partitions each; some
    with text that is not ASCII, or no frames of their version at all."""
    return [draw(frame()) for _ in range(draw(st.integers(1, 6)))]


@st.composite
def frame(draw: st.DrawFn) -> Frame:
    produced = draw(st.booleans())
    version = draw(st.sampled_from([3, 7, 9, 12, 13] if produced else [4, 11, 12, 13, 16]))
    topics = []
    for _ in range(draw(st.integers(0, 3))):
        parts = [
            (draw(st.integers(-1, 9)), draw(fields() | st.none()))
            for _ in range(draw(st.integers(0, 3)))
        ]
        which = draw(st.integers(0, 2))
        topics.append((uuid.UUID(int=which), ("foo", "bar", "früh")[which], parts))
    item = (asked if produced else answered)(topics, version)
    raw = bytearray((item.request if produced else item.response).raw)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1]))):
        raw[draw(st.integers(4, len(raw) - 1))] ^= 1 << draw(st.integers(0, 7))
    said = draw(st.sampled_from([version] * 5 + [99]))
    return (
        draw(st.integers(0, 3)), 0 if produced else 1, said, draw(st.integers(0, 2**40)),
        draw(st.integers(0, 2 * SINCE)), bytes(raw),
    )  # fmt: skip


def asked(topics: list[Any], version: int) -> Any:
    made = [
        TopicProduceData(
            partition_data=[PartitionProduceData(index=at, records=data) for at, data in parts],
            **({"topic_id": topic_id} if version >= 13 else {"name": name}),
        )
        for topic_id, name, parts in topics
    ]
    return exchange(ProduceRequest(acks=-1, topic_data=made), ProduceResponse(), version, at=1)


def answered(topics: list[Any], version: int) -> Any:
    made = [
        FetchableTopicResponse(
            partitions=[PartitionData(partition_index=at, records=data) for at, data in parts],
            **({"topic_id": topic_id} if version >= 13 else {"topic": name}),
        )
        for topic_id, name, parts in topics
    ]
    return exchange(FetchRequest(), FetchResponse(responses=made), version, at=1)


def gathered(given: list[Frame], how: Callable[[BatchRows], Any], *, apart: bool) -> Any:
    """Which frames were taken, and the rows of every piece."""
    rows = BatchRows(name_of, tables=("records",), values=True, apart=apart)
    take = how(rows)
    taken = [take(*each) for each in given]
    columns = [*RECORDS, "wanted_ns"]
    pieces = [piece for _, piece in rows.end() if isinstance(piece, Piece)]
    return taken, [list(piece.rows(columns)) for piece in pieces]


@settings(max_examples=quick(80, 12))
@given(frames(), st.booleans(), st.sampled_from([1, 3, record_columns.MOST_ROWS]))
def test_any_frames(given: list[Frame], apart: bool, most: int):
    with pytest.MonkeyPatch.context() as patch, native.using(native.built()):
        patch.setattr(record_columns, "MOST_ROWS", most)
        slow = gathered(given, lambda rows: rows.add_frame, apart=apart)
        quickly = gathered(given, lambda rows: rows.gatherer(), apart=apart)
    assert quickly == slow


def test_what_goes_wrong_in_what_is_called_comes_out():
    """And wrong arguments are refused."""
    raw = produce(build_batch([Record(value=b"v")]), 13).request.raw
    module = native.built()
    assert module is not None
    with native.using(module):
        rows = BatchRows(lambda *_: 1 // 0, tables=("records",))
        with pytest.raises(ZeroDivisionError):
            rows.gatherer()(1, 0, 13, 0, 0, raw)
        take = BatchRows(name_of, tables=("records",)).gatherer()
        for wrong in ((), (1, 0, 13, 0, 0, None), (1, 0, 13, 0, 1 << 70, raw)):
            with pytest.raises((TypeError, OverflowError)):
                take(*wrong)
        for arguments in ((), (None,) * 9, (None,) * 6 + ((), (), None)):
            with pytest.raises(TypeError):
                module.Gatherer(*arguments)


PLACES = struct.Struct("=8i")


@pytest.mark.parametrize(
    ("way", "error"),
    [
        (b"", TypeError),
        ((None,), TypeError),
        ((lambda *_: None, None, 4, -1), ValueError),
        ((lambda *_: 1, None, 2, 3), TypeError),
        ((lambda *_: ("", 0), None, 2, 3), TypeError),
        ((lambda raw, *_: (PLACES.pack(4, 4, 4, 1 << 30, 4, 1, 4, 16), len(raw)), None, 2, 3),
         ValueError),
        ((lambda raw, *_: (PLACES.pack(4, 2, 4, 1, 4, 1, 4, 16), len(raw)), None, 2, 3),
         ValueError),
        ((lambda raw, *_: (PLACES.pack(4, 4, -4, 1, 4, 1, 4, 16), len(raw)), None, 2, 3),
         ValueError),
    ],
)  # fmt: skip
def test_a_wrong_way_to_find_fields_is_refused(way: Any, error: type[Exception]):
    raw = produce(build_batch([Record(value=b"v")]), 13).request.raw
    with native.using(native.built()), pytest.MonkeyPatch.context() as patch:
        patch.setattr("wiredump.rows.batches.places_of", lambda *_: way)
        take = BatchRows(name_of, tables=("records",)).gatherer()
        with pytest.raises(error):
            take(1, 0, 13, 0, 0, raw)


@pytest.mark.counts_memory
def test_nothing_is_left_behind():
    raw = produce(build_batch([Record(value=b"v")]), 13).request.raw
    odd = produce(build_batch([Record(value=b"v")]) + b"?" * 80, 7).request.raw

    def once() -> None:
        rows = BatchRows(name_of, tables=("records",), apart=True)
        take = rows.gatherer()
        for version in range(-70, 0):
            take(1, 0, version, 0, 0, raw)
        for at_ns in (0, SINCE):
            assert take(1, 0, 13, 0, at_ns, raw)
        assert take(1, 0, 7, 0, 0, odd)
        assert len(list(rows.end())) == 2

    with native.using(native.built()):
        assert least_growth(once) < LOOPS
