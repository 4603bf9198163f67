"""What is counted of a connection's packets, one rule at a time; tshark's counts are compared in
tests/tshark/test_analysis.py."""

from __future__ import annotations

import io
import random
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.capture.packets import ACK, RST, SYN
from tests.wiredump.quickly import tables_of
from tests.wiredump.readers.conversations import (
    MILLISECOND,
    Connection,
    Sent,
    cut,
    handshake,
    packets,
)
from tests.wiredump.spark import made_up
from wiredump.readers import Capture, Opened, Streams
from wiredump.readers.tally import COUNTS, EndTally, Tally


def tally(*sent: Sent, shaken: bool = True) -> Tally:
    streams = Streams()
    events = [
        event
        for packet in packets([*(handshake() if shaken else []), *sent], Connection())
        for event in streams.feed(packet)
    ]
    events += streams.close()
    (opened,) = (event for event in events if isinstance(event, Opened))
    return opened.tally


def counts(*, broker: bool = False, **values: int) -> Tally:
    """Behind a handshake of three packets. The values are the client's, or the broker's."""
    one, other = EndTally(**values), EndTally()
    if broker:
        one, other = other, one
    return Tally(one, other, handshake_ns=2 * MILLISECOND)


def without_times(found: Tally) -> Tally:
    found.syns = found.syn_acks = 0
    for end in (found.client, found.broker):
        end.close()
        end.measured = end.first_sequence = None
    return found


A, B, C = Sent(0, 0, b"aaaa"), Sent(0, 4, b"bbb"), Sent(0, 7, b"cc")
D = Sent(1, 0, b"dd")


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ([A, B, C], counts()),
        ([A, A, B], counts(retransmitted=1, retransmitted_bytes=4)),
        ([A, B, Sent(0, 2, b"aabbbcc")], counts(retransmitted=1, retransmitted_bytes=5)),
        ([A, C, C, B], counts(retransmitted=1, retransmitted_bytes=2, out_of_order=1, holes=1)),
        ([A, C, B, B], counts(retransmitted=1, retransmitted_bytes=3, out_of_order=1, holes=1)),
        ([A, C], counts(holes=1, missing_bytes=3)),
        ([A, Sent(0, 9, b"d"), Sent(0, 11, b"e"), B, C],
         counts(holes=2, out_of_order=2, missing_bytes=1)),
        ([A, Sent(0, 3, b"x"), Sent(0, 3, b"a")], counts()),
        ([A, Sent(1, 0, flags=RST | ACK, acked=4)], counts(resets=1, broker=True)),
        ([A, Sent(0, 4, flags=RST), Sent(0, 4, flags=RST)], counts(resets=2)),
        ([A, Sent(1, 0, b"x", acked=9)], counts(missing_bytes=5)),
        ([A, D, D], counts(retransmitted=1, retransmitted_bytes=2, broker=True)),
        ([A, Sent(1, 4, b"z")], counts(holes=1, missing_bytes=4, broker=True)),
    ],
    ids=[
        "in order", "sent again", "sent again and more", "order and again", "again and order",
        "lost", "two holes", "keep-alives", "a reset", "resets", "acknowledged and never seen",
        "sent again by the broker", "lost by the broker",
    ],
)  # fmt: skip
def test_segments(sent: list[Sent], expected: Tally) -> None:
    assert without_times(tally(*sent)) == expected


def test_both_ends_together() -> None:
    found = tally(A, A, D, D, Sent(1, 2, flags=RST))
    assert found.counts == (2, 6, 0, 0, 0, 0, 1)
    found.flip()
    assert (found.client.resets, found.broker.resets) == (1, 0)


@pytest.mark.parametrize(
    ("sent", "took"),
    [
        ([Sent(0, 0, flags=SYN), Sent(0, 0, flags=SYN), Sent(1, 0, flags=SYN | ACK), A], 2),
        ([Sent(0, 0, flags=SYN), Sent(1, 0, flags=SYN | ACK), Sent(1, 0, b"x"), A], 3),
        ([Sent(1, 0, flags=SYN | ACK), A], None),
        ([Sent(0, 0, flags=SYN), A], None),
        ([Sent(0, 0, flags=SYN), Sent(1, 0, flags=RST | ACK)], None),
        ([A], None),
    ],
)
def test_the_round_trip_of_a_handshake(sent: list[Sent], took: int | None) -> None:
    found = tally(*sent, shaken=False).handshake_ns
    assert found == (None if took is None else took * MILLISECOND)


@given(st.randoms(use_true_random=False))
def test_segments_in_any_order_are_in_order_or_late(rng: random.Random) -> None:
    """Of those that come once, each is the next one, opens a hole, or comes behind others."""
    data = rng.randbytes(200)
    sent = cut(data, [rng.randrange(200) for _ in range(20)], 0)
    rng.shuffle(sent)
    newest, late, holes = 0, 0, 0
    for each in sent:
        late, holes = late + (each.start < newest), holes + (each.start > newest)
        newest = max(newest, each.end)
    assert without_times(tally(*sent)) == counts(out_of_order=late, holes=holes)


def test_windows_of_zero() -> None:
    """Of acknowledgements and of data, and not where a connection begins or ends."""
    seen = [Sent(0, 0), A, B, Sent(0, 7, flags=RST)]
    streams = Streams()
    for packet in packets([*handshake(), *seen], Connection()):
        data = bytearray(packet.data)
        data[14 + 20 + 14 : 14 + 20 + 16] = bytes(2)
        streams.feed(msgspec.structs.replace(packet, data=memoryview(data)))
    (connection,) = streams._tcp._connections.values()
    # The handshake's own acknowledgement is one, too.
    assert without_times(connection.tally) == counts(zero_windows=4, resets=1)


def test_connections_alone_are_the_same_without_bodies(tmp_path: Path) -> None:
    """Frames, which are counted meanwhile, are written nowhere."""
    capture = tmp_path / "a.pcap"
    capture.write_bytes(made_up.capture(5, exchanges=20, share=0.05))
    alone, with_frames = (
        tables_of(capture, tmp_path / str(len(names)), names, bodies=False)
        for names in (("connections",), ("connections", "frames"))
    )
    assert alone == with_frames[:1]
    opened = [
        event.tally
        for event in Streams().read(Capture(io.BytesIO(capture.read_bytes())))
        if isinstance(event, Opened)
    ]
    assert [tuple(row[name] for name in COUNTS) for row in alone[0][2]] == [
        each.counts for each in opened
    ]
    for end in ("client", "broker"):
        names = [f"{end}_{name}" for name in COUNTS]
        assert [tuple(row[name] for name in names) for row in alone[0][2]] == [
            getattr(each, end).counts for each in opened
        ]
