"""How connections begin and end, what is waited for and how long: one rule a test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kproto.capture.packets import ACK, FIN, RST, SYN
from tests.wiredump.readers.conversations import (
    MILLISECOND,
    START_NS,
    Connection,
    Sent,
    farewell,
    handshake,
    joined,
    packets,
)
from wiredump.readers import (
    Anomaly,
    Closed,
    Data,
    Event,
    Gap,
    Limits,
    Opened,
    Retransmission,
    Streams,
)

SECOND = 1000 * MILLISECOND


def run(*timed: Any, limits: Limits | None = None) -> list[Event]:
    """Segments, each at the number of milliseconds that stands before it, and their connection."""
    streams, connection, now = Streams(limits), Connection(), 0
    events: list[Event] = []
    for item in timed:
        if isinstance(item, Connection):
            connection = item
        elif isinstance(item, int):
            now = item * MILLISECOND
        else:
            for packet in packets([item], connection, start_ns=START_NS + now):
                events += streams.feed(packet)
                streams.account.check()
    events += streams.close()
    streams.account.check()
    return events


def of(kind: Any, events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def brief(events: list[Event]) -> list[Any]:
    """Events as (kind, stream offset, bytes or length)."""
    made: list[Any] = []
    for event in events:
        if isinstance(event, Data):
            made.append(("data", event.stream_offset, event.data))
        elif isinstance(event, Gap):
            made.append((event.reason, event.stream_offset, event.length))
        elif isinstance(event, Retransmission):
            made.append(("again", event.stream_offset, event.length, event.differing))
        elif isinstance(event, Anomaly):
            made.append((event.kind, event.stream_offset, event.length))
        elif isinstance(event, Closed):
            made.append(("closed", event.reason))
    return made


def test_a_syn_with_another_number_on_known_ports_is_another_connection():
    second = Connection(isns=(9_000, 10_000))
    events = run(
        *handshake(), Sent(0, 0, b"one"), *farewell((3, 0)),
        second, *handshake(), Sent(0, 0, b"two"),
    )  # fmt: skip
    assert [event.connection for event in of(Opened, events)] == [0, 1]
    assert joined(events, 0, 0) == [(0, b"one")]
    assert joined(events, 1, 0) == [(0, b"two")]
    assert [event.reason for event in of(Closed, events)] == ["fin", "end"]


def test_one_that_was_not_closed_is_closed_by_the_next():
    events = run(
        *handshake(), Sent(0, 0, b"one"), Connection(isns=(9_000, 10_000)), Sent(0, 0, flags=SYN)
    )
    assert [event.reason for event in of(Closed, events)] == ["reused", "end"]


def test_the_same_syn_again_is_the_same_connection():
    """Retransmitted, seen by two taps, and even after the end."""
    events = run(*handshake(), *handshake(), Sent(0, 0, b"one"), *farewell((3, 0)), *handshake())
    assert len(of(Opened, events)) == 1


def test_a_syn_ack_alone_tells_both_beginnings():
    events = run(Sent(1, 0, flags=SYN | ACK), 1, Sent(0, 3, b"def", acked=0), 2, Sent(0, 0, b"abc"))
    (opened,) = of(Opened, events)
    assert (opened.start, opened.client.port) == ("syn-ack", 50_000)
    assert joined(events, 0, 0) == [(0, b"abcdef")]


def test_the_clients_acknowledgement_tells_where_the_server_begins():
    """The SYN-ACK was lost, and so were the server's first bytes."""
    events = run(Sent(0, 0, flags=SYN), Sent(0, 0), Sent(1, 2, b"cd"), Sent(0, 0, acked=4))
    assert joined(events, 0, 1) == [(0, 2), (2, b"cd")]


def test_data_in_a_syn_counts_from_its_first_byte():
    """TCP Fast Open."""
    events = run(Sent(0, 0, b"fast", SYN), Sent(1, 0, flags=SYN | ACK, acked=4), Sent(0, 4, b"er"))
    assert joined(events, 0, 0) == [(0, b"faster")]
    assert len(of(Opened, events)) == 1


