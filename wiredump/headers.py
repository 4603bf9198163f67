"""Read the first fields of a request one by one, for frames that are cut and have no more.

No function raises for malformed bytes; None means that the bytes end too soon or are invalid.
"""

from __future__ import annotations

from functools import cache
from struct import Struct
from typing import Final

from kproto.dialects import CONTROLLED_SHUTDOWN, dialect
from kproto.schema.versions import Versions
from wiredump.frame_boundaries import REQUEST_PREFIX

__all__ = ["produce_acks", "produce_flexible", "request_client_id"]

_PRODUCE: Final = 0
_int16: Final = Struct(">h").unpack_from


def request_client_id(raw: bytes) -> str | None:
    """Return the client id of a request frame; None also if the client sent none."""
    key, version = _int16(raw, 4)[0], _int16(raw, 6)[0]
    if key == CONTROLLED_SHUTDOWN and version == 0:
        return None
    found = _string(raw, REQUEST_PREFIX)
    return None if found is None else found[0]


def produce_acks(raw: bytes, version: int) -> int | None:
    """Return ``acks`` of a Produce request frame, which follows the header and the transactional
    id."""
    found = _string(raw, REQUEST_PREFIX)
    if found is None:
        return None
    at: int | None = found[1]
    if version in produce_flexible():
        at = _after_tags(raw, at)
        at = _after_compact(raw, at)
    elif version >= 3:
        transactional_id = _string(raw, found[1])
        at = None if transactional_id is None else transactional_id[1]
    if at is None or len(raw) < at + 2:
        return None
    acks: int = _int16(raw, at)[0]
    return acks


@cache
def produce_flexible() -> Versions:
    """Return the flexible versions of Produce."""
    return dialect("kafka").request_versions(flexible=True)[_PRODUCE]


def _string(raw: bytes, at: int) -> tuple[str | None, int] | None:
    """Return a nullable string and the position behind it."""
    if len(raw) < at + 2:
        return None
    (length,) = _int16(raw, at)
    end = at + 2 + max(length, 0)
    if length < -1 or len(raw) < end:
        return None
    return (raw[at + 2 : end].decode(errors="replace") if length >= 0 else None), end


def _varint(raw: bytes, at: int | None) -> tuple[int, int] | None:
    value = shift = 0
    while at is not None and at < len(raw) and shift < 35:
        value |= (raw[at] & 0x7F) << shift
        at += 1
        if raw[at - 1] < 0x80:
            return value, at
        shift += 7
    return None


def _after_tags(raw: bytes, at: int | None) -> int | None:
    count = _varint(raw, at)
    if count is None or count[0] > len(raw):
        return None
    at = count[1]
    for _ in range(count[0]):
        tag = _varint(raw, at)
        size = _varint(raw, tag[1]) if tag is not None else None
        if size is None:
            return None
        at = size[1] + size[0]
    return at


def _after_compact(raw: bytes, at: int | None) -> int | None:
    """Return the position behind a compact nullable string."""
    length = _varint(raw, at)
    return None if length is None else length[1] + max(length[0] - 1, 0)
