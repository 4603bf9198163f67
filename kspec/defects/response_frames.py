"""Defects about frames and correlation ids."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import msgspec

from kproto.errors import DecodeError, RemoteProtocolError
from kproto.framing import SIZE_LENGTH, encode_frame
from kspec.defects.declaration import defect
from kspec.reference_client.client import Client
from kspec.reference_client.link import Link, TimedOutError

__all__: list[str] = []


@defect("ignores-correlation-id")
class IgnoresCorrelationId(Link):
    """Gives the next answer to the oldest request whatever its correlation id."""

    def match(self, correlation_id: int) -> int:
        return min(self._awaited, default=correlation_id)


@defect("late-answer-hurts-the-next")
class LateAnswerHurtsTheNext(Link):
    """Leaves the connection open after a timeout and gives the late answer to the next request."""

    def match(self, correlation_id: int) -> int:
        return min(self._awaited, default=correlation_id)

    async def give_up(self, body: Any) -> bytes:
        self._awaited.clear()
        raise TimedOutError(f"no answer to {type(body).__name__} in time")

    def take(self, frame: bytes) -> None:
        if self._awaited:
            super().take(frame)


@defect("passes-over-strange-answers")
class PassesOverStrangeAnswers(Link):
    """Ignores an answer whose correlation id it did not use."""

    def take(self, frame: bytes) -> None:
        with suppress(RemoteProtocolError):
            super().take(frame)


@defect("takes-a-read-for-a-frame")
class TakesAReadForAFrame(Link):
    """Assumes that one read returns one whole frame."""

    async def _read(self) -> None:
        try:
            while data := await self._reader.read(65536):
                self.take(data)
        except (RemoteProtocolError, OSError) as error:
            self._end(error)


@defect("waits-on-bad-sizes")
class WaitsOnBadSizes(Link):
    """Keeps waiting for a frame of an impossible size."""

    def next_frame(self) -> bytes | None:
        try:
            return super().next_frame()
        except RemoteProtocolError:
            return None


@defect("accepts-what-it-cannot-read")
class AcceptsWhatItCannotRead(Link):
    """Treats an unreadable answer as an empty one."""

    def decode(self, frame: bytes, api_key: int, version: int) -> Any:
        try:
            return super().decode(frame, api_key, version)
        except DecodeError:
            return self.codec.apis[api_key].response()


@defect("reads-beyond-the-end")
class ReadsBeyondTheEnd(Link):
    """Reads zeros past the end of an answer."""

    def decode(self, frame: bytes, api_key: int, version: int) -> Any:
        for missing in range(4096):
            try:
                longer = encode_frame(frame[SIZE_LENGTH:] + bytes(missing))
                return super().decode(longer, api_key, version)
            except DecodeError:
                continue
        return super().decode(frame, api_key, version)


@defect("chokes-on-unknown-tags")
class ChokesOnUnknownTags(Link):
    """Cannot read an answer with an unknown tagged field."""

    def decode(self, frame: bytes, api_key: int, version: int) -> Any:
        header, body = self.codec.decode_response(frame, api_key=api_key, api_version=version)
        if _has_unknown_tags(header) or _has_unknown_tags(body):
            raise DecodeError("an unknown tagged field", offset=len(frame), path="")
        return body


def _has_unknown_tags(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_unknown_tags, value))
    if not isinstance(value, msgspec.Struct):
        return False
    if getattr(value, "unknown_tags", None):
        return True
    return any(_has_unknown_tags(getattr(value, name)) for name in value.__struct_fields__)


@defect("dies-of-bad-answers")
class DiesOfBadAnswers(Client):
    """Exits if an answer cannot be understood."""

    def failure(self, error: Exception) -> dict[str, Any]:
        if isinstance(error, DecodeError | RemoteProtocolError):
            raise error
        return super().failure(error)


@defect("never-opens-again")
class NeverOpensAgain(Client):
    """Does not reconnect after a connection has ended."""

    async def link_to(self, address: tuple[str, int]) -> Link:
        link = self.links.get(address)
        if link is not None and link.closed is not None:
            raise link.closed
        return await super().link_to(address)


@defect("waits-too-long")
class WaitsTooLong(Client):
    """Gives up only after three times its own timeout."""

    class Patient(Link):
        async def exchange(self, body: Any, version: int) -> bytes:
            self.timeout *= 3
            try:
                return await super().exchange(body, version)
            finally:
                self.timeout /= 3

    link: type[Link] = Patient

    async def call(self, op: str, arguments: Any) -> dict[str, Any]:
        if op in ("connect", "close"):
            return await super().call(op, arguments)
        usual, self.timeout = self.timeout, 3 * self.timeout
        try:
            async with asyncio.timeout(2 * self.timeout):
                return await super().call(op, arguments)
        finally:
            self.timeout = usual
