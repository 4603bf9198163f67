"""Clients that follow the protocol but are a burden: they send a byte at a time, send requests
without reading answers, or misuse the control port."""

from __future__ import annotations

import asyncio
import contextlib
import random
import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from fuzz.fire.target import Target, client_context
from kproto.framing import FrameSplitter

__all__ = ["Actors"]

_PATIENCE: Final = 120.0
_BETWEEN_BYTES: Final = 0.005
_FLOOD: Final = 5000
_FLOODS_AT_ONCE: Final = 3
_SLOW_AT_ONCE: Final = 8
_ASKED: Final = struct.Struct(">ihhih")
"""ApiVersions v0 without a client id: size, key, version, correlation id, null."""

_TO_CONTROL: Final = (
    b"\x16\x03\x01\x02\x00",
    b"GET /state HTTP/1.1\r\nHost: ",
    b"POST /clusters HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 99999999\r\n\r\n{",
    b"POST /advance HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 4\r\n\r\n[[[[",
    b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % each for each in range(5000)) + b"\r\n",
    b"POST /advance HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"ffffffffffff\r\n",
    b"\0" * 1000,
)


class Actors:
    """``did`` counts completed actions, ``problems`` lists failures."""

    def __init__(self, target: Target, seed: int, *, tls: bool, sasl: bool) -> None:
        self._target = target
        self._random = random.Random(seed)
        self._tls = client_context() if tls else None
        self._sasl = sasl
        self.did: Counter[str] = Counter()
        self.problems: list[str] = []

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop``; actions in progress are completed."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_SLOW_AT_ONCE):
                group.create_task(self._again("slow senders answered", self._slow, 0.2, stop))
            if not self._sasl:  # an unauthenticated client may send one request
                for _ in range(_FLOODS_AT_ONCE):
                    group.create_task(self._again("floods", self._flood, 10.0, stop))
            group.create_task(self._again("control port visitors", self._visit, 0.2, stop))

    async def _again(
        self, what: str, act: Callable[[], Awaitable[None]], pause: float, stop: asyncio.Event
    ) -> None:
        while not stop.is_set():
            try:
                async with asyncio.timeout(_PATIENCE):
                    await act()
                self.did[what] += 1
            except Exception as error:
                self.problems.append(f"{what}: {type(error).__name__}: {error}")
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await stop.wait()

    async def _slow(self) -> None:
        """Send a request a byte at a time; it must be answered like any other."""
        reader, writer = await self._open()
        try:
            sent = self._random.randrange(2**31)
            for byte in _ASKED.pack(10, 18, 0, sent, -1):
                writer.write(bytes((byte,)))
                await asyncio.sleep(_BETWEEN_BYTES)
            await self._expect(reader, sent)
        finally:
            writer.close()

    async def _flood(self) -> None:
        """Send thousands of requests before reading an answer. Half of the floods then read every
        answer in order; the others disconnect with their answers unread."""
        reader, writer = await self._open()
        try:
            first = self._random.randrange(2**30)
            sent = range(first, first + _FLOOD)
            writer.write(b"".join(_ASKED.pack(10, 18, 0, each, -1) for each in sent))
            # The broker stops reading from a client that does not read its answers.
            await asyncio.sleep(0.2)
            if self._random.random() < 0.5:
                writer.transport.abort()
                return
            answers = FrameSplitter()
            received: list[int] = []
            while len(received) < _FLOOD:
                answers.feed(await reader.read(1 << 20) or b"\xff\xff\xff\xff")
                received += [int.from_bytes(frame[:4], "big") for frame in answers.frames()]
            if received != list(sent):
                raise ValueError("a flood was answered out of order")
        finally:
            writer.close()

    async def _visit(self) -> None:
        """Send the control port invalid requests, or one that never ends."""
        reader, writer = await asyncio.open_connection(*self._target.control)
        try:
            writer.write(self._random.choice(_TO_CONTROL))
            if self._random.random() < 0.5:
                writer.write_eof()
                while await reader.read(65536):
                    pass
        except ConnectionError:
            pass  # refused while still sending
        finally:
            writer.transport.abort()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = self._random.choice(self._target.addresses)
        return await asyncio.open_connection(*address, ssl=self._tls)

    async def _expect(self, reader: asyncio.StreamReader, sent: int) -> None:
        size, received = struct.unpack(">ii", await reader.readexactly(8))
        await reader.readexactly(size - 4)
        if received != sent:
            raise ValueError(f"correlation id {received}, expected {sent}")
