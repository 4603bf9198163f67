"""Random conversations, captured badly: what comes out is what was captured, byte by byte."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given, note
from hypothesis import strategies as st

from tests.wiredump.readers.conversations import (
    LINKS,
    MILLISECOND,
    Connection,
    Direction,
    Sent,
    acknowledging,
    cut,
    expected,
    farewell,
    handshake,
    joined,
    packets,
)
from wiredump.readers import (
    REASSEMBLY_LIMITS,
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
    Streams,
)

STREAMS = st.tuples(st.binary(max_size=300), st.binary(max_size=300))
CUTS = st.lists(st.integers(1, 300), max_size=12)
ISNS = st.one_of(
    st.just((1_000, 2_000)),
    st.tuples(*[st.integers(2**32 - 310, 2**32 - 1)] * 2),
    st.tuples(*[st.integers(0, 2**32 - 1)] * 2),
)
CONNECTIONS = st.builds(
    Connection,
    version=st.sampled_from((4, 6)),
    isns=ISNS,
    link=st.sampled_from(sorted(LINKS)),
    ip_options=st.sampled_from((b"", b"\x94\x04\0\0", bytes(40))),
    extensions=st.lists(st.sampled_from((0, 43, 60, 51)), max_size=3).map(tuple),
)


@st.composite
def conversations(draw, *, altered: bool = False):
    """Segments of both directions in the order they were sent, some of them twice, and the lengths.

    With ``altered`` the second copies may say something else.
    """
    streams = draw(STREAMS)
    queues = [cut(stream, draw(CUTS), number) for number, stream in enumerate(streams)]
    order: list[Sent] = []
    while any(queues):
        queue = queues[draw(st.integers(0, 1))]
        if queue:
            order.append(queue.pop(0))
        else:
            queues.reverse()
        if order and draw(st.integers(0, 4)) == 0:
            order.append(_repetition(draw, order, streams, altered))
    lengths = (len(streams[0]), len(streams[1]))
    return acknowledging(order), lengths


def _repetition(draw, order, streams, altered) -> Sent:
    """Any part of what was sent, in one segment: a retransmission need not have the same bounds."""
    direction = draw(st.sampled_from(order)).direction
    sent_so_far = max(each.end for each in order if each.direction == direction)
    start = draw(st.integers(0, sent_so_far - 1))
    data = streams[direction][start : draw(st.integers(start + 1, sent_so_far))]
    if altered and draw(st.booleans()):
        data = bytes(value ^ 0xFF for value in data)
    return Sent(direction, start, data)


def shuffled(draw, sent: list[Sent], reach: int = 8) -> list[Sent]:
    """No segment moves further than ``reach`` places, about as captures do."""
    keys = [index + draw(st.integers(0, reach)) for index in range(len(sent))]
    return [sent[index] for index in sorted(range(len(sent)), key=lambda index: keys[index])]


def run(
    packets_in: Iterable[Packet | Anomaly], limits: Limits | None = None
) -> tuple[list[Event], Account]:
    """Every event, with the account checked after every packet and against the events."""
    streams = Streams(limits)
    events: list[Event] = []
    for packet in packets_in:
        events += streams.feed(packet)
        streams.account.check()
    events += streams.close()
    check_account(streams.account, events)
    return events, streams.account


def check_account(account: Account, events: list[Event]) -> None:
    account.check()
    assert account.buffered == 0
    assert account.data == sum(len(event.data) for event in events if isinstance(event, Data))
    gaps = {True: 0, False: 0}
    for event in events:
        if isinstance(event, Gap):
            gaps[event.reason in REASSEMBLY_LIMITS] += event.length
    assert (account.beyond_limit, account.missing) == (gaps[True], gaps[False])
    repeated = [event for event in events if isinstance(event, Retransmission)]
    assert account.retransmitted == sum(event.length for event in repeated)
    assert account.differing == sum(event.differing or 0 for event in repeated)
    assert account.anomalous == sum(event.length for event in events if isinstance(event, Anomaly))
    check_order(events)


def check_order(events: list[Event]) -> None:
    """Opened, numbered from 0, before anything else of a connection; nothing new after Closed."""
    opened = 0
    closed: set[int] = set()
    for event in events:
        if isinstance(event, Opened):
            assert event.connection == opened
            opened += 1
        elif event.connection is not None:
            assert event.connection < opened
            if isinstance(event, Data | Gap | Closed):
                assert event.connection not in closed
            if isinstance(event, Closed):
                closed.add(event.connection)
    assert closed == set(range(opened))


def captured_payload(sent: list[Sent]) -> int:
    return sum(len(each.data) - each.missing for each in sent)


@given(st.data(), conversations(), CONNECTIONS)
def test_streams_out_are_streams_in(data, conversation, connection):
    """Nothing lost, whatever the order, the repetitions, the headers around: every byte, once."""
    sent, lengths = conversation
    captured = handshake() + shuffled(data.draw, sent + farewell(lengths))
    events, account = run(packets(captured, connection))
    for direction, truth in enumerate(expected(captured, lengths)):
        assert joined(events, 0, direction) == truth.parts()
    assert account.missing == account.anomalous == account.differing == 0
    assert account.payload == captured_payload(captured)
    assert account.data == sum(lengths)
    (opened,) = [event for event in events if isinstance(event, Opened)]
    assert (opened.start, opened.client.port, opened.server.port) == ("syn", 50_000, 9092)
    (closed,) = [event for event in events if isinstance(event, Closed)]
    assert (closed.reason, closed.client_bytes, closed.server_bytes) == ("fin", *lengths)


@given(st.data(), conversations(altered=True), CONNECTIONS)
def test_gaps_are_what_was_lost(data, conversation, connection):
    """Segments dropped, or cut short by a snaplen: gaps are exactly the bytes that are nowhere in
    the capture; of bytes that came twice the first stands, and each difference is counted."""
    sent, lengths = conversation
    kept = [each for each in sent if data.draw(st.integers(0, 3))]
    kept = [
        replace(each, missing=data.draw(st.integers(0, len(each.data))))
        if data.draw(st.integers(0, 5)) == 0 and connection.link != "padded"
        else each
        for each in kept
    ]
    # A cut packet is told of when its turn comes, so that a whole copy must come before it.
    reach = 0 if any(each.missing for each in kept) else 8
    captured = handshake() + shuffled(data.draw, kept, reach) + farewell(lengths)
    events, account = run(packets(captured, connection))
    late = [event for event in events if isinstance(event, Anomaly)]
    note(f"{len(captured)} packets, {len(late)} anomalies")
    if not late:
        truths = expected(captured, lengths)
        for direction, truth in enumerate(truths):
            assert joined(events, 0, direction) == truth.parts()
        assert account.missing == sum(lengths) - account.data
    assert {event.kind for event in late} <= {"late"}
    assert not late or any(each.missing for each in captured)
    assert account.payload == captured_payload(captured)
    for gap in (event for event in events if isinstance(event, Gap)):
        if gap.reason == "snaplen":
            cut_away = expected(captured, lengths)[gap.direction].cut
            assert set(range(gap.stream_offset, gap.stream_offset + gap.length)) <= cut_away


@given(st.data(), conversations())
def test_a_capture_may_begin_anywhere(data, conversation):
    """Without a handshake a direction begins with its first byte captured, and the higher port's
    owner is taken for the client."""
    sent, _ = conversation
    first = data.draw(st.integers(0, len(sent)))
    captured = sent[first:]
    events, account = run(packets(captured, Connection()))
    for direction in (0, 1):
        own = [each for each in captured if each.direction == direction and each.data]
        if not own:
            continue
        base = own[0].start  # what is older may come again, and is before the start
        truth = Direction()
        for each in own:
            if each.end > base:
                truth.add(max(each.start, base) - base, each.data[max(0, base - each.start) :], 0)
        after = captured[captured.index(own[0]) :]
        acked = max([each.acked for each in after if each.direction != direction], default=0)
        if acked - base > len(truth.values) + 1:  # one more might be a FIN's
            truth.values += [None] * (acked - base - len(truth.values))
        assert joined(events, 0, direction) == truth.parts()
    if captured:
        (opened,) = [event for event in events if isinstance(event, Opened)]
        assert (opened.start, opened.client.port) == ("middle", 50_000)
    kinds = {event.kind for event in events if isinstance(event, Anomaly)}
    assert kinds <= {"before-start"}
    assert account.payload == captured_payload(captured)


@given(
    st.data(),
    conversations(altered=True),
    st.builds(
        Limits,
        flow_bytes=st.sampled_from((0, 600, 2_000)),
        total_bytes=st.sampled_from((0, 1_000, 3_000)),
        reorder_ns=st.sampled_from((0, 2 * MILLISECOND)),
        hole_ns=st.sampled_from((0, 5 * MILLISECOND)),
        recent_bytes=st.sampled_from((0, 1_000)),
        connections=st.sampled_from((1, 2)),
    ),
)
def test_the_account_is_exact_whatever_is_given_up(data, conversation, limits):
    """With next to no memory or patience holes are told of that were only late. Still every byte is
    in one place, and what is handed out as data is what was sent there."""
    sent, lengths = conversation
    kept = [each for each in sent if data.draw(st.integers(0, 5))]
    captured = handshake() + shuffled(data.draw, kept + farewell(lengths), 20)
    others = packets(handshake(), Connection(port=50_001), step_ns=7 * MILLISECOND)
    mixed = packets(captured, Connection()) + others
    mixed = data.draw(st.permutations(mixed)) if len(mixed) < 12 else mixed
    events, account = run(mixed, limits)
    assert account.payload == captured_payload(captured)
    for connection in range(1 + max(event.connection for event in events if event.connection)):
        for direction in (0, 1):
            joined(events, connection, direction)


@given(st.data(), conversations(), st.sampled_from((4, 6)), st.integers(8, 64))
def test_fragments_are_joined(data, conversation, version, size):
    """Every packet in IP fragments, those of each packet in any order."""
    sent, lengths = conversation
    captured = [
        replace(each, fragment_size=size) for each in handshake() + sent + farewell(lengths)
    ]
    connection = Connection(version=version)
    in_fragments = []
    for segment in captured:
        frames = connection.frames(segment)
        in_fragments += data.draw(st.permutations(frames))
    stream = [
        Packet(number, number * MILLISECOND, 1, memoryview(frame), length)
        for number, (frame, length) in enumerate(in_fragments)
    ]
    events, account = run(stream)
    for direction, truth in enumerate(expected(captured, lengths)):
        assert joined(events, 0, direction) == truth.parts()
    assert account.missing == 0
    assert account.segments == len(captured)
    assert account.segments + account.fragments == len(stream)
