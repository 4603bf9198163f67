"""One damaged request to a broker on a connection of its own, and what becomes of it.

A broker may answer, or close. It may also wait: that is in order where the size promises more than
was sent, and a hang where the frame is whole and even a good request behind it is not answered. The
requests of some apis have no answer, or one that takes as long as they say; ``run`` leaves out the
latter.
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

__all__ = ["Became", "Reply", "ask", "healthy"]

WAIT_SECONDS: Final = 0.3
"""How long after a request nothing has to come before it is looked into."""
ANSWER_SECONDS: Final = 10.0
"""How long an answer may take."""
PROBE_ID: Final = 0x70726F62
_READ: Final = 65536

Became: TypeAlias = Literal["answered", "closed", "no answer", "waits", "hung", "unreachable"]
"""``no answer``: passed over, and what came behind it was answered."""


class Reply(NamedTuple):
    """``code`` is the error code at the top of an answer that could be read, None else."""

    became: Became
    code: int | None = None
    data: bytes = b""


def _probe() -> bytes:
    return bytes(
        kproto.encode_request(
            ApiVersionsRequest(), api_version=0, correlation_id=PROBE_ID, client_id="probe"
        )
    )


async def healthy(address: Address) -> bool:
    """Whether a good request is answered on a connection of its own."""
    reply = await _asked(address, _probe(), whole=True)
    return reply.became == "answered" and reply.data[4:8] == PROBE_ID.to_bytes(4, "big")


async def ask(address: Address, api_key: int, version: int, frame: bytes) -> Reply:
    """Send the bytes, and see. ``api_key`` and ``version`` are what the answer is read as."""
    reply = await _asked(address, frame, whole=_is_whole(frame))
    if reply.became != "answered":
        return reply
    return reply._replace(code=_code(reply.data, api_key, version))


async def _asked(address: Address, frame: bytes, *, whole: bool) -> Reply:
    try:
        reader, writer = await asyncio.open_connection(*address)
    except OSError:
        return Reply("unreachable")
    try:
        with suppress(OSError):  # a broker that closes early may not take it all
            writer.write(frame)
            await writer.drain()
        return await _what_comes(reader, writer, whole)
    finally:
        writer.transport.abort()


async def _what_comes(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, whole: bool
) -> Reply:
    came = await _frame(reader, WAIT_SECONDS)
    if came is not None:
        return came
    if not whole:
        return Reply("waits")
    with suppress(OSError):
        writer.write(_probe())
        await writer.drain()
    came = await _frame(reader, ANSWER_SECONDS)
    if came is None:
        return Reply("hung")
    if came.data[SIZE_LENGTH : SIZE_LENGTH + 4] == PROBE_ID.to_bytes(4, "big"):
        return Reply("no answer")
    return came


async def _frame(reader: asyncio.StreamReader, seconds: float) -> Reply | None:
    """The next answer, or that there is none to come; None where nothing came in time."""
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


def _is_whole(frame: bytes) -> bool:
    """Whether a broker has every byte that the sizes promise, of the last frame too."""
    splitter = FrameSplitter(keep_size=True)
    splitter.feed(frame)
    try:
        while splitter.next_frame() is not None:
            pass
    except RemoteProtocolError:
        return True
    return splitter.buffered == 0


def _code(answer: bytes, api_key: int, version: int) -> int | None:
    try:
        _, body = kproto.decode_response(answer, api_key=api_key, api_version=version)
    except KprotoError:
        return None
    code = getattr(body, "error_code", None)
    return code if isinstance(code, int) else None
