"""Frames on a connection: any chunking, in order, and what closes it."""

import asyncio
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockbroker import MockCluster
from tests.mockbroker.simulation.fetching.fetching import append
from tests.mockbroker.simulation.fetching.fetching import request as fetch_request
from tests.mockbroker.simulation.security.test_tls import client_context, server_context
from tests.mockbroker.wire import PATIENCE, Wire, connect
from tests.support.full import quick
from tests.support.requests import request_of

API_VERSIONS = request_of("ApiVersions", client_software_name="test", client_software_version="1")


def burst(wire: Wire) -> list[bytes]:
    """Requests of several kinds, some answered from memory and some not."""
    alter = request_of("AlterPartitionReassignments", name="foo", partition_index=0, replicas=[9])
    bodies = [
        (API_VERSIONS, 3),
        (API_VERSIONS, 3),
        (request_of("Metadata", topics=None), 12),
        (alter, 1),
        (request_of("Metadata", topics=None), 12),
        (request_of("ListPartitionReassignments"), 0),
        (API_VERSIONS, 0),
        (request_of("Metadata", topics=[]), 1),
    ]
    return [wire.frame(body, version) for body, version in bodies]


async def answers(wire: Wire, count: int) -> list[bytes]:
    return [await wire.receive() for _ in range(count)]


@pytest.mark.parametrize("size", [1, 2, 7, 100, 10_000])
async def test_answers_do_not_depend_on_the_chunks(size: int) -> None:
    async with MockCluster(topics=["foo=1,2,3"], named_controller="leader") as mock:
        async with connect(mock) as whole:
            frames = burst(whole)
            expected = []
            for frame in frames:
                whole.send(frame)
                expected.append(await whole.receive())
        async with connect(mock) as wire:
            data = b"".join(frames)
            for at in range(0, len(data), size):
                wire.send(data[at : at + size])
                await asyncio.sleep(0)
            assert await answers(wire, len(frames)) == expected


async def test_a_slow_answer_holds_up_those_behind_it() -> None:
    async with MockCluster(topics=["foo=1,2,3"]) as mock:
        release = asyncio.Event()

        @mock.on(46, times=1)
        async def slow(_call):
            await release.wait()
            return {"throttleTimeMs": 7, "errorCode": 0, "errorMessage": None, "topics": []}

        async with connect(mock) as wire, connect(mock) as other:
            wire.send(
                wire.frame(request_of("ListPartitionReassignments"), 0), wire.frame(API_VERSIONS, 3)
            )
            # Another connection is not held up, and by its answer the first has been read.
            assert (await other.ask(API_VERSIONS, 3)).error_code == 0
            assert wire.reader._buffer == b""  # type: ignore[attr-defined]
            release.set()
            first = await wire.receive()
            second = await wire.receive()
            _, body = wire.codec.decode_response(first, api_key=46, api_version=0)
            assert body.throttle_time_ms == 7  # type: ignore[attr-defined]
            assert second[4:8] == (2).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (struct.pack(">i", -1), "frame size -1 is negative"),
        (struct.pack(">i", 104_857_601), "more than the 104857600 allowed"),
        (struct.pack(">i", 2**31 - 1), "more than the 104857600 allowed"),
        (b"GET / HTTP/1.1\r\n\r\n", "more than the 104857600 allowed"),
    ],
)
async def test_a_bad_size_closes_after_the_good_frames_before_it(data: bytes, problem: str) -> None:
    async with MockCluster() as mock, connect(mock) as wire:
        wire.send(wire.frame(API_VERSIONS, 3), data)
        await wire.receive()
        assert await wire.closed() == b""
        (entry,) = mock.journal.select(event="malformed")
        assert problem in entry.note
        async with connect(mock) as other:
            assert (await other.ask(API_VERSIONS, 3)).error_code == 0


async def test_the_largest_frame_can_be_set() -> None:
    async with MockCluster(max_frame_bytes=50) as mock, connect(mock) as wire:
        frame = wire.frame(API_VERSIONS, 3, client_id="x" * 50)
        wire.send(frame)
        assert await wire.closed() == b""


@pytest.mark.parametrize("extra", [b"\0", b"\0\0\0", b"trailing"])
async def test_trailing_bytes_close_the_connection(extra: bytes) -> None:
    async with MockCluster() as mock, connect(mock) as wire:
        frame = wire.frame(API_VERSIONS, 3)
        wire.send(len(frame[4:] + extra).to_bytes(4, "big") + frame[4:] + extra)
        assert await wire.closed() == b""
        (entry,) = mock.journal.select(event="malformed")
        assert entry.api_key == 18
        assert entry.raw.endswith(extra)


@pytest.mark.parametrize(
    ("api_key", "version"), [(999, 0), (-1, 0), (3, 14), (3, -1), (45, 2), (1, 3)]
)
@pytest.mark.requirement("A-45")
async def test_what_is_not_served_closes_the_connection(api_key: int, version: int) -> None:
    async with MockCluster(profile="kafka-4.1") as mock, connect(mock) as wire:
        wire.send(
            wire.frame(API_VERSIONS, 3), struct.pack(">ihhihb", 11, api_key, version, 5, -1, 0)
        )
        await wire.receive()
        assert await wire.closed() == b""
        (entry,) = mock.journal.select(event="unsupported")
        assert (entry.api_key, entry.api_version, entry.correlation_id) == (api_key, version, 5)


