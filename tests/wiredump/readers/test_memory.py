"""Many connections at a time: what they take together is bounded, and every byte is accounted for.

By the count of what is kept, not by the machine's; connections themselves are not in it (about
12 KiB one that is open, see docs/explanation/pipeline.md).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from wiredump.readers import Anomaly, Data, Event, Gap, Limits, Retransmission, TcpReassembler
from wiredump.readers.model import Segment

ACK, SYN = 0x10, 0x02
MEMORY = 1 << 18


def segment(number: int, sequence: int, data: bytes, flags: int = ACK) -> Segment:
    flow = bytes((10, number >> 24 & 255, number >> 16 & 255, 1, 10, 1, 0, 1))
    flow += (number & 0xFFFF).to_bytes(2) + (9092).to_bytes(2)
    return Segment(flow, sequence, 0, flags, 1, memoryview(data), 0, 10**9, 0, 0)


def holes(count: int) -> Iterator[Segment]:
    """Each connection says something, and something more behind a hole; then the holes are filled,
    which for some comes too late."""
    for number in range(count):
        yield segment(number, 0, b"", SYN)
        yield segment(number, 1, bytes(100))
        yield segment(number, 201, bytes([number & 255]) * 300)
    for number in range(count):
        yield segment(number, 101, bytes(100))
        yield segment(number, 1, bytes(100))  # again


def kept(tcp: TcpReassembler) -> int:
    """What waits and what is remembered, with what keeping it costs."""
    streams = [stream for each in tcp._connections.values() for stream in each.streams]
    return tcp._ledger.held + sum(stream.remembered for stream in streams)


def run(count: int, limits: Limits) -> tuple[list[Event], int]:
    tcp, events, most = TcpReassembler(limits=limits), [], 0
    for number, each in enumerate(holes(count)):
        events += tcp.feed(each)
        if number % 200 == 0:
            most = max(most, kept(tcp))
            tcp.account.check()
    events += tcp.close()
    account = tcp.account
    account.check()
    assert account.payload == 600 * count
    assert account.buffered == 0
    assert account.data == sum(len(event.data) for event in events if isinstance(event, Data))
    late = [event for event in events if isinstance(event, Anomaly)]
    assert account.anomalous == sum(event.length for event in late)
    assert {event.kind for event in late} <= {"reassembly-limit"}
    return events, most


@pytest.mark.parametrize("count", [700, 2_000])
def test_holes_of_many_connections(count: int) -> None:
    events, most = run(count, Limits(alone=True, alone_total_bytes=MEMORY))
    assert most <= MEMORY
    gaps = [event for event in events if isinstance(event, Gap)]
    assert {gap.reason for gap in gaps} == {"memory"}
    # The oldest are given up; those that are left fit into the memory.
    assert [gap.connection for gap in gaps] == sorted({gap.connection for gap in gaps})
    assert count - len(gaps) <= MEMORY // (300 + 256)


@pytest.mark.slow
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("memory", [1 << 16, 1 << 20])
def test_whatever_is_told_is_the_most(memory: int, alone: bool) -> None:
    """``--memory``: what waits, and what repetitions are compared with."""
    limits = Limits.within(memory, alone=alone)
    tcp, most = TcpReassembler(limits=limits), 0
    for each in holes(memory // 400):
        tcp.feed(each)
        most = max(most, tcp._ledger.held + tcp._ledger.recent.cost)
    most = max(most, kept(tcp) + tcp._ledger.recent.cost)
    assert memory // 4 < most <= memory + 1000
    tcp.close()
    tcp.account.check()


def test_below_the_bound_nothing_depends_on_others() -> None:
    few = 80
    events, most = run(few, Limits(alone=True, alone_total_bytes=MEMORY))
    assert most < MEMORY // 4 * 3
    assert events == run(few, Limits(alone=True))[0]
    assert not [event for event in events if isinstance(event, Gap)]
    again = [event for event in events if isinstance(event, Retransmission)]
    assert [event.differing for event in again] == [0] * few


def test_what_is_forgotten_is_not_compared() -> None:
    """The account has repetitions all the same."""
    events, _ = run(1_000, Limits(alone=True, alone_total_bytes=MEMORY))
    again = [event for event in events if isinstance(event, Retransmission)]
    assert sum(event.length for event in again) == 100 * 1_000
    assert None in {event.differing for event in again}


def test_time_is_linear_in_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is weighed only when as much as a quarter of the memory may have been added."""
    weighed = []
    weigh = TcpReassembler._weigh

    def counted(self: TcpReassembler, at: Segment) -> None:
        weighed.append(len(self._connections))
        weigh(self, at)

    monkeypatch.setattr(TcpReassembler, "_weigh", counted)
    run(1_000, msgspec.structs.replace(Limits(alone=True), alone_total_bytes=MEMORY))
    cost = sum(len(each.payload) + 256 for each in holes(1_000))
    assert len(weighed) <= cost // (MEMORY // 4)