def test_a_refused_connection_is_reset():
    events = run(Sent(0, 0, flags=SYN), Sent(1, -1, flags=RST | ACK))
    assert brief(events) == [("closed", "reset")]


def test_a_reset_ends_everything_at_once():
    """What waited is handed out, what comes then is nobody's."""
    events = run(
        *handshake(), Sent(0, 3, b"def"), Sent(1, 0, flags=RST),
        Sent(0, 6, b"more"), Sent(0, 3, b"def"),
    )  # fmt: skip
    assert brief(events) == [
        ("lost", 0, 3), ("data", 3, b"def"), ("closed", "reset"),
        ("after-close", 6, 4), ("again", 3, 3, 0),
    ]  # fmt: skip


def test_a_reset_from_nowhere_is_passed_over():
    events = run(*handshake(), Sent(0, 1 << 25, flags=RST), Sent(0, 0, b"alive"))
    assert brief(events) == [("reset", None, 0), ("data", 0, b"alive"), ("closed", "end")]


def test_a_stranger_on_closed_ports_is_another_connection():
    """The port is used again, and the handshake was not captured: told by its numbers, or by the
    time that has passed."""
    far = Connection(isns=(1_000 + (1 << 26), 2_000))
    events = run(*handshake(), *farewell((0, 0)), far, Sent(0, 0, b"far"))
    assert [event.start for event in of(Opened, events)] == ["syn", "middle"]
    assert joined(events, 1, 0) == [(0, b"far")]
    late = run(*handshake(), *farewell((0, 0)), 61_000, Sent(0, 0, b"late"))
    assert joined(late, 1, 0) == [(0, b"late")]


@pytest.mark.parametrize("flags", [ACK, RST, FIN | ACK])
def test_of_a_connection_that_ended_long_ago_nothing_needs_to_be_known(flags: int):
    """Even a bare acknowledgement is of another one then, as it is on ports that were never seen:
    so what has ended can be forgotten."""
    ended = (*handshake(), *farewell((0, 0)))
    soon = run(*ended, 60_000, Sent(0, 1, flags=flags))
    assert len(of(Opened, soon)) == 1
    late = run(*ended, 60_001, Sent(0, 1, flags=flags))
    alone = run(60_001, Sent(0, 1, flags=flags))
    assert brief(late)[-len(brief(alone)) :] == brief(alone)
    assert len(of(Opened, late)) == 2


def test_a_hole_that_was_acknowledged_is_given_up_after_a_while():
    """Not at once: captures may show an acknowledgement before what it acknowledges."""
    limits = Limits(reorder_ns=10 * MILLISECOND)
    hole = (*handshake(), Sent(0, 3, b"def"), Sent(1, 0, b"x", acked=6))
    in_time = run(*hole, 9, Sent(0, 0, b"abc"), limits=limits)
    assert joined(in_time, 0, 0) == [(0, b"abcdef")]
    too_late = run(*hole, 10, Sent(1, 1, b"y", acked=6), Sent(0, 0, b"abc"), limits=limits)
    assert brief(too_late)[1:-1] == [
        ("lost", 0, 3), ("data", 3, b"def"), ("data", 1, b"y"), ("late", 0, 3),
    ]  # fmt: skip


def test_only_what_was_acknowledged_is_given_up():
    events = run(
        *handshake(), Sent(0, 4, b"ef"), Sent(1, 0, acked=2), 300, Sent(1, 0, acked=2),
        Sent(0, 2, b"cd"),
    )  # fmt: skip
    assert joined(events, 0, 0) == [(0, 2), (2, b"cdef")]


