"""Changes to the bytes of a response frame: fields by path, sizes, correlation ids.

Edits that cannot be made are returned as problems, in words. ``kproto.annotate`` maps bytes to
fields.
"""

from __future__ import annotations

import base64
import binascii
import random
import re
import struct
import uuid
from collections.abc import Iterator
from typing import Any, Final

from kproto.annotate import PARTS, FrameField, response_fields
from kproto.codec.runtime import unsigned_varint
from kproto.dialects import Dialect
from kproto.errors import KprotoError
from kproto.schema.model import FIXED_SIZES
from mockbroker.faults.rule import Fault

__all__ = ["edit_fields", "edit_frame", "replacement", "with_correlation_id"]

_FORMATS: Final = {
    "bool": ">?", "int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I",
    "int64": ">q", "float64": ">d",
}  # fmt: skip
_TLS_ALERT: Final = b"\x15\x03\x03\x00\x02\x02"
"""The header of a TLS 1.2 alert record, two bytes long, and the level fatal."""

_Edit = tuple[int, int, bytes]
"""Offset and length of the bytes to replace, and the new bytes."""


class _Unwritable(ValueError):
    """The field has no encoding for the value."""


def edit_fields(
    codec: Dialect, frame: bytes, fault: Fault, *, api_key: int, version: int
) -> tuple[bytes, list[str]]:
    """Apply ``set``, ``set_length``, ``set_bytes`` and ``replace_bytes``.

    Returns the frame with its size adjusted, and the problems.
    """
    edits: list[_Edit] = []
    problems: list[str] = []
    if fault.replace_bytes:
        edits = _replacements(frame, fault.replace_bytes, problems)
    if fault.set or fault.set_length or fault.set_bytes:
        edits += _field_edits(codec, frame, fault, problems, api_key=api_key, version=version)
    return (_applied(frame, edits, problems) if edits else frame), problems


def _replacements(frame: bytes, requested: dict[str, str], problems: list[str]) -> list[_Edit]:
    """Return all replacements, or none if one exceeds the frame: it was meant for another
    response."""
    edits: list[_Edit] = []
    for extent, data in requested.items():
        offset, length = map(int, extent.split("+"))
        if offset + length > len(frame):
            problems.append(
                f"bytes {extent} exceed the response of {len(frame)} bytes; nothing was replaced"
            )
            return []
        edits.append((offset, length, bytes.fromhex(data)))
    return edits


def _field_edits(
    codec: Dialect, frame: bytes, fault: Fault, problems: list[str], *, api_key: int, version: int
) -> list[_Edit]:
    try:
        rows = response_fields(codec, frame, api_key=api_key, api_version=version)
    except KprotoError as error:
        problems.append(f"the response cannot be split into fields: {error}")
        return []
    compact = version in codec.apis[api_key].response.FLEXIBLE_VERSIONS
    edits: list[_Edit] = []
    requested = [("set", path, value) for path, value in fault.set.items()]
    requested += [("set_length", path, value) for path, value in fault.set_length.items()]
    requested += [("set_bytes", path, value) for path, value in fault.set_bytes.items()]
    for how, path, value in requested:
        found = list(_rows(rows, path, parts=how == "set_bytes"))
        if not found:
            problems.append(f"the response has no {path}")
        for row in found:
            try:
                edits.append(_edit(how, row, value, rows, compact))
            except (_Unwritable, ValueError, struct.error, OverflowError) as error:
                problems.append(f"{row.path}: {error}")
    return edits


def _rows(rows: list[FrameField], path: str, *, parts: bool) -> Iterator[FrameField]:
    pattern = re.compile(re.escape(path).replace(r"\[\*\]", r"\[[0-9]+\]"))
    for row in rows:
        if (parts or row.type not in PARTS) and pattern.fullmatch(row.path):
            yield row


def _edit(how: str, row: FrameField, value: Any, rows: list[FrameField], compact: bool) -> _Edit:
    if how == "set_length":
        offset, length = _prefix(row, rows, compact)
        return offset, length, _length(row.type, value, compact)
    data = bytes.fromhex(value) if how == "set_bytes" else _encoded(row.type, value, compact)
    if len(data) != row.length and any(
        outer.type == "tagged fields"
        and outer.offset < row.offset
        and row.offset + row.length <= outer.offset + outer.length
        for outer in rows
    ):
        raise _Unwritable("a tagged field cannot change its size")
    return row.offset, row.length, data


