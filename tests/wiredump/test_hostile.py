"""Captures made to mislead: nothing raises, nothing is believed twice, every byte is accounted for,
and work grows with the bytes."""

from __future__ import annotations

import random
from dataclasses import replace
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.capture import container
from kproto.capture.packets import ACK, SYN
from tests.support.full import either
from tests.wiredump.readers.conversations import Connection, Sent, cut, packets
from tests.wiredump.test_search import beat, beaten
from wiredump.model import Exchange, Item
from wiredump.readers import Limits, Streams
from wiredump.search import JUDGED_AT_LEAST, JUDGED_PER_BYTE, Candidate, Search
from wiredump.sources.captures import CaptureItems

RECORD = container.pcap_record(10**9, bytes(60))
MISLEADING = [
    container.pcap_header(1),
    RECORD,
    RECORD * 20,
    container.pcapng_section() + container.pcapng_interface(1),
    beat(1),
    beaten(1),
    beat(2)[:9],
    beaten(2)[:6],
    pack(">ii", 4, 1) * 8,
    pack(">ihhi", 100_000_000, 0, 0, 1),
    pack(">ihhi", 8, 18, 0, 1) * 4,
    pack(">ii", 1 << 20, 1) * 6,
    pack(">i", -1),
    b"\x16\x03\x01\x00\x05",
    bytes(50),
    b"\xff" * 50,
]

GARBAGE = {
    "zeros": bytes(64),
    "sizes": pack(">ii", 60, 1) * 8,
    "requests": beat(1)[:-1],
    "responses": beaten(1)[:-1],
}

STREAMS = st.lists(st.one_of(st.sampled_from(MISLEADING), st.binary(max_size=20)), max_size=12).map(
    b"".join
)


def read(made: list[Sent], connection: Connection, ports: frozenset[int]) -> list[Item]:
    streams, items = Streams(Limits(alone=True)), CaptureItems(ports=ports)
    found = list(items.read(streams.read(packets(made, connection))))
    streams.account.check()
    items.account.check()
    assert items.account.payload == sum(len(each.data) for each in made)
    return found


@given(
    st.tuples(STREAMS, STREAMS),
    st.lists(st.integers(1, 400), max_size=12),
    st.booleans(),
    st.sampled_from([frozenset({9092}), frozenset(), frozenset({50_000})]),
    st.integers(0, 2**32),
)
def test_payload_that_looks_like_anything(streams, cuts, from_start, ports, seed) -> None:
    """Headers of captures and of frames, in both directions, torn and repeated."""
    rng = random.Random(seed)
    sent = cut(streams[0], cuts, 0) + cut(streams[1], cuts, 1)
    rng.shuffle(sent)
    sent = [each for each in sent for _ in range(rng.choice((0, 1, 1, 1, 2)))]
    start = [Sent(0, 0, flags=SYN), Sent(1, 0, flags=SYN | ACK)] if from_start else []
    items = read(start + sent, Connection(), ports)
    # No byte is in two frames.
    ends = {"request": 0, "response": 0}
    frames = [
        frame
        for item in items
        if isinstance(item, Exchange)
        for frame in (item.request, item.response)
        if frame is not None
    ]
    for frame in sorted(frames, key=lambda frame: frame.offset):
        assert frame.offset >= ends[frame.direction]
        ends[frame.direction] = frame.offset + frame.size


@pytest.mark.parametrize("piece", GARBAGE.values(), ids=GARBAGE)
@pytest.mark.parametrize("size", [1, 64, pytest.param(1448, marks=pytest.mark.slow)])
@pytest.mark.parametrize("port", [9092, 1])
def test_looking_for_a_connection_in_garbage(monkeypatch, piece, size, port) -> None:
    """In the middle of a connection, whatever the packets are: no more is looked at than a few
    times what there is."""
    work = {"looked": 0, "judged": 0}
    find, decodes = Search.find, Search._decodes

    def counted(self, frames, most):
        found = find(self, frames, most)
        work["looked"] += found.keep - self.start + frames.least
        return found

    def judged(self, frames, candidate: Candidate):
        before = self._credit
        told = decodes(self, frames, candidate)
        work["judged"] += before - self._credit
        return told

    monkeypatch.setattr(Search, "find", counted)
    monkeypatch.setattr(Search, "_decodes", judged)
    total = 60 * size
    stream = (piece * (total // len(piece) + 1))[:total]
    sent = [
        Sent(side, at, stream[at : at + size]) for at in range(0, total, size) for side in (0, 1)
    ]
    read(sent, Connection(), frozenset({port}))
    # Both directions, to tell what it is, and then to find its frames; and a header a packet.
    assert work["looked"] <= 2 * 2 * total + 2 * 16 * len(sent)
    assert work["judged"] <= 4 * (JUDGED_AT_LEAST + JUDGED_PER_BYTE * total)


@pytest.mark.slow
def test_very_many_tiny_connections() -> None:
    """Each asks and is never answered; half of them lack their beginning, and ports come again."""
    count = either(100_000, sampled=20_000)
    streams, items = Streams(Limits(alone=True)), CaptureItems()
    exchanges = 0
    for number in range(count):
        connection = replace(Connection(), port=1_024 + number % 60_000, isns=(number, 5))
        sent = [Sent(0, 0, flags=SYN), Sent(0, 0, beat(number))]
        for packet in packets(sent[number % 2 :], connection):
            for event in streams.feed(packet):
                exchanges += sum(isinstance(item, Exchange) for item in items.feed(event))
    for event in streams.close():
        exchanges += sum(isinstance(item, Exchange) for item in items.feed(event))
    assert not items.settle()
    streams.account.check()
    items.account.check()
    assert items.account.payload == items.account.frames + items.account.retransmitted
    assert exchanges == count
