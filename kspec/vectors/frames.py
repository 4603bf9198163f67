"""Wrap a body as the bytes of its vector: in a whole frame if the message travels in one."""

from __future__ import annotations

from typing import Final, NamedTuple

from kproto import Dialect
from kproto.codec.message import Message
from kproto.framing import encode_frame
from kproto.messages import RequestHeader, ResponseHeader
from kspec.vectors.values import UNKNOWN_TAGS

__all__ = ["CLIENT_ID", "CORRELATION_ID", "Wrapping", "wrapping"]

CORRELATION_ID: Final = 0x0A0B0C0D
CLIENT_ID: Final = "vectors"


class Wrapping(NamedTuple):
    """What precedes a body. ``header`` is None if the message does not travel in a frame."""

    header: Message | None
    header_version: int | None

    def wrap(self, body: bytes) -> tuple[bytes, int]:
        """Return the vector's bytes and the offset of the body in them."""
        if self.header is None or self.header_version is None:
            return body, 0
        header = self.header.encode(self.header_version)
        return encode_frame(header + body), 4 + len(header)


def wrapping(dialect: Dialect, cls: type[Message], version: int, *, unknown_tags: bool) -> Wrapping:
    """Return how a message is wrapped. ``unknown_tags`` adds tags to the header if it can carry
    them."""
    if cls.API_KEY is None or cls.MESSAGE_TYPE not in ("request", "response"):
        return Wrapping(None, None)
    api = dialect.api(cls.API_KEY)
    if cls.MESSAGE_TYPE == "request":
        header_version = api.request_header_version(version)
        header: Message = RequestHeader(
            request_api_key=api.api_key,
            request_api_version=version,
            correlation_id=CORRELATION_ID,
            client_id=CLIENT_ID if header_version else "",
        )
    else:
        header_version = api.response_header_version(version)
        header = ResponseHeader(correlation_id=CORRELATION_ID)
    if unknown_tags and header_version in type(header).FLEXIBLE_VERSIONS:
        header.unknown_tags = dict(UNKNOWN_TAGS)
    return Wrapping(header, header_version)
