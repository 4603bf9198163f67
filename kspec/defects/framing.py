"""Defects about frame boundaries, lengths and counts."""

from __future__ import annotations

import asyncio
import re
from typing import Any, ClassVar, Final

from kproto.errors import DecodeError, RemoteProtocolError
from kproto.framing import SIZE_LENGTH, FrameSplitter, encode_frame
from kspec.defects.declaration import defect
from kspec.reference_client.client import Client
from kspec.reference_client.link import Link, LinkClosedError, TimedOutError

__all__: list[str] = []

_ANY_SIZE: Final = 2**31 - 1
_ROOM: Final = 1_000_000


class _Splitter(FrameSplitter):
    """A splitter whose unfinished frame can be read and set."""

    __slots__ = ()

    @property
    def rest(self) -> bytes:
        return self._data[self._offset :] + b"".join(self._more)


class _Seeing(Link):
    """A correct link with such a splitter."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._splitter: _Splitter = _Splitter(self.max_size, keep_size=True)


class _Mortal(Client):
    """A client whose process exits on the errors in ``fatal``."""

    fatal: ClassVar[type[Exception]] = MemoryError

    def failure(self, error: Exception) -> dict[str, Any]:
        if isinstance(error, self.fatal):
            raise error
        return super().failure(error)


@defect("reserves-what-a-size-says")
class ReservesWhatASizeSays(_Mortal):
    """Allocates as many bytes as a frame size says and runs out of memory."""

    class Reserving(Link):
        def next_frame(self) -> bytes | None:
            try:
                return super().next_frame()
            except RemoteProtocolError as error:
                if "more than" in str(error):
                    self._end(MemoryError(str(error)))
                raise

    link: type[Link] = Reserving


@defect("reserves-room-for-every-element")
class ReservesRoomForEveryElement(_Mortal):
    """Allocates as many elements as a count says and runs out of memory."""

    class Reserving(Link):
        def decode(self, frame: bytes, api_key: int, version: int) -> Any:
            try:
                return super().decode(frame, api_key, version)
            except DecodeError as error:
                count = re.search(r"Tried to \D*(\d+)", str(error))
                if count is not None and int(count[1]) > _ROOM:
                    raise MemoryError(str(error)) from None
                raise

    link: type[Link] = Reserving


@defect("keeps-a-lost-connection")
class KeepsALostConnection(_Seeing):
    """Trusts every size and reads the next answer into an unfinished frame."""

    max_size: int = _ANY_SIZE

    async def give_up(self, body: Any) -> bytes:
        self._awaited.clear()
        raise TimedOutError(f"no answer to {type(body).__name__} in time")

    def take(self, frame: bytes) -> None:
        """Ignores an answer that nothing waits for."""
        if int.from_bytes(frame[4:8], "big") in self._awaited:
            super().take(frame)


@defect("loses-good-frames")
class LosesGoodFrames(Link):
    """Loses a good answer that was read together with a bad size."""

    async def _read(self) -> None:
        try:
            while data := await self._reader.read(65536):
                self._splitter.feed(data)
                for frame in list(self._splitter.frames()):
                    self.take(frame)
            self._end(LinkClosedError("the broker closed the connection"))
        except RemoteProtocolError as error:
            self._end(error)
        except OSError as error:
            self._end(LinkClosedError(f"the connection broke: {error}"))


@defect("dies-of-short-frames")
class DiesOfShortFrames(_Mortal):
    """Exits on a frame too short for a correlation id."""

    class Careless(Link):
        def take(self, frame: bytes) -> None:
            if len(frame) < 2 * SIZE_LENGTH:
                self._end(IndexError("no correlation id"))
            super().take(frame)

    fatal: ClassVar[type[Exception]] = IndexError
    link: type[Link] = Careless


@defect("reads-the-next-frame-in-this-one")
class ReadsTheNextFrameInThisOne(Link):
    """Ignores the frame size and reads what an answer leaves over as the next one."""

    def decode(self, frame: bytes, api_key: int, version: int) -> Any:
        try:
            return super().decode(frame, api_key, version)
        except DecodeError as error:
            if "left over" not in str(error):
                raise
            self._splitter.feed(frame[error.offset :])
            shorter = encode_frame(frame[SIZE_LENGTH : error.offset])
            return super().decode(shorter, api_key, version)


@defect("takes-what-came-for-the-whole")
class TakesWhatCameForTheWhole(_Seeing):
    """Reads zeros for the rest of an answer if the connection ends inside it."""

    def _end(self, reason: Exception) -> None:
        rest = self._splitter.rest
        if self._awaited and len(rest) >= 2 * SIZE_LENGTH:
            missing = int.from_bytes(rest[:SIZE_LENGTH], "big") + SIZE_LENGTH - len(rest)
            self.take(rest + bytes(missing))
        super()._end(reason)


@defect("carries-over-to-the-next-connection")
class CarriesOverToTheNextConnection(Client):
    """Puts the partial frame of a lost connection in front of the next connection's bytes."""

    class Seeing(_Seeing):
        """The attributes of a new link."""

    link: type[Link] = Seeing

    async def link_to(self, address: tuple[str, int]) -> Link:
        old = self.links.get(address)
        rest = old._splitter.rest if isinstance(old, _Seeing) and old.closed is not None else b""
        if not rest:
            return await super().link_to(address)

        class Carrying(_Seeing):
            def __init__(self, **settings: Any) -> None:
                super().__init__(**settings)
                self._splitter.feed(rest)

        usual, self.link = self.link, Carrying
        try:
            return await super().link_to(address)
        finally:
            self.link = usual


