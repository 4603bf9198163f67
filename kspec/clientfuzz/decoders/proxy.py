"""A proxy between a client and a broker that replaces the answers to one API.

The replacement has a known correlation id. If the id is intact, the request's id takes its place,
and likewise this proxy's address that of ``calls``.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from struct import Struct
from typing import Final

from kproto.errors import RemoteProtocolError
from kproto.framing import SIZE_LENGTH, FrameSplitter
from kspec.clientfuzz.decoders.calls import ADDRESS, HOST
from kspec.vectors.frames import CORRELATION_ID

__all__ = ["AnswerProxy"]

_HEAD: Final = Struct(">hhi")  # api key, version, correlation id
_ID: Final = Struct(">i")
_KNOWN: Final = _ID.pack(CORRELATION_ID)
_READ: Final = 65536


class AnswerProxy:
    """``frame`` replaces the answers to ``api_key`` at ``version``; None passes the true ones on.
    ``given`` counts the replacements."""

    def __init__(self, api_key: int, version: int) -> None:
        self.frame: bytes | None = None
        self.given = 0
        self._wanted = api_key, version
        self._server: asyncio.Server | None = None
        self._upstream = ("", 0)
        self._address = ADDRESS
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        """Listen on loopback and return the port. Call ``to`` before a client connects."""
        self._server = await asyncio.start_server(self._client, HOST, 0)
        port: int = self._server.sockets[0].getsockname()[1]
        self._address = HOST.encode() + port.to_bytes(4, "big")
        return port

    def to(self, host: str, port: int) -> None:
        """Set the broker's address."""
        self._upstream = host, port

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._upstream)
        except OSError:
            return writer.close()
        awaited: set[int] = set()
        back = asyncio.create_task(self._answers(far_reader, writer, awaited))
        try:
            await self._requests(reader, far_writer, awaited)
        except (OSError, RemoteProtocolError):
            pass  # the connection is over for both sides
        finally:
            back.cancel()
            for each in (writer, far_writer):
                each.close()
            with suppress(asyncio.CancelledError):
                await back
        return None

    async def _requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, awaited: set[int]
    ) -> None:
        splitter = FrameSplitter(keep_size=True)
        while data := await reader.read(_READ):
            splitter.feed(data)
            for frame in splitter.frames():
                if len(frame) >= SIZE_LENGTH + _HEAD.size:
                    api_key, version, correlation_id = _HEAD.unpack_from(frame, SIZE_LENGTH)
                    if (api_key, version) == self._wanted:
                        awaited.add(correlation_id)
                writer.write(frame)
            await writer.drain()

    async def _answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, awaited: set[int]
    ) -> None:
        splitter = FrameSplitter(keep_size=True)
        with suppress(OSError, RemoteProtocolError):
            while data := await reader.read(_READ):
                splitter.feed(data)
                for frame in splitter.frames():
                    writer.write(self._instead_of(frame, awaited))
                await writer.drain()
        writer.close()

    def _instead_of(self, frame: bytes, awaited: set[int]) -> bytes:
        (correlation_id,) = _ID.unpack_from(frame, SIZE_LENGTH)
        if correlation_id not in awaited:
            return frame
        awaited.discard(correlation_id)
        if self.frame is None:
            return frame
        self.given += 1
        at = SIZE_LENGTH + _ID.size
        given = self.frame.replace(ADDRESS, self._address)
        if given[SIZE_LENGTH:at] != _KNOWN:
            return given
        return given[:SIZE_LENGTH] + frame[SIZE_LENGTH:at] + given[at:]
