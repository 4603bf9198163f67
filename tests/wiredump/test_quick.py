"""The quick way through captures gives what Python gives: the same items in the same order, the
same connections, the same account, in reads of any size. Torn, cut, doubled, overlapped, damaged:
what it does not take it hands back, and nobody can tell."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kproto
from kproto.capture import Conversation, container
from kproto.capture.packets import ethernet_frame
from kproto.messages import FetchRequest, FetchResponse, ProduceRequest, ProduceResponse
from tests.captures.reading import NAMES
from tests.captures.test_captures import uncompressed
from tests.captures.worse import made_worse
from tests.wiredump.quickly import read_in_python, read_quickly, tables_of
from tests.wiredump.spark.made_up import capture, pcap
from tests.wiredump.spark.rotating import records as packets_of
from tests.wiredump.spark.rotating import rotate
from wiredump import native
from wiredump.readers import Limits, TcpReassembler
from wiredump.sources import open_sources
from wiredump.sources.quick import QuickStreams
from wiredump.tables import writer

pytestmark = pytest.mark.usefixtures("extension")


def test_an_extension_of_other_sources_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever changes the interface in C changes its number, and an old build stays aside."""
    extension = native.built()
    assert extension is not None
    monkeypatch.setattr(extension, "INTERFACE", native.INTERFACE - 1)
    assert native.built() is None
    monkeypatch.delattr(extension, "INTERFACE")
    assert native.built() is None


SIZES = st.sampled_from([1, 7, 100, 1000, 4096, 65_536, 1 << 20])
START_NS = 1_700_000_000_000_000_000


SMALL = [name for name in NAMES if "everyday" not in name]


def assert_same(data: bytes, size: int) -> int:
    """Returns how many packets were left to Python."""
    slow, fast = read_in_python(data), read_quickly(data, size)
    assert fast._replace(slowly=0) == slow._replace(slowly=0)
    return fast.slowly


@given(
    seed=st.integers(0, 2**32), share=st.sampled_from([0, 0.02, 0.2]),
    odd=st.sampled_from([0, 0.1]), exchanges=st.sampled_from([2, 10, 30]), size=SIZES,
)  # fmt: skip
def test_made_up_captures(seed: int, share: float, odd: float, exchanges: int, size: int):
    assert_same(capture(seed, exchanges=exchanges, share=share, odd=odd), size)


@given(st.integers(0, 2**32), st.data(), SIZES)
def test_damaged_captures(seed: int, data: st.DataObject, size: int):
    damaged = bytearray(capture(seed, exchanges=10, share=0.02))
    places = st.lists(st.tuples(st.integers(0, len(damaged) - 1), st.integers(0, 255)), max_size=9)
    for place, value in data.draw(places):
        damaged[place] = value
    end = data.draw(st.integers(0, len(damaged)))
    assert_same(bytes(damaged[:end]), size)


@pytest.mark.parametrize(
    "name",
    [name if name in SMALL else pytest.param(name, marks=pytest.mark.slow) for name in NAMES],
)
def test_real_captures(name: str, rng: random.Random):
    data = uncompressed(name)
    assert_same(data, rng.randrange(1, 50_000))


@pytest.mark.parametrize("name", SMALL)
def test_real_captures_made_worse(name: str, rng: random.Random):
    data = made_worse(uncompressed(name), rng, lost=0.01, repeated=0.03, late=0.03)
    assert_same(data, rng.randrange(1, 1 << 20))


# ---- traffic in bulk --------------------------------------------------------------------------


def traffic(rng: random.Random, exchanges: int, segment_size: int, largest: int) -> list[bytes]:
    """A producer's and a consumer's connection, pipelined, with answers out of order, none for
    acks=0, and frames of up to ``largest`` bytes."""
    talk = Conversation(
        ("10.0.0.1", 40_000), ("10.0.1.1", 9092), segment_size=segment_size,
        client_isn=2**32 - rng.randrange(1, 10**6),
    )  # fmt: skip
    packets, waiting = talk.open(), []
    for number in range(exchanges):
        request, response, version = _produce_or_fetch(rng, largest)
        packets += talk.send(
            kproto.encode_request(
                request, api_version=version, correlation_id=number, client_id=rng.choice("ab")
            )
        )
        if getattr(request, "acks", 1):
            waiting.append(
                kproto.encode_response(response, api_version=version, correlation_id=number)
            )
        while waiting and rng.random() < 0.6:
            at = rng.randrange(len(waiting)) if rng.random() < 0.2 else 0
            packets += talk.send(waiting.pop(at), from_server=True)
        if rng.random() < 0.2:
            packets.append(talk.acknowledge(from_server=rng.random() < 0.5))
    return [ethernet_frame(packet) for packet in packets]


