"""Requests of released clients that violate the schema and that real brokers accept.

Brokers ignore bytes behind a request's last field. The mock refuses them, so that tests find such
bugs, unless that would shut out a client in use. Each exception is as narrow as the bug.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kproto.connection import MalformedRequest, RequestReceived
from kproto.dialects import Api, Dialect
from kproto.errors import DecodeError
from kproto.messages.request_header import RequestHeader

__all__ = ["read_with_quirks"]

_METADATA: Final = 3
_FIRST_FLEXIBLE_METADATA: Final = 9
_BODY_OF_NULL: Final = b"\0" + b"\0\0\0"
_DESCRIBE_ACLS: Final = 29
_FIRST_FLEXIBLE_DESCRIBE_ACLS: Final = 2
_ALTER_USER_SCRAM_CREDENTIALS: Final = 51
_NO_TAGGED_FIELDS: Final = b"\0"
_AFTER_SIZE: Final = 4


def read_with_quirks(codec: Dialect, event: MalformedRequest) -> RequestReceived | None:
    """Return the request as a broker reads it, None if it has no known quirk."""
    key, version = event.api_key, event.api_version
    if key not in _QUIRKS or version is None:
        return None
    api, frame = codec.apis[key], event.frame
    try:
        header, at = RequestHeader.decode_from(
            frame, api.request_header_version(version), _AFTER_SIZE
        )
        if not _QUIRKS[key](api, version, frame[at:]):
            return None
        body, _ = api.request.decode_from(frame, version, at)
    except DecodeError:
        return None
    return RequestReceived(event.number, codec, api, header, body, frame)


def _has_array_with_reserved_bytes(api: Api, version: int, body: bytes) -> bool:
    """librdkafka (seen with 2.16) reserves four bytes for the length of an array. When it requests
    all topics from Metadata version 9 on, the null array takes one of them, and three zeros remain.
    A broker reads them as the next fields and leaves as many bytes unread.
    """
    if version < _FIRST_FLEXIBLE_METADATA or not body.startswith(_BODY_OF_NULL):
        return False
    api.request.decode(body[:1] + body[len(_BODY_OF_NULL) :], version)
    return True


def _has_filter_as_struct(api: Api, version: int, body: bytes) -> bool:
    """kafka-go (seen with 0.4.51) writes the filter of DescribeAcls as a struct within the request,
    and so an empty section of tagged fields after each of the two."""
    if version < _FIRST_FLEXIBLE_DESCRIBE_ACLS:
        return False
    _, end = api.request.decode_from(body, version, 0)
    return body[end:] == _NO_TAGGED_FIELDS


def _has_tags_twice(api: Api, version: int, body: bytes) -> bool:
    """librdkafka (seen with 2.16) ends AlterUserScramCredentials with two empty sections of tagged
    fields."""
    _, end = api.request.decode_from(body, version, 0)
    return body[end:] == _NO_TAGGED_FIELDS


_QUIRKS: Final[dict[int, Callable[[Api, int, bytes], bool]]] = {
    _METADATA: _has_array_with_reserved_bytes,
    _DESCRIBE_ACLS: _has_filter_as_struct,
    _ALTER_USER_SCRAM_CREDENTIALS: _has_tags_twice,
}
"""API key -> whether the bytes behind the header have the quirk. May raise DecodeError."""