def test_an_acknowledgement_of_the_future_does_no_harm():
    """One wrong number, and the stream goes on as if it had not been."""
    events = run(
        *handshake(), Sent(1, 0, acked=1 << 28), 1000, Sent(0, 0, b"abc"), 2000, Sent(0, 3, b"def")
    )
    assert joined(events, 0, 0)[0] == (0, b"abcdef")


def test_a_hole_without_acknowledgements_stays_open_for_a_minute():
    """One direction alone was captured."""
    one_way = (*handshake(), Sent(0, 3, b"def"))
    filled = run(*one_way, 59_999, Sent(0, 6, b"g"), Sent(0, 0, b"abc"))
    assert joined(filled, 0, 0) == [(0, b"abcdefg")]
    given_up = run(*one_way, 60_000, Sent(0, 6, b"g"), Sent(0, 0, b"abc"))
    assert brief(given_up)[:3] == [("lost", 0, 3), ("data", 3, b"def"), ("data", 6, b"g")]


def test_what_was_acknowledged_and_never_seen_is_missing_at_the_end():
    events = run(*handshake(), Sent(0, 0, b"abc"), Sent(1, 0, acked=9))
    assert joined(events, 0, 0) == [(0, b"abc"), (3, 6)]


def test_an_acknowledgement_one_past_the_end_is_of_a_fin_that_was_lost():
    events = run(*handshake(), Sent(0, 0, b"abc"), Sent(1, 0, acked=4))
    assert joined(events, 0, 0) == [(0, b"abc")]


def test_a_keep_alive_is_no_difference():
    """It repeats a byte, and some senders put any value there."""
    events = run(*handshake(), Sent(0, -1, b"\0"), Sent(0, 0, b"abc"), Sent(0, 2, b"\0"))
    assert brief(events)[:-1] == [
        ("again", -1, 1, None), ("data", 0, b"abc"), ("again", 2, 1, None),
    ]  # fmt: skip


def test_a_zero_window_probe_is_data():
    """Its byte was sent; that it comes again with others is a repetition."""
    events = run(*handshake(), Sent(0, 0, b"a"), Sent(0, 0, b"abc"))
    assert brief(events)[:-1] == [("data", 0, b"a"), ("again", 0, 1, 0), ("data", 1, b"bc")]


def test_differences_are_counted_where_the_first_copy_is_still_held():
    repetition = (*handshake(), Sent(0, 0, b"abcd"), Sent(0, 4, b"ef"), Sent(0, 1, b"bXdY"))
    assert brief(run(*repetition))[2] == ("again", 1, 4, 2)
    forgotten = run(*repetition, limits=Limits(recent_bytes=0))
    assert brief(forgotten)[2] == ("again", 1, 4, None)


def test_what_stands_behind_a_fin_is_nobodys():
    events = run(*handshake(), Sent(0, 0, b"abc", FIN | ACK), Sent(0, 2, b"cde"))
    assert brief(events)[:-1] == [("data", 0, b"abc"), ("again", 2, 1, 0), ("after-close", 3, 2)]


def test_a_fin_before_bytes_already_seen_is_no_end():
    events = run(*handshake(), Sent(0, 0, b"abc"), Sent(0, 1, flags=FIN), Sent(0, 3, b"def"))
    assert joined(events, 0, 0) == [(0, b"abcdef")]
    assert [event.kind for event in of(Anomaly, events)] == ["out-of-window"]


def test_a_stream_that_jumped_too_far_is_taken_up_again():
    """Gigabytes are missing: the first segment there is not believed, its successor is."""
    far = (1 << 30) + 10
    events = run(
        *handshake(), Sent(0, 0, b"abc"), Sent(0, far, b"one"), Sent(0, far + 3, b"two"),
        Sent(0, far + 6, b"three"),
    )  # fmt: skip
    assert brief(events)[:-1] == [
        ("data", 0, b"abc"), ("out-of-window", None, 3), ("resync", 3, far),
        ("data", far + 3, b"two"), ("data", far + 6, b"three"),
    ]  # fmt: skip