@pytest.mark.parametrize("length", range(8))
async def test_a_frame_too_short_for_a_header_closes_the_connection(length: int) -> None:
    async with MockCluster() as mock, connect(mock) as wire:
        wire.send(length.to_bytes(4, "big") + b"\0\3\0\0\0\0\0\1"[:length])
        assert await wire.closed() == b""
        assert mock.journal.select(event="malformed")


async def test_a_cut_frame_at_the_end_is_journalled() -> None:
    async with MockCluster() as mock:
        async with connect(mock) as wire:
            frame = wire.frame(API_VERSIONS, 3)
            wire.send(frame[:-1])
            wire.writer.write_eof()
            assert await wire.closed() == b""
        (entry,) = mock.journal.select(event="malformed")
        assert "inside a frame" in entry.note


async def test_acks_0_is_not_answered_and_disturbs_nothing() -> None:
    async with MockCluster() as mock, connect(mock) as wire:
        wire.send(wire.frame(request_of("Produce", acks=0), 9), wire.frame(API_VERSIONS, 3))
        assert (await wire.receive())[4:8] == (2).to_bytes(4, "big")
        assert [entry.direction for entry in mock.journal.select(api=0)] == ["request"]
        wire.send(wire.frame(request_of("Produce", acks=1), 9))
        assert (await wire.receive())[4:8] == (3).to_bytes(4, "big")


@pytest.mark.slow
async def test_a_client_that_does_not_read_costs_bounded_memory_and_loses_nothing() -> None:
    count = 3000
    async with (
        MockCluster(topics=["foo:100:3"]) as mock,
        connect(mock) as wire,
        connect(mock) as other,
    ):
        frame = wire.frame(request_of("Metadata", topics=None), 12)
        for _ in range(count):
            wire.send(frame)
        assert len((await other.ask("Metadata", 12, topics=None)).topics[0].partitions) == 100
        # The broker stops taking questions long before it has all of these answered.
        assert len(mock.journal.select(direction="response")) < count
        async with asyncio.timeout(PATIENCE):
            for _ in range(count):
                await wire.receive()


async def test_a_large_answer_keeps_the_bytes_of_the_time_it_was_given() -> None:
    """While it waits for its client, the log is cut and written anew."""
    async with MockCluster(topics=["foo=1"]) as mock, connect(mock) as wire:
        log = mock.cluster.logs
        for number in range(40):
            append(mock.cluster, bytes([number]) * 100_000)
        expected = b"".join(log.log(("foo", 0)).storage.read(0, 40))
        wire.send(wire.frame(fetch_request({("foo", 0): 0}, partition_max_bytes=1 << 24), 12))
        async with asyncio.timeout(PATIENCE):
            while not mock.journal.select(direction="response"):
                await asyncio.sleep(0)
        mock.truncate("foo-0", 1)
        for _ in range(40):
            append(mock.cluster, b"x" * 100_000)
        frame = await wire.receive()
        assert mock.journal.select(direction="response")[-1].raw == frame
        _, answer = wire.codec.decode_response(frame, api_key=1, api_version=12)
        assert answer.responses[0].partitions[0].records == expected


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_large_answer_is_whole_on_every_transport(loop: str, tls: bool) -> None:
    """It is handed to the transport in parts, of which some are small and one is a megabyte."""

    async def run() -> None:
        server = server_context() if tls else None
        async with MockCluster(topics=["foo=1"], tls=server) as mock:
            for size in (100, 300_000, 5000, 1_000_000, 100):
                append(mock.cluster, b"x" * size)
            expected = b"".join(mock.cluster.logs.log(("foo", 0)).storage.read(0, 5))
            host, port = mock.addresses[1].rsplit(":", 1)
            context = client_context() if tls else None
            async with asyncio.timeout(PATIENCE):
                streams = await asyncio.open_connection(host, int(port), ssl=context)
            wire = Wire(*streams, mock.dialect)
            body = fetch_request({("foo", 0): 0}, partition_max_bytes=1 << 24)
            for _ in range(2):
                assert (await wire.ask(body, 12)).responses[0].partitions[0].records == expected
            wire.writer.close()

    if loop == "asyncio":
        asyncio.run(run())
    else:
        uvloop = pytest.importorskip("uvloop")
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run())


@settings(max_examples=quick(30, 10))
@given(data=st.data())
@pytest.mark.requirement("C-09")
def test_no_bytes_stop_the_server(data: st.DataObject) -> None:
    """Valid frames with bytes changed, cut or inserted; then the server still answers."""

    async def run() -> None:
        async with MockCluster(topics=["foo=1,2,3"]) as mock:
            for _ in range(10):
                async with connect(mock) as wire:
                    sent = bytearray(b"".join(burst(wire)))
                    for at, value in data.draw(mutations(len(sent))):
                        sent[at] = value
                    wire.send(bytes(sent))
                    wire.writer.write_eof()
                    await wire.closed()
            async with connect(mock) as wire:
                assert (await wire.ask(API_VERSIONS, 3)).error_code == 0

    asyncio.run(run())


def mutations(length: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    change = st.tuples(st.integers(0, length - 1), st.integers(0, 255))
    return st.lists(change, min_size=1, max_size=4)
