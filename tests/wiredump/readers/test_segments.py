"""Headers: lengths that say 0 or too much, what is not TCP, what cannot be, fragments that fail."""

from __future__ import annotations

from ipaddress import ip_address
from struct import pack
from typing import Any

import pytest

from kproto.capture import packets as wire
from tests.wiredump.readers.conversations import (
    MILLISECOND,
    Connection,
    Sent,
    handshake,
    joined,
    packets,
)
from wiredump.readers import Account, Anomaly, Event, Packet, Streams
from wiredump.readers.fragments import TIMEOUT_NS
from wiredump.readers.segments import SegmentReader

A, B = ip_address("10.0.0.1"), ip_address("10.0.0.2")
A6, B6 = ip_address("fd00::1"), ip_address("fd00::2")
SEGMENT = wire.tcp_segment(A, B, 1, 2, 3, 4, wire.ACK, b"payload")


def read(
    *frames: bytes, link_type: int = 101, lengths: int | None = None
) -> tuple[list[Any], list[Any], Account]:
    """What each frame gives, the anomalies, and the account of it all."""
    account, out = Account(), list[Event]()
    reader = SegmentReader(account)
    found = [
        reader.feed(
            Packet(number, number, link_type, memoryview(frame), lengths or len(frame)), out
        )
        for number, frame in enumerate(frames)
    ]
    reader.close(out)
    return found, out, account


def with_length(packet: bytes, length: int) -> bytes:
    """The IP length changed."""
    at = 2 if packet[0] >> 4 == 4 else 4
    return packet[:at] + pack(">H", length) + packet[at + 2 :]


@pytest.mark.parametrize(
    "packet", [wire.ip_packet(A, B, SEGMENT), wire.ip_packet(A6, B6, SEGMENT)], ids=["v4", "v6"]
)
def test_a_length_of_0_means_all_there_was(packet):
    """Segmentation offload, and IPv6's jumbograms."""
    (segment,), problems, _ = read(with_length(packet, 0))
    assert (bytes(segment.payload), segment.missing, problems) == (b"payload", 0, [])
    (segment,), problems, _ = read(with_length(packet, 0)[:-3], lengths=len(packet))
    assert (bytes(segment.payload), segment.missing, problems) == (b"payl", 3, [])


def test_the_ip_length_rules():
    """Behind it is padding; what it promises and the record does not have was cut away."""
    packet = wire.ip_packet(A, B, SEGMENT)
    (segment,), _, _ = read(packet + b"padding")
    assert (bytes(segment.payload), segment.missing) == (b"payload", 0)
    (segment,), _, _ = read(with_length(packet, len(packet) + 9))
    assert (bytes(segment.payload), segment.missing) == (b"payload", 9)
    (segment,), _, _ = read(packet[:36])  # not even the header's options would be there
    assert (bytes(segment.payload), segment.missing) == (b"", 7)


@pytest.mark.parametrize(
    ("packet", "reason", "length"),
    [
        (b"\x45" + bytes(8), "cut inside its headers", 0),
        (wire.ip_packet(A, B, SEGMENT)[:30], "cut inside its headers", 0),
        (with_length(wire.ip_packet(A, B, SEGMENT), 19), "an IPv4 length of 19 with a header", 0),
        (wire.ip_packet(A, B, SEGMENT[:19]), "19 bytes are no TCP header", 0),
        (
            wire.ip_packet(A, B, SEGMENT[:12] + b"\x40" + SEGMENT[13:]),
            "a TCP header of 16 bytes in 27",
            7,
        ),
        (
            wire.ip_packet(A, B, SEGMENT[:12] + b"\xf0" + SEGMENT[13:]),
            "a TCP header of 60 bytes in 27",
            7,
        ),
        (b"\x44" + wire.ip_packet(A, B, SEGMENT)[1:], "not an IPv4 header: begins with 0x44", 0),
        (wire.ip_packet(A, B, SEGMENT, fragment=0x2000)[:-1], "a fragment that was not capt", 26),
    ],
)
def test_headers_that_cannot_be(packet, reason, length):
    found, (problem,), account = read(packet)
    assert found == [None]
    assert problem.kind == "malformed"
    assert problem.reason.startswith(reason)
    assert problem.length == account.anomalous == account.payload == length
    assert account.malformed == 1
    account.check()


