"""A client's connection to one broker of the mock without a socket: frames in, answers out.

Drives the protocol of ``mockbroker.serving.server`` over a transport that keeps what is written.
Answers are split, matched and strictly decoded here; ``world`` and ``invariants`` interpret them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fuzz.stateful.answers import correlation_id_of, read_strictly
from fuzz.stateful.loop import VirtualLoop
from kproto.codec.message import Message
from kproto.dialects import Dialect
from kproto.framing import FrameSplitter
from mockbroker.serving.server import BrokerProtocol

__all__ = ["Client", "PendingRequest"]

_API_VERSIONS = 18


@dataclass(slots=True, eq=False)
class PendingRequest:
    """A request that was sent.

    The answer uses ``version``; ``answer`` is None until it arrives. ``faulted`` is True if a fault
    rule took it, so that it proves nothing about the broker. ``expected`` is False if there is no
    answer (Produce with acks=0).
    """

    correlation_id: int
    api_key: int
    version: int
    body: Message | None
    answer: Any = None
    faulted: bool = False
    expected: bool = True


class _Transport(asyncio.Transport):
    """Keeps what is written, and whether it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 9) if name == "peername" else default

    def write_eof(self) -> None:
        self.closed = True

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def _called(make_protocol: Callable[[], BrokerProtocol]) -> BrokerProtocol:
    """A connection takes its turns from the running loop."""
    return make_protocol()


class Client:
    """``spoiled`` is True if a fault rule put unrelated bytes into the stream, which is then
    ignored."""

    def __init__(
        self,
        loop: VirtualLoop,
        codec: Dialect,
        make_protocol: Callable[[], BrokerProtocol],
        broker_id: int,
        client_id: str,
    ) -> None:
        self.broker_id = broker_id
        self.waiting: list[PendingRequest] = []
        self.spoiled = False
        self._loop, self._codec, self._client_id = loop, codec, client_id
        self._transport = _Transport()
        self._splitter = FrameSplitter(keep_size=True)
        self._correlation_id = 0
        self._protocol = loop.run_until_complete(_called(make_protocol))
        loop.call_soon(self._protocol.connection_made, self._transport)
        loop.settle()

    @property
    def open(self) -> bool:
        return not self._transport.closed

    # ---- sending ---------------------------------------------------------------------------------

    def frame(self, body: Any, version: int) -> tuple[PendingRequest, bytes]:
        """Make a request without sending it. Raises UnsupportedVersionError."""
        self._correlation_id += 1
        data = self._codec.encode_request(
            body,
            api_version=version,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        )
        assert body.API_KEY is not None
        return PendingRequest(self._correlation_id, body.API_KEY, version, body), data

    def unserved_frame(
        self, api_key: int, version: int, rest: bytes
    ) -> tuple[PendingRequest, bytes]:
        """Make a request for which no codec is needed: the start of a header and any bytes."""
        self._correlation_id += 1
        payload = (
            api_key.to_bytes(2, "big", signed=True)
            + version.to_bytes(2, "big", signed=True)
            + self._correlation_id.to_bytes(4, "big")
            + rest
        )
        answered_in = 0 if api_key == _API_VERSIONS else version
        request = PendingRequest(self._correlation_id, api_key, answered_in, None)
        return request, len(payload).to_bytes(4, "big") + payload

    def put(self, frames: list[tuple[PendingRequest, bytes]], chunk: int = 0) -> None:
        """Send all frames in one read, or in reads of ``chunk`` bytes, and run everything that is
        then ready."""
        self.waiting += [request for request, _ in frames if request.expected]
        data = b"".join(frame for _, frame in frames)
        step = chunk or len(data)
        for at in range(0, len(data), step):
            if self.open:
                self._loop.call_soon(self._protocol.data_received, data[at : at + step])
        self._loop.settle()

    def drop(self) -> None:
        """Return whether the connection has ended."""
        self._transport.closed = True
        self._loop.call_soon(self._protocol.connection_lost, None)
        self._loop.settle()

    # ---- receiving -------------------------------------------------------------------------------

    def receive(self) -> int:
        """Give each answer to its request and return their number. Answers are in the order of
        requests, as in Kafka, unless a fault rule holds some back."""
        data, self._transport.written = bytes(self._transport.written), bytearray()
        if self.spoiled or not data:
            return 0
        taken = 0
        self._splitter.feed(data)
        while (frame := self._splitter.next_frame()) is not None:
            number = correlation_id_of(frame)
            found = [each for each in self.waiting if each.correlation_id == number]
            assert found, f"unexpected answer with correlation id {number}"
            (request,) = found
            before = self.waiting[: self.waiting.index(request)]
            late = [each for each in before if not each.faulted]
            assert request.faulted or not late, f"{request} was answered before {late}"
            request.answer = read_strictly(self._codec, frame, request.api_key, request.version)
            self.waiting.remove(request)
            taken += 1
        assert not self._splitter.buffered or self.waiting, "half a frame without a request"
        return taken