def _produce_or_fetch(rng: random.Random, largest: int) -> tuple[Any, Any, int]:
    data = rng.randbytes(rng.randrange(largest))
    version = rng.choice((3, 7, 9, 11))
    if rng.random() < 0.5:
        topic = {"name": "t", "partitionData": [{"index": 0, "records": None}]}
        asked = ProduceRequest.from_json(
            {
                "transactionalId": rng.choice((None, "t" * rng.randrange(300))),
                "acks": rng.choice((0, 1, -1)), "timeoutMs": 1, "topicData": [topic],
            },
            version,
        )  # fmt: skip
        asked.topic_data[0].partition_data[0].records = data
        return asked, ProduceResponse(), version
    answer = FetchResponse.from_json(
        {
            "throttleTimeMs": 0, "errorCode": 0, "sessionId": 0, "responses": [
                {
                    "topic": "t", "partitions": [
                        {
                            "partitionIndex": 0, "errorCode": 0, "highWatermark": 0,
                            "lastStableOffset": 0, "logStartOffset": 0,
                            "abortedTransactions": None, "preferredReadReplica": -1,
                            "records": None,
                        }
                    ],
                }
            ],
        },
        11,
    )  # fmt: skip
    answer.responses[0].partitions[0].records = data
    return FetchRequest(), answer, 11


def records(frames: list[bytes]) -> list[tuple[int, bytes, int]]:
    return [(START_NS + 1000 * at, frame, len(frame)) for at, frame in enumerate(frames)]


@pytest.mark.slow
@given(st.integers(0, 2**32), st.sampled_from([1448, 16_000]), SIZES.filter(lambda size: size > 99))
def test_traffic_in_bulk(seed: int, segment_size: int, size: int):
    frames = traffic(random.Random(seed), 30, segment_size, 40_000)
    data = pcap(records(frames))
    assert_same(data, size)


def test_what_is_lent_keeps_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch):
    """Of many connections, what is kept to compare with is weighed now and then, and forgotten."""
    talks = [Conversation(("10.0.0.1", 40_000 + each), ("10.0.1.1", 9092)) for each in range(120)]
    packets = [packet for talk in talks for packet in talk.open()]
    for number in range(5):
        asked = kproto.encode_request(
            ProduceRequest(acks=0), api_version=9, correlation_id=number, client_id="a" * 900
        )
        packets += [packet for talk in talks for packet in talk.send(asked)]
    frames = [ethernet_frame(packet) for packet in packets]
    weighed, weigh = [], TcpReassembler._weigh

    def seen(self: TcpReassembler, at: Any) -> None:
        weigh(self, at)
        streams = [stream for each in self._connections.values() for stream in each.streams]
        weighed.append(sum(stream.remembered for stream in streams))

    monkeypatch.setattr(TcpReassembler, "_weigh", seen)
    data, memory = pcap(records(frames)), 128 << 10
    small = read_quickly(data, 20_000, Limits.within(memory, alone=True))
    assert weighed
    assert max(weighed) <= memory
    assert small._replace(slowly=0) == read_quickly(data, 20_000)._replace(slowly=0)
    assert small.slowly < len(frames)


@pytest.mark.slow
@given(st.integers(0, 2**32), SIZES.filter(lambda size: size > 99))
def test_repetitions_are_compared_with_what_came_before(seed: int, size: int):
    """Some of what is sent again differs, and some is older than what is kept."""
    rng = random.Random(seed)
    frames = traffic(rng, 30, 1448, 20_000)
    for _ in range(20):
        at = rng.randrange(len(frames))
        again = bytearray(frames[at])
        if rng.random() < 0.5 and len(again) > 60:
            again[rng.randrange(54, len(again))] ^= 1
        frames.insert(min(len(frames), at + rng.choice((1, 2, 5, 40, 80))), bytes(again))
    for _ in range(rng.randrange(3)):
        frames.pop(rng.randrange(len(frames)))
    assert_same(pcap(records(frames)), size)


@pytest.mark.slow
def test_usual_traffic_is_not_left_to_python(rng: random.Random):
    frames = traffic(rng, 300, 1448, 20_000)
    data = container.pcapng_section() + container.pcapng_interface(1, resolution=9)
    data += b"".join(container.pcapng_packet(time, frame) for time, frame, _ in records(frames))
    assert assert_same(data, 1 << 20) <= 5
    assert assert_same(pcap(records(frames)), 1 << 20) <= 5