def test_what_is_not_tcp_is_counted():
    ethernet = wire.ethernet_frame(wire.ip_packet(A, B, bytes(8), protocol=17))
    found, problems, account = read(
        ethernet,
        ethernet[:12] + b"\x08\x06" + bytes(28),
        ethernet[:12] + b"\x88\xcc" + bytes(28),
        ethernet[:12] + b"\x12\x34" + bytes(28),
        ethernet[:12] + b"\x00\x26\x42\x42\x03" + bytes(35),
        wire.ethernet_frame(wire.ip_packet(A, B, bytes(8), protocol=99)),
        wire.ethernet_frame(wire.ip_packet(A6, B6, bytes(8), protocol=58)),
        wire.ethernet_frame(wire.ip_packet(A, B, bytes(8), protocol=17, fragment=0x2000)),
        link_type=1,
    )
    assert found == [None] * 8
    assert problems == []
    assert account.others == {
        "udp": 2, "arp": 1, "lldp": 1, "ethertype 0x1234": 1, "no ethertype": 1,
        "ip protocol 99": 1, "icmp6": 1,
    }  # fmt: skip
    account.check()
    _, _, account = read(b"?", link_type=105)
    assert account.others == {"link type 105": 1}


def test_ip_behind_llc_and_snap():
    packet = wire.ip_packet(A, B, SEGMENT)
    snap = b"\xaa\xaa\x03\0\0\0\x08\0" + packet
    frame = bytes(12) + pack(">H", len(snap)) + snap
    (segment,), _, _ = read(frame, link_type=1)
    assert bytes(segment.payload) == b"payload"


def fragments(size: int = 16) -> list[Packet]:
    sent = Sent(0, 0, b"0123456789" * 5, fragment_size=size)
    return packets([sent], Connection())


def test_a_datagram_that_stays_incomplete_is_an_anomaly():
    """Of its bytes those of the TCP header are no payload."""
    streams = Streams()
    events: list[Any] = [event for each in fragments()[:-1] for event in streams.feed(each)]
    assert streams.account.buffered == streams.account.payload == 64
    streams.account.check()
    events += streams.close()
    (problem,) = events
    assert problem.kind == "fragment"
    assert problem.reason == (
        "a datagram of which 64 bytes were captured is incomplete: the captures ended"
    )
    assert problem.length == streams.account.anomalous == 44
    streams.account.check()


def test_fragments_are_waited_for_as_long_as_receivers_do():
    first, *rest = fragments()
    late = [
        Packet(each.offset, first.timestamp_ns + TIMEOUT_NS + 1, 1, each.data, each.original_length)
        for each in rest
    ]
    streams = Streams()
    streams.feed(first)
    events: list[Any] = [event for each in late for event in streams.feed(each)]
    assert [event.reason.rpartition(": ")[2] for event in events] == [
        "its other fragments did not come in time"
    ]
    streams.close()
    streams.account.check()
    assert streams.account.data == 0


def test_a_fragment_twice_is_an_anomaly_and_the_first_stands():
    first, *rest = fragments()
    again = bytearray(first.data)
    again[-1] ^= 1
    sent = packets(handshake(), Connection())
    streams, events = Streams(), list[Event]()
    changed = Packet(99, first.timestamp_ns, 1, memoryview(bytes(again)), len(again))
    for packet in (*sent, first, changed, *rest):
        events += streams.feed(packet)
        streams.account.check()
    events += streams.close()
    assert joined(events, 0, 0) == [(0, b"0123456789" * 5)]
    (problem,) = [event for event in events if isinstance(event, Anomaly)]
    assert (problem.reason, problem.length) == ("16 bytes repeat a fragment, 1 differ", 16)
    streams.account.check()


