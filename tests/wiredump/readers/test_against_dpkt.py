"""Another library's reading of the same bytes: what our writers write and our readers read."""

from __future__ import annotations

import io
from typing import Any

import dpkt
from hypothesis import given
from hypothesis import strategies as st

from kproto.capture import container
from tests.wiredump.readers.containers import FORMS, RECORDS
from tests.wiredump.readers.conversations import (
    LINKS,
    Connection,
    Sent,
    farewell,
    handshake,
    joined,
    packets,
)
from tests.wiredump.readers.test_reassembly import CONNECTIONS, conversations, shuffled
from wiredump.readers import Account, Anomaly, Capture, Event, Gap, Streams
from wiredump.readers.segments import SegmentReader

_NUMBERS = st.integers(0, 2**32 - 1)


def ip_of(link: str, data: bytes) -> Any:
    """The IP packet inside, by dpkt's own classes."""
    if link in ("ethernet", "padded", "vlan", "qinq"):
        return dpkt.ethernet.Ethernet(data).data
    if link == "sll":
        return dpkt.sll.SLL(data).data
    if link == "sll2":
        return dpkt.sll2.SLL2(data).data
    if link.startswith(("null", "loop")):
        data = data[4:]  # its class follows the byte order of the machine it runs on
    return dpkt.ip.IP(data) if data[0] >> 4 == 4 else dpkt.ip6.IP6(data)


@given(
    link=st.sampled_from(sorted(LINKS)),
    version=st.sampled_from((4, 6)),
    isns=st.tuples(_NUMBERS, _NUMBERS),
    options=st.sampled_from((b"", b"\x94\x04\0\0", bytes(40))),
    extensions=st.lists(st.sampled_from((0, 43, 60, 51)), max_size=3, unique=True).map(tuple),
    sent=st.builds(
        Sent,
        direction=st.integers(0, 1),
        start=st.integers(0, 100),
        data=st.binary(max_size=100),
        flags=st.integers(0, 255),
    ),
)
def test_segments(link, version, isns, options, extensions, sent):
    connection = Connection(
        version=version, isns=isns, link=link, ip_options=options, extensions=extensions
    )
    (packet,) = packets([sent], connection)
    segment = SegmentReader(Account()).feed(packet, [])
    assert segment is not None
    ip = ip_of(link, bytes(packet.data))
    tcp = ip.data
    assert isinstance(tcp, dpkt.tcp.TCP)
    assert segment.flow == ip.src + ip.dst + tcp.sport.to_bytes(2) + tcp.dport.to_bytes(2)
    assert (segment.sequence, segment.acknowledgement) == (tcp.seq, tcp.ack)
    assert (segment.flags, segment.window) == (tcp.flags & 0xFF, tcp.win)
    assert bytes(segment.payload) == tcp.data == sent.data
    assert segment.missing == 0
    # Checksums: dpkt fills in those that are 0.
    theirs = bytes(ip)
    tcp.sum = 0
    if version == 4:
        ip.sum = 0
    assert bytes(ip) == theirs


def naive(link: str, records: list[Any]) -> tuple[list[int | None], list[int | None]]:
    """Both directions of one connection, byte by byte, out of what dpkt makes of the packets: each
    byte where its sequence number puts it, the first copy stands, None where there is none. Lengths
    are the FINs'."""
    first: dict[bytes, int] = {}
    streams: dict[bytes, dict[int, int]] = {}
    ends: dict[bytes, int] = {}
    for _, data in records:
        ip = ip_of(link, data)
        tcp = ip.data
        sender = ip.src + tcp.sport.to_bytes(2)
        if tcp.flags & dpkt.tcp.TH_SYN:
            first[sender], streams[sender] = tcp.seq + 1, {}
            continue
        at = (tcp.seq - first[sender]) % 2**32
        for number, value in enumerate(tcp.data, at):
            streams[sender].setdefault(number, value)
        if tcp.flags & dpkt.tcp.TH_FIN:
            ends[sender] = at + len(tcp.data)
    client, server = ([streams[side].get(at) for at in range(ends[side])] for side in first)
    return client, server


@given(st.data(), conversations(altered=True), CONNECTIONS)
def test_reassembly(data, conversation, connection):
    """Segments reordered, repeated with other bounds, overlapping and saying something else, lost:
    through a file, our streams are those put together naively from dpkt's packets."""
    sent, lengths = conversation
    kept = [each for each in sent if data.draw(st.integers(0, 4))]
    captured = handshake() + shuffled(data.draw, kept) + farewell(lengths)
    link_type = LINKS[connection.link][0]
    file = container.pcap_header(link_type) + b"".join(
        container.pcap_record(packet.timestamp_ns, bytes(packet.data))
        for packet in packets(captured, connection)
    )
    events: list[Event] = list(Streams().read(Capture(io.BytesIO(file))))
    assert not [event for event in events if isinstance(event, Anomaly)]
    truth = naive(connection.link, list(dpkt.pcap.Reader(io.BytesIO(file))))
    for direction, values in enumerate(truth):
        ours: list[int | None] = []
        for _, part in joined(events, 0, direction):
            ours += part if isinstance(part, bytes) else [None] * part
        assert ours == values
    lost = sum(event.length for event in events if isinstance(event, Gap))
    assert lost == sum(values.count(None) for values in truth)


@given(FORMS.filter(lambda form: form.name in ("pcap", "pcap-ns", "pcapng")), RECORDS)
def test_containers(form, records):
    data = form.header() + b"".join(form.record(*record) for record in records)
    is_pcapng = form.name == "pcapng"
    reader = (dpkt.pcapng.Reader if is_pcapng else dpkt.pcap.Reader)(io.BytesIO(data))
    theirs = list(reader)
    ours: list[Any] = list(Capture(io.BytesIO(data)))
    assert [bytes(each.data) for each in ours] == [bytes(packet) for _, packet in theirs]
    assert reader.datalink() == container.ETHERNET
    # Its times are floats, or decimals of microseconds.
    for mine, (time, _) in zip(ours, theirs, strict=True):
        assert abs(mine.timestamp_ns - int(time * 10**9)) <= 1_000 + mine.timestamp_ns // 10**12