def _prefix(row: FrameField, rows: list[FrameField], compact: bool) -> tuple[int, int]:
    """Return offset and length of a field's length or count."""
    if row.type.startswith("[]"):
        count = next(each for each in rows if each.path == f"{row.path} (count)")
        return count.offset, count.length
    if row.type not in ("string", "bytes", "records"):
        raise _Unwritable(f"a field of type {row.type} has no length")
    if row.value is None:
        return row.offset, row.length
    if not compact:
        return row.offset, 2 if row.type == "string" else 4
    held = row.value.encode() if isinstance(row.value, str) else bytes(row.value)
    return row.offset, row.length - len(held)


def _length(kind: str, length: int, compact: bool) -> bytes:
    if compact:
        return unsigned_varint((length + 1) & 0xFFFFFFFF)
    if kind == "string":
        return (length & 0xFFFF).to_bytes(2, "big")
    return (length & 0xFFFFFFFF).to_bytes(4, "big")


def _encoded(kind: str, value: Any, compact: bool) -> bytes:
    if value is None:
        return _null(kind, compact)
    if kind in _FORMATS:
        if isinstance(value, str | list | dict):
            raise _Unwritable(f"a field of type {kind} cannot hold {value!r:.80}")
        return struct.pack(_FORMATS[kind], value)
    if kind == "uuid":
        padded = str(value) + "=" * (-len(str(value)) % 4)
        return uuid.UUID(bytes=base64.urlsafe_b64decode(padded)).bytes
    if kind in ("string", "bytes", "records") and isinstance(value, str):
        data = value.encode() if kind == "string" else _base64(value)
        return _length(kind, len(data), compact) + data
    if kind.startswith("[]") and isinstance(value, list):
        inner = kind[2:]
        if value and inner not in {*FIXED_SIZES, "string", "bytes"}:
            raise _Unwritable(f"elements of type {inner} cannot be set; use reply")
        parts = [_encoded(inner, each, compact) for each in value]
        return b"".join([_length(kind, len(value), compact), *parts])
    raise _Unwritable(f"a field of type {kind} cannot hold {value!r:.80}")


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise _Unwritable(f"invalid base64: {error}") from None


def _null(kind: str, compact: bool) -> bytes:
    if kind in FIXED_SIZES:
        raise _Unwritable(f"a field of type {kind} cannot be null")
    if kind in ("string", "bytes", "records") or kind.startswith("[]"):
        return _length(kind, -1, compact)
    return b"\xff"  # a struct's presence


def _applied(frame: bytes, edits: list[_Edit], problems: list[str]) -> bytes:
    parts: list[bytes] = []
    at = 4
    for offset, length, data in sorted(edits):
        if offset < at:
            problems.append(f"another edit already changed the bytes at {offset}")
            continue
        parts += [frame[at:offset], data]
        at = offset + length
    body = b"".join([*parts, frame[at:]])
    return len(body).to_bytes(4, "big") + body


def edit_frame(frame: bytes, fault: Fault) -> bytes:
    """Apply ``trailing``, the correlation id members and the length members."""
    if fault.trailing:
        body = frame[4:] + bytes.fromhex(fault.trailing)
        frame = len(body).to_bytes(4, "big") + body
    if fault.correlation_id is not None:
        frame = with_correlation_id(frame, fault.correlation_id)
    if fault.correlation_off_by is not None:
        own = int.from_bytes(frame[4:8], "big", signed=True)
        frame = with_correlation_id(frame, own + fault.correlation_off_by)
    if fault.length is not None:
        return _int32(fault.length) + frame[4:]
    if fault.length_off_by is not None:
        return _int32(len(frame) - 4 + fault.length_off_by) + frame[4:]
    return frame


def with_correlation_id(frame: bytes, correlation_id: int) -> bytes:
    """Return the frame with another correlation id, modulo 2^32."""
    return frame[:4] + _int32(correlation_id) + frame[8:]


def _int32(value: int) -> bytes:
    return (value & 0xFFFFFFFF).to_bytes(4, "big")


def replacement(fault: Fault, drawn: random.Random) -> bytes | None:
    """Return the bytes that replace the whole frame, None if the rule keeps it."""
    if fault.raw is not None:
        return bytes.fromhex(fault.raw)
    if fault.tls_alert is not None:
        return _TLS_ALERT + bytes([fault.tls_alert])
    if fault.garbage is not None:
        return drawn.randbytes(fault.garbage)
    return None
