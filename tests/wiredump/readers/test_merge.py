"""Several captures of one incident are one capture of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.wiredump.readers.conversations import (
    MILLISECOND,
    START_NS,
    Connection,
    Sent,
    expected,
    farewell,
    handshake,
    joined,
    packets,
)
from tests.wiredump.readers.test_reassembly import conversations, run
from wiredump.readers import Anomaly, Data, Packet, Retransmission, Streams, merge


def numbered(made: list[Packet], capture: int) -> list[Packet]:
    return [
        Packet(p.offset, p.timestamp_ns, p.link_type, p.data, p.original_length, 0, capture)
        for p in made
    ]


@given(st.data(), conversations())
def test_two_taps_see_what_one_sees(data, conversation):
    """Each packet is in one capture, the other, or both: streams are as sent, and what both saw is
    a repetition without a difference."""
    sent, lengths = conversation
    whole = handshake() + sent + farewell(lengths)
    made = packets(whole, Connection())
    where = [data.draw(st.sampled_from(((0,), (1,), (0, 1)))) for _ in made]
    taps = [
        numbered([p for p, taps in zip(made, where, strict=True) if tap in taps], tap)
        for tap in (0, 1)
    ]
    both = sum(len(each.data) for each, taps in zip(whole, where, strict=True) if len(taps) == 2)
    events, account = run(merge(*taps))
    for direction, truth in enumerate(expected(whole, lengths)):
        assert joined(events, 0, direction) == truth.parts()
    assert account.missing == account.anomalous == account.differing == 0
    assert account.retransmitted == both + sum(len(each.data) for each in sent) - sum(lengths)
    captures = {event.capture for event in events if isinstance(event, Data | Retransmission)}
    assert captures <= {0, 1}


@given(
    st.lists(st.lists(st.integers(0, 10**6), max_size=30), min_size=2, max_size=4),
    st.integers(0, 40),
)
def test_by_time_and_nothing_is_lost(times, window):
    captures = [
        [Packet(n, time, 1, memoryview(b""), 0, 0, c) for n, time in enumerate(each)]
        for c, each in enumerate(times)
    ]
    merged = list(merge(*captures, window=window))
    out = [each for each in merged if isinstance(each, Packet)]
    assert sorted((p.capture, p.offset) for p in out) == sorted(
        (p.capture, p.offset) for each in captures for p in each
    )
    if window >= 30 or all(each == sorted(each) for each in times):
        order = sorted(out, key=lambda p: (p.timestamp_ns, p.capture, p.offset))
        assert out == order
        assert merged == out


def test_a_clock_that_goes_back_further_than_the_window_is_told_of():
    times = [1_000, 2_000, 3_000, 10, 20, 30]
    first = [Packet(n, time, 1, memoryview(b""), 0) for n, time in enumerate(times)]
    merged = list(merge(first, [], window=1))
    problems = [each for each in merged if isinstance(each, Anomaly)]
    assert [(each.kind, each.offset, each.reason) for each in problems] == [
        ("clock", 3, "the time goes back by 1990 ns")
    ]
    assert [each.offset for each in merged if isinstance(each, Packet)] == [0, 1, 3, 4, 5, 2]


def test_a_packet_from_the_future_holds_nothing_up():
    odd = [Packet(n, time, 1, memoryview(b""), 0) for n, time in enumerate((1, 2**60, 3, 5))]
    other = [Packet(n, time, 1, memoryview(b""), 0, 0, 1) for n, time in enumerate((2, 4))]
    assert [each.timestamp_ns for each in merge(odd, other)] == [1, 2, 3, 4, 5, 2**60]


def test_one_capture_keeps_its_own_order():
    packets_in = [Packet(n, -n, 1, memoryview(b""), 0) for n in range(5)]
    assert list(merge(packets_in)) == packets_in
    assert list(merge()) == []


def test_anomalies_of_containers_come_through():
    problem = Anomaly("truncated", "cut", 1, 99)
    sent = packets([*handshake(), Sent(0, 0, b"abc")], Connection(), step_ns=MILLISECOND)
    events = list(Streams().read(sent, [sent[0], problem]))
    assert problem in events
    assert b"abc" in [event.data for event in events if isinstance(event, Data)]
    assert events[0].timestamp_ns >= START_NS