@pytest.mark.parametrize("limit", ["flow_bytes", "total_bytes"])
def test_a_full_buffer_gives_up_the_hole_in_front(limit):
    events = run(
        *handshake(), Sent(0, 1, b"b"), Sent(0, 3, b"d"), Sent(0, 4, b"e"),
        limits=Limits(**{limit: 600}),
    )  # fmt: skip
    assert joined(events, 0, 0) == [(0, 1), (1, b"b"), (2, 1), (3, b"de")]
    assert brief(events)[0] == ("limit", 0, 1)


def test_connections_beyond_the_limit_are_forgotten_by_silence():
    events = []
    streams = Streams(Limits(connections=3))
    for number, port in enumerate((1, 2, 3, 1, 4, 1, 2)):
        connection = Connection(port=50_000 + port)
        sent = Sent(0, 10 * number, b"x")
        for packet in packets([sent], connection, start_ns=number * SECOND):
            events += streams.feed(packet)
    events += streams.close()
    assert [event.connection for event in of(Opened, events)] == [0, 1, 2, 3, 4]
    evicted = [event.connection for event in of(Closed, events) if event.reason == "evicted"]
    assert evicted == [1, 2]


def test_each_direction_is_named_by_its_ends():
    for version in (4, 6):
        events = run(Connection(version=version), Sent(1, 0, flags=SYN | ACK))
        (opened,) = of(Opened, events)
        assert [str(opened.client), str(opened.server)] == {
            4: ["10.0.0.1:50000", "10.0.0.2:9092"],
            6: ["[2001:db8::1]:50000", "[2001:db8::2]:9092"],
        }[version]


def test_time_and_packet_are_those_the_bytes_came_in():
    sent = [*handshake(), Sent(0, 3, b"def"), Sent(0, 0, b"abc")]
    streams = Streams()
    events = [event for packet in packets(sent, Connection()) for event in streams.feed(packet)]
    first, second = of(Data, events)
    assert (first.offset, first.timestamp_ns) == (4, START_NS + 4 * MILLISECOND)
    assert (second.offset, second.timestamp_ns) == (3, START_NS + 3 * MILLISECOND)


def test_a_cut_packet_leaves_a_hole_that_need_not_wait():
    events = run(*handshake(), replace(Sent(0, 0, b"abcdef"), missing=4), Sent(0, 6, b"gh"))
    assert brief(events)[:-1] == [("data", 0, b"ab"), ("snaplen", 2, 4), ("data", 6, b"gh")]


def test_headers_alone_are_gaps_alone():
    events = run(*handshake(), replace(Sent(0, 0, b"abc"), missing=3))
    assert brief(events)[:-1] == [("snaplen", 0, 3)]


def test_one_late_byte_is_no_keep_alive():
    cut = replace(Sent(0, 0, b"a"), missing=1)
    events = run(*handshake(), cut, Sent(0, 0, b"a"))
    assert brief(events)[:-1] == [("snaplen", 0, 1), ("late", 0, 1)]


def test_another_connections_packet_is_a_clock_too():
    """The connection with the hole says nothing more: it is given up all the same."""
    hole = (*handshake(), Sent(0, 3, b"def"), Sent(1, 0, acked=6))
    events = run(*hole, Connection(port=50_001), 1_000, Sent(0, 0, flags=SYN), 2_000)
    assert brief(events)[:2] == [("lost", 0, 3), ("data", 3, b"def")]
    assert isinstance(events[-3], Opened)


def test_what_comes_late_and_what_comes_again_are_told_apart():
    events = run(
        *handshake(), Sent(0, 0, b"abc"), Sent(0, 6, b"ghi"), Sent(1, 0, acked=9),
        300, Sent(1, 0, acked=9), Sent(0, 1, b"bcdefgX"),
    )  # fmt: skip
    assert brief(events)[-4:-1] == [("again", 1, 2, 0), ("late", 3, 3), ("again", 6, 2, 1)]
