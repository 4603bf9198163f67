"""Anything at all as packets and as segments: no exception, bounded memory, an exact account."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wiredump.readers.conversations import LINKS, Connection, Sent, packets
from wiredump.readers import (
    Account,
    Anomaly,
    Closed,
    Data,
    Event,
    Gap,
    Limits,
    Opened,
    Packet,
    Retransmission,
    Segment,
    Streams,
    TcpReassembler,
)
from wiredump.readers.ledger import OVERHEAD

LINK_TYPES = sorted({link_type for link_type, _ in LINKS.values()} | {105, 228, 229})
TIMES = st.integers(0, 2**63 - 1)
FLOWS = st.sampled_from(
    [
        bytes.fromhex("0a000001 0a000002 c350 2384"),
        bytes.fromhex("0a000002 0a000001 2384 c350"),
        bytes.fromhex("0a000001 0a000001 0001 0001"),  # to itself
        bytes(36),
    ]
)
# Numbers that meet each other: around 0, around the wrap, a window away.
NUMBERS = st.one_of(
    st.integers(0, 40),
    st.integers(2**32 - 40, 2**32 - 1),
    st.integers(2**30 - 20, 2**30 + 20),
    st.integers(0, 2**32 - 1),
)
SEGMENTS = st.builds(
    Segment,
    flow=FLOWS,
    sequence=NUMBERS,
    acknowledgement=NUMBERS,
    flags=st.one_of(st.just(0x10), st.integers(0, 255)),
    window=st.just(1),
    payload=st.binary(max_size=30).map(memoryview),
    missing=st.one_of(st.just(0), st.integers(0, 40)),
    timestamp_ns=st.one_of(st.integers(0, 10**12), TIMES),
    capture=st.just(0),
    offset=st.just(0),
)
LIMITS = st.builds(
    Limits,
    flow_bytes=st.integers(0, 2_000),
    total_bytes=st.integers(0, 2_000),
    reorder_ns=st.integers(0, 10**9),
    hole_ns=st.integers(0, 10**11),
    recent_bytes=st.integers(0, 2_000),
    connections=st.integers(1, 4),
)


@given(st.lists(SEGMENTS, max_size=60), LIMITS)
def test_any_segments(segments, limits):
    account = Account()
    tcp = TcpReassembler(account, limits)
    positions: dict[tuple[int, int], int] = {}
    totals: dict[Any, int] = {Data: 0, Gap: 0, Retransmission: 0, Anomaly: 0}
    opened = 0
    closed: set[int] = set()

    def look_at(events: list[Event]) -> None:
        nonlocal opened
        for event in events:
            if isinstance(event, Opened):
                assert event.connection == opened
                opened += 1
            elif isinstance(event, Closed):
                assert event.connection not in closed
                closed.add(event.connection)
            else:
                length = len(event.data) if isinstance(event, Data) else event.length
                totals[type(event)] += length
                if isinstance(event, Data | Gap):
                    assert event.connection not in closed
                    key = (event.connection, event.direction)
                    assert event.stream_offset == positions.get(key, 0)
                    assert length > 0
                    positions[key] = event.stream_offset + length

    for segment in segments:
        look_at(tcp.feed(segment))
        account.segments += 1
        account.packets += 1
        tcp.account.check()
        # What one packet brings in may stand above the limit, no more.
        assert account.buffered <= limits.total_bytes + 30 + OVERHEAD
    look_at(tcp.close())
    tcp.account.check()
    assert account.buffered == 0
    assert closed == set(range(opened))
    assert account.payload == sum(len(segment.payload) for segment in segments)
    assert totals == {
        Data: account.data,
        Gap: account.missing + account.beyond_limit,
        Retransmission: account.retransmitted,
        Anomaly: account.anomalous,
    }


@st.composite
def damaged_packets(draw):
    """Packets of a conversation with some bytes changed, some cut, or of no sense at all."""
    made = []
    for _ in range(draw(st.integers(0, 12))):
        link = draw(st.sampled_from(sorted(LINKS)))
        connection = Connection(
            version=draw(st.sampled_from((4, 6))),
            link=link,
            extensions=tuple(draw(st.lists(st.sampled_from((0, 43, 44, 51, 60)), max_size=2))),
        )
        sent = Sent(
            draw(st.integers(0, 1)), draw(st.integers(0, 20)), draw(st.binary(max_size=40)),
            fragment_size=draw(st.sampled_from((0, 0, 8, 24))),
        )  # fmt: skip
        for packet in packets([sent], connection):
            data = bytearray(packet.data)
            for _ in range(draw(st.integers(0, 3))):
                data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
            data = data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data
            made.append((packet.link_type, bytes(data), packet.original_length))
    garbage = st.tuples(
        st.sampled_from(LINK_TYPES), st.binary(max_size=80), st.integers(0, 2**32 - 1)
    )
    made += draw(st.lists(garbage, max_size=4))
    return [
        Packet(number, draw(TIMES), link_type, memoryview(data), length)
        for number, (link_type, data, length) in enumerate(draw(st.permutations(made)))
    ]


@given(damaged_packets())
def test_any_packets(made):
    streams = Streams()
    events = []
    for packet in made:
        events += streams.feed(packet)
        streams.account.check()
    events += streams.close()
    account = streams.account
    account.check()
    assert account.buffered == 0
    assert account.packets == len(made)
    assert account.payload <= sum(len(packet.data) for packet in made)
    assert account.anomalous == sum(event.length for event in events if isinstance(event, Anomaly))


@pytest.mark.slow
def test_small_pieces_cost_what_they_cost():
    """A byte at every second position: what waits is counted with what keeping it costs, and gives
    way where that is too much."""
    limit = 1 << 20
    streams, flow = Streams(Limits(flow_bytes=limit)), Connection()
    start = [Sent(0, 0, flags=2), Sent(1, 0, flags=0x12)]
    sent = start + [Sent(0, 2 * number + 1, b"x") for number in range(20_000)]
    most = 0
    for packet in packets(sent, flow, step_ns=1):
        streams.feed(packet)
        most = max(most, streams.account.buffered)
    assert most * (OVERHEAD + 1) <= limit + OVERHEAD + 1
    streams.close()
    streams.account.check()
