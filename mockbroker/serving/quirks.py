"""Requests of released clients that violate the schema and that real brokers accept.

Brokers ignore bytes behind a request's last field. The mock refuses them, so that tests find such
bugs, unless that would shut out a client in use. Each exception is as narrow as the bug.
"""

from __future__ import annotations

from typing import Final

from kproto.connection import MalformedRequest, RequestReceived
from kproto.dialects import Dialect
from kproto.errors import DecodeError
from kproto.messages.request_header import RequestHeader

__all__ = ["read_with_quirks"]

_METADATA: Final = 3
_FIRST_FLEXIBLE_METADATA: Final = 9
_BODY_OF_NULL: Final = b"\0" + b"\0\0\0"
_AFTER_SIZE: Final = 4


def read_with_quirks(codec: Dialect, event: MalformedRequest) -> RequestReceived | None:
    """Return the request as a broker reads it, None if it has no known quirk.

    librdkafka (seen with 2.16) reserves four bytes for the length of an array. When it requests all
    topics from Metadata version 9 on, the null array takes one of them, and three zeros remain. A
    broker reads them as the next fields and leaves as many bytes unread.
    """
    version = event.api_version
    if event.api_key != _METADATA or version is None or version < _FIRST_FLEXIBLE_METADATA:
        return None
    api, frame = codec.apis[_METADATA], event.frame
    try:
        header, at = RequestHeader.decode_from(
            frame, api.request_header_version(version), _AFTER_SIZE
        )
        if not frame.startswith(_BODY_OF_NULL, at):
            return None
        api.request.decode(frame[at : at + 1] + frame[at + len(_BODY_OF_NULL) :], version)
        body, _ = api.request.decode_from(frame, version, at)
    except DecodeError:
        return None
    return RequestReceived(event.number, codec, api, header, body, frame)
