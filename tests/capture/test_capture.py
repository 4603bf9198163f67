"""A mock's journal as a capture, read back by the readers: the same bytes, at the same times."""

import asyncio
import io
from ipaddress import ip_address

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.capture import Conversation, JournalCapture
from kproto.capture.packets import ethernet_frame, ip_packet
from kproto.client import Connection
from kproto.journal import Entry, read_journal
from kproto.messages import MetadataRequest
from mockbroker import MockCluster
from wiredump.readers import (
    FROM_CLIENT,
    FROM_SERVER,
    Anomaly,
    Capture,
    Closed,
    Data,
    Gap,
    Opened,
    Packet,
    Retransmission,
    Streams,
)


def written(entries, **options) -> bytes:
    capture = JournalCapture(**options)
    return capture.start() + b"".join(capture.add(entry) for entry in entries)


def read(data: bytes):
    streams = Streams()
    events = list(streams.read(Capture(io.BytesIO(data))))
    streams.account.check()
    assert not [each for each in events if isinstance(each, Anomaly | Gap | Retransmission)]
    return events


def said(events, connection: int, direction: int) -> bytes:
    return b"".join(
        event.data
        for event in events
        if isinstance(event, Data)
        and (event.connection, event.direction) == (connection, direction)
    )


PEERS = st.sampled_from(
    (
        "127.0.0.1:40001",
        "[::1]:40002",
        "::1:40003",
        "",
        "no address",
        "1.2.3.4:99999",
        "fe80::1%lo:5",
    )
)
ENTRIES = st.lists(
    st.builds(
        Entry,
        sequence=st.just(0),
        timestamp_ns=st.integers(0, 2**62),
        broker_id=st.integers(0, 2),
        connection_id=st.integers(1, 3),
        direction=st.sampled_from(("request", "response", "event")),
        raw=st.one_of(st.binary(max_size=50), st.just(bytes(70_000))),
        event=st.sampled_from(("", "connected", "disconnected", "malformed", "unimplemented")),
        note=st.text(max_size=20),
    ),
    max_size=10,
)


@given(ENTRIES, st.lists(PEERS, min_size=9, max_size=9))
def test_every_byte_of_a_journal_is_in_its_capture(entries, peers):
    """Whatever the entries, each connection's bytes come out in order, none is lost or repeated."""
    truth: dict[tuple[int, int], list[bytes]] = {}
    count = -1
    current: dict[tuple[int, int], int] = {}
    named = []
    for entry in entries:
        key = (entry.broker_id, entry.connection_id)
        peer = peers[entry.broker_id * 3 + entry.connection_id - 1]
        # One port serves one connection at a time, as on any machine.
        host, colon, port = peer.rpartition(":")
        if port.isdigit() and int(port) < 60_000:
            peer = f"{host}{colon}{int(port) + 10 * (entry.broker_id * 3 + entry.connection_id)}"
        named.append(
            Entry(
                **{name: getattr(entry, name) for name in Entry.__struct_fields__} | {"peer": peer}
            )
        )
        if key not in current:
            count += 1
            current[key] = count
        if entry.event == "disconnected":
            del current[key]
        elif entry.direction != "event":
            direction = FROM_SERVER if entry.direction == "response" else FROM_CLIENT
            truth.setdefault((current[key], direction), []).append(entry.raw)
    events = read(written(named))
    for (connection, direction), frames in truth.items():
        assert said(events, connection, direction) == b"".join(frames)
    assert len([each for each in events if isinstance(each, Opened)]) == count + 1
    assert all(each.start == "syn" for each in events if isinstance(each, Opened))