def test_fragments_that_contradict_each_other():
    def fragment(at: int, data: bytes, more: bool) -> bytes:
        return wire.ip_packet(A, B, data, fragment=at // 8 | (0x2000 if more else 0))

    _, problems, account = read(
        fragment(0, bytes(8), True),
        fragment(24, bytes(8), False),
        fragment(32, bytes(8), True),  # past the last
        fragment(8, bytes(8), False),  # another last
        fragment(65528, bytes(16), True),  # past any
    )
    assert [problem.reason for problem in problems[:-1]] == [
        "a fragment past its datagram's last",
        "a fragment past its datagram's last",
        "a fragment past the largest datagram",
    ]
    assert problems[-1].reason.startswith("a datagram of which 16 bytes")
    assert account.buffered == 0
    account.check()


@pytest.mark.slow
def test_fragments_do_not_fill_the_memory():
    """A first fragment each, none of them ever whole."""
    account, out = Account(), list[Event]()
    reader = SegmentReader(account)
    for number in range(20_000):
        frame = wire.ip_packet(A, B, bytes(1000), identification=number & 0xFFFF, fragment=0x2000)
        reader.feed(Packet(number, number * MILLISECOND, 101, memoryview(frame), 1020), out)
    assert account.buffered <= 4 << 20
    assert {event.reason.rpartition(": ")[2] for event in out if isinstance(event, Anomaly)} == {
        "too many fragments wait"
    }
    reader.close(out)
    account.check()
    assert len(out) == 20_000


# ---- tunnels; ``tests/captures/wrapping.py`` has all of them ------------------------------------


def vxlan(frame: bytes, flags: int = 8) -> bytes:
    """RFC 7348."""
    inside = pack(">II", flags << 24, 5 << 8) + frame
    udp = pack(">HHHH", 40_000, 4789, 8 + len(inside), 0) + inside
    return wire.ethernet_frame(wire.ip_packet(A, B, udp, protocol=17))


def test_ipv6_in_a_tunnel():
    (segment,), _, account = read(
        wire.ip_packet(A, B, wire.ip_packet(A6, B6, SEGMENT), protocol=41)
    )
    assert bytes(segment.payload) == b"payload"
    assert segment.tunnel == "ip6ip"
    assert len(segment.flow) == 36
    account.check()


def test_tunnels_in_tunnels_end():
    """As many headers as are looked at; a packet of more is counted, and no work grows."""
    packet = wire.ip_packet(A, B, SEGMENT)
    for number in range(1, 40):
        packet = wire.ip_packet(A, B, packet, protocol=4)
        found, problems, account = read(packet)
        assert problems == []
        if number < 16:
            assert found[0].tunnel == " > ".join(["ipip"] * number)
        else:
            assert found == [None]
            assert account.others == {"too many headers": 1}
        account.check()
    (segment,), _, _ = read(
        vxlan(vxlan(wire.ethernet_frame(wire.ip_packet(A, B, SEGMENT)))), link_type=1
    )
    assert segment.tunnel == "vxlan 5 > vxlan 5"


def test_what_tunnels_carry_besides_tcp_is_counted():
    arp = bytes(12) + b"\x08\x06" + bytes(28)
    other = wire.ethernet_frame(wire.ip_packet(A, B, bytes(8), protocol=17))
    found, problems, account = read(vxlan(arp), vxlan(other), vxlan(arp, flags=0), link_type=1)
    assert found == [None] * 3
    assert problems == []
    assert account.others == {"arp in vxlan": 1, "udp in vxlan": 1, "udp": 1}
    account.check()


def test_the_length_outside_ends_what_is_inside():
    """What stands behind a datagram is none of the packet in it, which is cut there."""
    inside = wire.ip_packet(A, B, SEGMENT)
    outside = wire.ip_packet(A, B, inside[:-3], protocol=4) + b"trailer"
    (segment,), _, account = read(outside)
    assert (bytes(segment.payload), segment.missing) == (b"payl", 3)
    account.check()
