"""Send one mutated request on its own connection and classify what the broker does.

A broker may answer or close the connection. Waiting is correct if the size field promises more
bytes than were sent. It is a hang if the frame is complete and the broker does not answer a valid
request that follows. Some APIs have no response, or respond only after a time given in the request;
``run`` leaves out the latter.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final, Literal, NamedTuple, TypeAlias

import kproto
from kproto.errors import KprotoError, RemoteProtocolError
from kproto.framing import SIZE_LENGTH, FrameSplitter
from kproto.messages import ApiVersionsRequest
from kspec.clientfuzz.brokers.address import Address

__all__ = ["Outcome", "Reply", "ask", "healthy"]

WAIT_SECONDS: Final = 0.3
"""Silence after a request for this long triggers the probe."""
ANSWER_SECONDS: Final = 10.0
"""Longest time a broker may take to answer."""
PROBE_ID: Final = 0x70726F62
_READ: Final = 65536

Outcome: TypeAlias = Literal["answered", "closed", "no answer", "waits", "hung", "unreachable"]
"""``no answer`` means that the broker skipped the request and answered the one behind it."""


class Reply(NamedTuple):
    """``code`` is the top-level error code, None if there is none or the response is unreadable."""

    outcome: Outcome
    code: int | None = None
    data: bytes = b""


def _probe() -> bytes:
    return bytes(
        kproto.encode_request(
            ApiVersionsRequest(), api_version=0, correlation_id=PROBE_ID, client_id="probe"
        )
    )


async def healthy(address: Address) -> bool:
    """Return whether the broker answers a valid request on a new connection."""
    reply = await _exchange(address, _probe())
    return reply.outcome == "answered" and reply.data[4:8] == PROBE_ID.to_bytes(4, "big")


async def ask(address: Address, api_key: int, version: int, frame: bytes) -> Reply:
    """Send the bytes and classify the result. The response is decoded as ``api_key`` at
    ``version``."""
    reply = await _exchange(address, frame)
    if reply.outcome != "answered":
        return reply
    return reply._replace(code=_code(reply.data, api_key, version))


async def _exchange(address: Address, frame: bytes) -> Reply:
    try:
        reader, writer = await asyncio.open_connection(*address)
    except OSError:
        return Reply("unreachable")
    try:
        with suppress(OSError):  # a broker that closes early may not read everything
            writer.write(frame)
            await writer.drain()
        return await _outcome(reader, writer, *_frames_and_rest(frame))
    finally:
        writer.transport.abort()


async def _outcome(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frames: int, rest: int
) -> Reply:
    """Wait for the answer to the first of whole frames; ``rest`` bytes are behind them."""
    # A probe behind a rest would be read as its end, so that only the time tells of silence.
    reply = await _frame(reader, ANSWER_SECONDS if frames and rest else WAIT_SECONDS)
    if reply is not None:
        return reply
    if rest:
        return Reply("waits")
    with suppress(OSError):
        writer.write(_probe())
        await writer.drain()
    reply = await _frame(reader, ANSWER_SECONDS)
    if reply is None:
        return Reply("hung")
    if reply.data[SIZE_LENGTH : SIZE_LENGTH + 4] == PROBE_ID.to_bytes(4, "big"):
        return Reply("no answer")
    return reply


async def _frame(reader: asyncio.StreamReader, seconds: float) -> Reply | None:
    """Return the next answer, or that the connection closed; None if nothing arrives in time."""
    splitter = FrameSplitter(keep_size=True)
    try:
        async with asyncio.timeout(seconds):
            while data := await reader.read(_READ):
                splitter.feed(data)
                frame = splitter.next_frame()
                if frame is not None:
                    return Reply("answered", data=frame)
    except TimeoutError:
        return None
    except (OSError, RemoteProtocolError):
        pass
    return Reply("closed")


def _frames_and_rest(data: bytes) -> tuple[int, int]:
    """Return how many frames have as many bytes as their sizes promise, and how many bytes follow.
    Nothing follows a size that no broker accepts."""
    splitter = FrameSplitter(keep_size=True)
    splitter.feed(data)
    frames = 0
    try:
        while splitter.next_frame() is not None:
            frames += 1
    except RemoteProtocolError:
        return frames, 0
    return frames, splitter.buffered


def _code(answer: bytes, api_key: int, version: int) -> int | None:
    try:
        _, body = kproto.decode_response(answer, api_key=api_key, api_version=version)
    except KprotoError:
        return None
    code = getattr(body, "error_code", None)
    return code if isinstance(code, int) else None