async def test_what_the_mock_wrote_down_is_what_a_capture_shows():
    async with MockCluster(brokers=2, topics=["foo=1,2"]) as mock:
        host, port = mock.addresses[1].split(":")
        async with await Connection.open(host, int(port)) as broker:
            await broker.request(MetadataRequest(topics=None))
        for _ in range(500):
            if mock.journal.select(event="disconnected"):
                break
            await asyncio.sleep(0.01)
        entries = list(mock.journal)
        mine = mock.journal.select(broker_id=1)
    events = read(written(entries, brokers={1: ("127.0.0.1", 9092)}))
    (opened,) = [each for each in events if isinstance(each, Opened) and each.server.port == 9092]
    assert str(opened.client) == mine[0].peer
    for direction, name in ((FROM_CLIENT, "request"), (FROM_SERVER, "response")):
        frames = [entry for entry in mine if entry.direction == name]
        assert said(events, opened.connection, direction) == b"".join(entry.raw for entry in frames)
        times = [
            event.timestamp_ns
            for event in events
            if isinstance(event, Data) and event.direction == direction
        ]
        assert times == [entry.timestamp_ns for entry in frames]
    (closed,) = [each for each in events if isinstance(each, Closed)]
    assert closed.reason == "fin"


def test_events_and_notes_are_comments():
    entry = Entry(1, 5, 1, 1, "event", event="unimplemented", note="api 99 §", raw=b"not said")
    data = written([entry])
    assert "unimplemented: api 99 §".encode() in data
    assert b"not said" not in data
    assert len(list(Capture(io.BytesIO(data)))) == 4  # the handshake, and what has the comment


def test_a_journal_read_back_from_its_own_text_is_written_the_same():
    entry = Entry(1, 5, 1, 1, "request", peer="127.0.0.1:5", raw=b"\0\0\0\1x")
    line = msgspec.json.encode(entry).decode() + "\n"
    assert written(read_journal([line])) == written([entry])


@pytest.mark.parametrize("ends", [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")])
def test_a_conversation_is_whole(ends):
    conversation = Conversation(
        (ends[0], 5), (ends[1], 6), client_isn=2**32 - 2, server_isn=2**32 - 1, segment_size=3
    )
    made = [
        *conversation.open(), *conversation.send(b"request"),
        conversation.acknowledge(from_server=True),
        *conversation.send(b"response", from_server=True), *conversation.close(from_server=True),
    ]  # fmt: skip
    stream = [
        Packet(number, number, 1, memoryview(ethernet_frame(each, vlans=(5,))), len(each) + 18)
        for number, each in enumerate(made)
    ]
    events = list(Streams().read(stream))
    assert said(events, 0, FROM_CLIENT) == b"request"
    assert said(events, 0, FROM_SERVER) == b"response"
    assert isinstance(events[-1], Closed)
    assert events[-1].reason == "fin"


def test_a_reset_ends_a_conversation():
    conversation = Conversation(("10.0.0.1", 5), ("10.0.0.2", 6))
    made = [*conversation.open(), conversation.reset(from_server=True)]
    stream = [Packet(n, n, 101, memoryview(each), len(each)) for n, each in enumerate(made)]
    assert [event.reason for event in Streams().read(stream) if isinstance(event, Closed)] == [
        "reset"
    ]


def test_ends_of_two_families_are_refused():
    with pytest.raises(ValueError, match=r"10\.0\.0\.1 and fd00::2 are not of one family"):
        Conversation(("10.0.0.1", 5), ("fd00::2", 6))


def test_an_odd_length_has_a_checksum_too():
    """RFC 1071's sum over the header alone, worked out word by word."""
    packet = ip_packet(ip_address("1.2.3.4"), ip_address("5.6.7.8"), b"odd", identification=7)
    words = [int.from_bytes(packet[at : at + 2]) for at in range(0, 20, 2)]
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    assert total == 0xFFFF


async def test_the_end_that_closed_sends_the_first_fin():
    """Over a real socket: the mock says who closed, the capture shows it, a reader finds it."""
    async with MockCluster(brokers=1) as mock:
        host, port = mock.addresses[1].split(":")
        async with await Connection.open(host, int(port)) as broker:
            await broker.request(MetadataRequest(topics=None))
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"\xff\xff\xff\xff")  # a negative size: brokers close on it
        assert await reader.read() == b""
        writer.close()
        while len(mock.journal.select(event="disconnected")) < 2:
            await asyncio.sleep(0.01)
        entries = list(mock.journal)
    ends = [each.ended_by for each in read(written(entries)) if isinstance(each, Closed)]
    assert ends == [FROM_CLIENT, FROM_SERVER]
