"""Tables of records that no exchange is made for are those that exchanges give."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.capture import Conversation
from kproto.capture.packets import ethernet_frame
from tests.captures.reading import NAMES
from tests.captures.test_captures import uncompressed
from tests.support.full import quick
from tests.wiredump.quickly import tables_of
from tests.wiredump.rows.test_batches import fetched, metadata, produce
from tests.wiredump.rows.test_record_columns import fields
from tests.wiredump.spark.made_up import pcap, times, torn
from wiredump import native
from wiredump.rows.batches import BatchRows

pytestmark = pytest.mark.usefixtures("extension")

WANTED = [("records",), ("records", "topics", "lineage", "account"), ("records", "fetches")]


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


def made(data: bytes, folder: Path, tables: tuple[str, ...], *, quickly: bool) -> list[Any]:
    place = folder / "capture.pcap"
    place.write_bytes(data)
    with native.using(native.built() if quickly else None):
        found = tables_of(place, folder / ("quick" if quickly else "slow"), tables, bodies=True)
    return [(name, sorted(map(repr, rows))) for name, _, rows in found]


def assert_same(data: bytes, tables: tuple[str, ...]) -> None:
    with TemporaryDirectory() as folder:
        slow = made(data, Path(folder), tables, quickly=False)
        assert made(data, Path(folder), tables, quickly=True) == slow


@settings(max_examples=quick(60, 12))
@given(captures(), st.sampled_from(WANTED))
def test_made_up_captures(data: bytes, tables: tuple[str, ...]):
    assert_same(data, tables)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if "everyday" not in name])
def test_real_captures(name: str):
    for tables in WANTED:
        assert_same(uncompressed(name), tables)


def test_no_exchange_is_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
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
    frames = [
        (1000 * at, frame, len(frame)) for at, frame in enumerate(map(ethernet_frame, packets))
    ]
    seen = {"add": 0, "add_frame": 0}
    add, add_frame = BatchRows.add, BatchRows.add_frame

    def added(self: BatchRows, *given: Any) -> Any:
        seen["add"] += 1
        return add(self, *given)

    def framed(self: BatchRows, *given: Any) -> bool:
        seen["add_frame"] += 1
        return add_frame(self, *given)

    monkeypatch.setattr(BatchRows, "add", added)
    monkeypatch.setattr(BatchRows, "add_frame", framed)
    made(pcap(frames), tmp_path, ("records",), quickly=True)
    assert 1 <= seen["add"] <= 3  # the first, before a connection is known, and the damaged one
    assert seen["add_frame"] == 1
