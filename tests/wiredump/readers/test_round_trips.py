"""Round-trip times of data, one rule at a time; tests/tshark/test_round_trips.py compares them with
tshark's fields, and tests/wiredump/test_quick.py what the extension makes of captures."""

from __future__ import annotations

import pickle
from statistics import median_low

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.capture import Conversation
from kproto.capture.packets import ACK, FIN, ethernet_frame
from tests.wiredump.quickly import read_in_python, read_quickly, require_quick
from tests.wiredump.readers.conversations import MILLISECOND, Sent
from tests.wiredump.readers.test_tally import A, B, C, tally
from tests.wiredump.spark.made_up import START_NS, pcap
from wiredump.readers import round_trips
from wiredump.readers.round_trips import NONE, TIMED, RoundTrips

MASK = (1 << 32) - 1


def acked(number: int) -> Sent:
    return Sent(1, 0, acked=number)


@pytest.mark.parametrize(
    ("sent", "took"),
    [
        ([A, acked(4), B, acked(7)], [1, 1]),
        ([A, B, acked(7)], [1, 2]),
        ([A, B, C, acked(7), acked(9)], [2, 2, 3]),
        ([A, acked(3), acked(4)], [2]),
        ([A, acked(0), Sent(1, 0, b"x", acked=4), acked(4)], [2]),
        ([A, A, acked(4), B, acked(7)], [1]),
        ([A, B, Sent(0, 2, b"aab"), acked(7), C, acked(9)], [1]),
        ([A, C, B, acked(9)], [2, 3]),
        ([acked(4), A, acked(4), B, acked(7)], [1]),
        ([A, Sent(0, 3, b"x"), acked(4)], []),
        ([A, Sent(0, 4, flags=FIN | ACK), acked(5)], [2]),
        ([A, Sent(0, 4, b"bbb", flags=FIN | ACK), acked(8)], [1, 2]),
        ([A], []),
        ([], []),
    ],
    ids=[
        "one by one", "both at once", "two, then one", "up to its last byte", "with data",
        "sent again", "bytes of two sent again", "behind a later one", "acknowledged before",
        "a keep-alive", "and a FIN", "with a FIN", "never acknowledged", "nothing sent",
    ],
)  # fmt: skip
def test_rules(sent: list[Sent], took: list[int]) -> None:
    found = tally(*sent).client.round_trips
    times = sorted(each * MILLISECOND for each in took)
    assert (found.samples, found.min_ns, found.max_ns) == (
        len(times), times[0] if times else None, times[-1] if times else None,
    )  # fmt: skip
    if times:
        assert found.median_ns == pytest.approx(median_low(times), rel=1 / 16)


def test_each_end_has_its_own() -> None:
    found = tally(A, acked(4), Sent(1, 0, b"dd", acked=4), Sent(0, 4), Sent(0, 4, acked=2))
    assert found.client.round_trips == (1, MILLISECOND, MILLISECOND, MILLISECOND)
    assert found.broker.round_trips == (1, 2 * MILLISECOND, 2 * MILLISECOND, 2 * MILLISECOND)


@given(st.lists(st.integers(0, 80_000_000_000), max_size=300), st.integers(0, MASK))
def test_sums(times: list[int], sequence: int) -> None:
    """Whatever the times and the sequence numbers, which wrap."""
    state, now = round_trips.begin(sequence), 0
    for took in times:
        round_trips.send(state, sequence, 1000, now)
        sequence = (sequence + 1000) & MASK
        now += took
        round_trips.acknowledge(state, sequence, now)
    found = round_trips.sums(state)
    assert round_trips.sums(pickle.loads(pickle.dumps(state))) == found
    if not times:
        assert found == NONE
        return
    assert (found.samples, found.min_ns, found.max_ns) == (len(times), min(times), max(times))
    middle = median_low(times)
    assert found.median_ns is not None
    if middle < 64_000_000_000:  # where the last bucket begins
        assert abs(found.median_ns - middle) <= max(128, middle / 16)


def test_a_clock_that_goes_back() -> None:
    state = round_trips.begin(0)
    round_trips.send(state, 0, 10, 1000)
    round_trips.acknowledge(state, 10, 999)
    assert round_trips.sums(state) == NONE


@pytest.mark.parametrize("now", [-5, 2**63 - 2, 2**64 - 2, 2**80])
def test_any_time_of_a_capture(now: int) -> None:
    state = round_trips.begin(0)
    round_trips.send(state, 0, 10, now)
    round_trips.acknowledge(state, 10, now + 7)
    assert round_trips.sums(state) == (1, 7, 7, 7)


def test_no_more_than_so_many_are_timed() -> None:
    state = round_trips.begin(0)
    for number in range(100):
        round_trips.send(state, 10 * number, 10, number)
    round_trips.acknowledge(state, 1000, 1000)
    assert round_trips.sums(state)[:2] == (TIMED, 1000 - TIMED + 1)


@pytest.mark.parametrize("isn", [1, MASK - 20_000])
@pytest.mark.parametrize("size", [100, 100_000])
def test_a_burst_is_the_same_in_c(isn: int, size: int) -> None:
    """More segments at once than are timed, across the end of sequence numbers."""
    require_quick()
    talk = Conversation(
        ("10.0.0.1", 40_000), ("10.0.1.1", 9092), segment_size=1000, client_isn=isn
    )  # fmt: skip
    packets = talk.open()
    for number in range(3):
        frame = bytes.fromhex("0003000c") + number.to_bytes(4) + bytes.fromhex("ffff")
        body = frame + bytes(size)
        packets += talk.send(len(body).to_bytes(4) + body)
        packets.append(talk.acknowledge(from_server=True))
        packets += talk.send(
            bytes.fromhex("00000008") + number.to_bytes(4) + bytes(4), from_server=True
        )
        packets.append(talk.acknowledge())
    packets += talk.close()
    framed = [ethernet_frame(each) for each in packets]
    data = pcap(
        [(START_NS + MILLISECOND * at, each, len(each)) for at, each in enumerate(framed)],
        "<", nanoseconds=True,
    )  # fmt: skip
    slow, fast = read_in_python(data), read_quickly(data)
    assert fast.connections == slow.connections
    burst = min(TIMED, -(-(size + 14) // 1000))
    assert f"RoundTrips(samples={3 * burst}," in slow.connections[0]
    assert f"measured={RoundTrips(3, *(3 * [MILLISECOND]))}" in slow.connections[0]
    assert fast.slowly < len(packets)