@defect("dies-of-a-reset")
class DiesOfAReset(_Mortal):
    """Exits if a connection is reset."""

    class Careless(Link):
        def _end(self, reason: Exception) -> None:
            if "reset" in str(reason):
                reason = OverflowError("unhandled error of the socket")
            super()._end(reason)

    fatal: ClassVar[type[Exception]] = OverflowError
    link: type[Link] = Careless


@defect("asks-on-a-half-closed-connection")
class AsksOnAHalfClosedConnection(Link):
    """Sends requests on a connection that the broker has closed."""

    async def _read(self) -> None:
        try:
            while data := await self._reader.read(65536):
                self._splitter.feed(data)
                while (frame := self.next_frame()) is not None:
                    self.take(frame)
            await asyncio.Event().wait()
        except (RemoteProtocolError, DecodeError) as error:
            self._end(error)
        except OSError as error:
            self._end(LinkClosedError(f"the connection broke: {error}"))


@defect("takes-null-for-empty")
class TakesNullForEmpty(Link):
    """Reads null as an empty string in a field that is not nullable."""

    def decode(self, frame: bytes, api_key: int, version: int) -> Any:
        try:
            return super().decode(frame, api_key, version)
        except DecodeError as error:
            if "serialized as null" not in str(error):
                raise
            empty = b"\x01"  # a compact length is one more than the length
            mended = frame[: error.offset] + empty + frame[error.offset + 1 :]
            return super().decode(mended, api_key, version)


@defect("takes-a-part-of-a-text")
class TakesAPartOfAText(Link):
    """Truncates a string that is longer than the frame."""

    def decode(self, frame: bytes, api_key: int, version: int) -> Any:
        try:
            return super().decode(frame, api_key, version)
        except DecodeError as error:
            if not re.search(r"name: bytes needed", str(error)):
                raise
            start = error.offset
            while frame[start] & 0x80:
                start += 1
            text = frame[start + 1 :]
            rest = b"\x01\x00\x00"  # no partitions, no tags
            whole = frame[: error.offset] + bytes([len(text) + 1]) + text + rest
            return super().decode(encode_frame(whole[SIZE_LENGTH:]), api_key, version)
