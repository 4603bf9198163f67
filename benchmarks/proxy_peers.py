"""The programs of ``bench_proxy``: an upstream that answers at once, and a plain TCP proxy.

``python -m benchmarks.proxy_peers upstream`` answers each request with a few bytes, or, for Fetch,
with the same large response. ``... plain HOST:PORT`` copies bytes between two sockets. Each prints
its address and ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Final

import kproto
from kproto.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kproto.messages.heartbeat_response import HeartbeatResponse
from kproto.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from mockbroker.proxy.frame_stream import FrameStream, Treatment, frame_end

__all__ = ["FETCHED_BYTES"]

FETCHED_BYTES: Final = 1 << 20


def _answers() -> dict[bytes, bytes]:
    """The response to each API key and version, without its size and correlation id."""
    records = b"r" * FETCHED_BYTES
    found: dict[bytes, bytes] = {}
    produced = TopicProduceResponse(name="t", partition_responses=[PartitionProduceResponse()])
    bodies: list[tuple[Any, int]] = [
        (HeartbeatResponse(), 4),
        *((ProduceResponse(responses=[produced]), version) for version in (9, 12)),
    ]
    for version in (12, 17):
        partition = PartitionData(partition_index=0, high_watermark=1, records=records)
        topic = FetchableTopicResponse(topic="t" if version < 13 else "", partitions=[partition])
        bodies.append((FetchResponse(responses=[topic]), version))
    for body, version in bodies:
        frame = kproto.encode_response(body, api_version=version, correlation_id=0)
        key = body.API_KEY.to_bytes(2, "big") + version.to_bytes(2, "big")
        found[key] = frame[8:]
    return found


class Upstream(asyncio.Protocol):
    answers: Final = _answers()

    def __init__(self) -> None:
        self._out: list[bytes] = []
        self._stream = FrameStream(self._begin, [])
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._stream.receive(data)
        self._stream.out.clear()
        if self._out:
            self._transport.write(b"".join(self._out))
            self._out.clear()

    def pause_writing(self) -> None:
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._transport.resume_reading()

    def _begin(self, data: bytes, at: int) -> Treatment | None:
        if len(data) - at < 12:
            return None
        rest = self.answers.get(data[at + 4 : at + 8])
        if rest is None:  # a broker closes on what it does not know
            self._transport.close()
            return None
        self._out += [(len(rest) + 4).to_bytes(4, "big"), data[at + 8 : at + 12], rest]
        return frame_end(data, at)


class Plain(asyncio.Protocol):
    """One side of a connection; ``other`` is the other."""

    def __init__(self, host: str, port: int, other: Plain | None = None) -> None:
        self._place = host, port
        self.other = other
        self.transport: Any = None
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        if self.other is None:
            self._task = asyncio.ensure_future(self._connect())

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        _, other = await loop.create_connection(lambda: Plain(*self._place, self), *self._place)
        self.other = other
        for data in self._early:
            other.transport.write(data)

    def data_received(self, data: bytes) -> None:
        if self.other is None:
            self._early.append(data)
        else:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


async def _main(words: list[str]) -> None:
    loop = asyncio.get_running_loop()
    if words[0] == "upstream":
        server = await loop.create_server(Upstream, "127.0.0.1", 0)
    else:
        host, _, port = words[1].rpartition(":")
        server = await loop.create_server(lambda: Plain(host, int(port)), "127.0.0.1", 0)
    print(f"127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main(sys.argv[1:]))
