"""Limits.alone: what becomes of a connection is its own affair."""

from __future__ import annotations

import random
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.wiredump.readers.conversations import Connection, Sent, handshake, packets
from wiredump.readers import Account, Event, Limits, Segment, TcpReassembler
from wiredump.readers.segments import SegmentReader

# Holes are given up early, few bytes may wait, and little is remembered: limits matter at once.
TIGHT = Limits(
    alone=True, flow_bytes=2_000, total_bytes=1, reorder_ns=5_000_000, hole_ns=40_000_000,
    recent_bytes=10**9, alone_bytes=1_500, connections=1,
)  # fmt: skip


def segments(rng: random.Random, port: int) -> list[Segment]:
    """One connection, with losses, repetitions and steps out of order."""
    sent = handshake()
    at = [0, 0]
    for _ in range(rng.randint(0, 12)):
        side = rng.randrange(2)
        data = rng.randbytes(rng.randint(1, 300))
        sent.append(Sent(side, at[side], data, acked=at[1 - side]))
        at[side] += len(data)
    kept = [each for each in sent for _ in range(rng.choice((0, 1, 1, 1, 1, 2)))]
    for place in range(1, len(kept)):
        if rng.random() < 0.2:
            kept[place - 1], kept[place] = kept[place], kept[place - 1]
    reader = SegmentReader(Account())
    out: list[Event] = []
    made = packets(kept, Connection(port=port), step_ns=rng.choice((10**6, 10**7)))
    return [segment for each in made if (segment := reader.feed(each, out)) is not None]


def told(events: list[Event]) -> dict[Any, list[Any]]:
    """By the client's port, without the number of the connection."""
    ports: dict[Any, int] = {}
    found: dict[Any, list[Any]] = {}
    for event in events:
        if hasattr(event, "client"):
            ports[event.connection] = event.client.port
        mine = found.setdefault(ports[event.connection], [])
        mine.append(msgspec.structs.replace(event, connection=0))
    return found


@given(st.integers(0, 2**32), st.integers(2, 5))
def test_a_connection_among_others_is_what_it_is_alone(seed: int, count: int) -> None:
    rng = random.Random(seed)
    talks = [segments(rng, 40_000 + number) for number in range(count)]
    alone: dict[Any, list[Any]] = {}
    for talk in talks:
        tcp = TcpReassembler(limits=TIGHT)
        events = [event for segment in talk for event in tcp.feed(segment)]
        alone |= told(events + tcp.close())
        tcp.account.check()
    together = TcpReassembler(limits=TIGHT)
    queues = [list(reversed(talk)) for talk in talks if talk]
    events = []
    while queues:
        queue = rng.choice(queues)
        events += together.feed(queue.pop())
        queues = [queue for queue in queues if queue]
    assert told(events + together.close()) == alone