# ---- tables -----------------------------------------------------------------------------------

FRAMES_ONLY = ("lineage", "account", "connections", "frames", "anomalies")


def captures() -> Iterator[bytes]:
    for seed in range(4):
        yield capture(seed, exchanges=20, share=0.02 * (seed % 3))
    yield pcap(records(traffic(random.Random(1), 90, 1448, 5000)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tables", "bodies"),
    [(FRAMES_ONLY, False), (("frames",), True), (("frames", "requests"), False)],
)
def test_tables_are_the_same(
    tables: tuple[str, ...], bodies: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Row for row in the files' own order, and row group for row group."""
    monkeypatch.setattr(writer, "ROW_GROUP", 100)
    for number, data in enumerate(captures()):
        place = tmp_path / f"{number}.pcap"
        place.write_bytes(data)
        with native.using(None):
            slow = tables_of(place, tmp_path / f"slow-{number}", tables, bodies=bodies)
        with native.using(native.built()):
            fast = tables_of(place, tmp_path / f"fast-{number}", tables, bodies=bodies)
        assert fast == slow


@pytest.mark.slow
@pytest.mark.parametrize(("tables", "bodies"), [(FRAMES_ONLY, False), (("records",), True)])
def test_parts_of_a_capture_are_read_as_one(
    tables: tuple[str, ...], bodies: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Cut anywhere between two packets."""
    read: list[Any] = []
    run = QuickStreams.read

    def seen(self: QuickStreams, packets: Any) -> Iterator[Any]:
        read.append(packets)
        return run(self, packets)

    monkeypatch.setattr(QuickStreams, "read", seen)
    for number in range(6):
        rng = random.Random(number)
        data = capture(number, exchanges=20, share=0.02 * (number % 3), kind="pcap")
        parts = rotate(data, [rng.randrange(1, 200) for _ in range(3)], tmp_path / str(number))
        with native.using(None):
            slow = tables_of(
                parts, tmp_path / f"slow-{number}", tables, bodies=bodies, rotated=True
            )
        with native.using(native.built()):
            fast = tables_of(
                parts, tmp_path / f"fast-{number}", tables, bodies=bodies, rotated=True
            )
        assert fast == slow
    assert len(read) == 6


@pytest.mark.slow
@pytest.mark.parametrize(("tables", "bodies"), [(FRAMES_ONLY, False), (FRAMES_ONLY, True)])
def test_captures_that_are_merged(tables: tuple[str, ...], bodies: bool, tmp_path: Path):
    """Those of two machines, each with some packets of every connection, and some in both; and one
    without any TCP."""
    for number in range(6):
        rng = random.Random(number)
        header, every = packets_of(capture(number, exchanges=20, back=0.1, kind="pcap"))
        files = [[record for record in every if rng.random() < 0.6] for _ in range(2)]
        files.append([record[:16] + bytes(len(record) - 16) for record in every[:3]])
        paths = [tmp_path / f"{number}-{at}.pcap" for at in range(len(files))]
        for path, some in zip(paths, files, strict=True):
            path.write_bytes(header + b"".join(some))
        with native.using(None):
            slow = tables_of(paths, tmp_path / f"slow-{number}", tables, bodies=bodies)
            slowly = unread_of(paths)
        with native.using(native.built()):
            fast = tables_of(paths, tmp_path / f"fast-{number}", tables, bodies=bodies)
            assert unread_of(paths) == slowly == {str(paths[-1]): ""}
        assert fast == slow


def unread_of(paths: list[Path]) -> dict[str, str]:
    sources = open_sources([str(path) for path in paths])
    for _ in sources:
        pass
    return dict(sources.unread)


def test_packets_are_put_together_by_64_bits():
    from wiredump.native import _quick

    packets = [
        (place, time, 1, memoryview(b"abc"[:place]), 2**32 - 1, 3, 4)
        for place, time in ((0, -(2**63)), (3, 2**63 - 1), (1, 0))
    ]
    packed = _quick.pack(packets)
    assert packed.chunk == b"abca"
    found = [
        (place, time, link, packed.chunk[at:end], original, interface, capture)
        for place, time, link, at, end, original, interface, capture in packed
    ]
    assert found == packets
    for wrong in ((), [()], [(0, 0, 1, 7, 0, 0, 0)], [(0, 2**63, 1, b"", 0, 0, 0)]):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            _quick.pack(wrong)
