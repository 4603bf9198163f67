"""Find the records of a frame without decoding it: a message's plan as a program for
``wiredump.native`` (``find_records``), with operations of four bytes each: what, how, and a number.

Only messages with the usual types have a program. Its result equals that of decoding; if it has
none, the frame has to be decoded.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from struct import Struct
from typing import Final, NamedTuple

from kproto.codegen.plan import FieldPlan, StructPlan

__all__ = ["Kept", "walk_of"]

_op: Final = Struct("<BBH").pack
_LONGEST: Final = 0xFFFF
_SIZES: Final = {
    "bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8,
    "float64": 8, "uuid": 16,
}  # fmt: skip


class _Op(IntEnum):
    """The operations, as in ``wiredump/native/fields.c``."""

    SKIP = 0
    TEXT = 1
    BLOB = 2
    ARRAY = 3
    TAGS = 4
    ID = 5
    PARTITION = 6


class _How(IntFlag):
    COMPACT = 1
    NULLABLE = 2
    KEPT = 4


class Kept(NamedTuple):
    """The fields to keep, if the version has them."""

    name: FieldPlan | None
    topic_id: FieldPlan | None
    partition: FieldPlan
    records: FieldPlan


class _NoWalkError(Exception):
    """The operations cannot express a part of the message."""


def walk_of(header: StructPlan, body: StructPlan, kept: Kept) -> bytes | None:
    """Return the program for what follows a frame's size; None if there is none."""
    try:
        return b"".join(_struct(header, kept) + _struct(body, kept))
    except _NoWalkError:
        return None


def _struct(plan: StructPlan, kept: Kept) -> list[bytes]:
    ops = [op for field in plan.inline for op in _field(field, kept)]
    if plan.flexible:
        ops.append(_op(_Op.TAGS, 0, 0))
    return ops


def _field(field: FieldPlan, kept: Kept) -> list[bytes]:
    if field is kept.topic_id:
        return [_op(_Op.ID, 0, 0)]
    if field is kept.partition:
        return [_op(_Op.PARTITION, 0, 0)]
    how = _How(0)
    if field.nullable:
        how |= _How.NULLABLE
    if field is kept.name or field is kept.records:
        how |= _How.KEPT
    if field.kind == "array":
        inside = _elements(field, kept)
        if len(inside) > _LONGEST or field.element_min_size < 1:
            raise _NoWalkError
        return [_op(_Op.ARRAY, how | _compact(field), len(inside)), *inside]
    if field.kind == "struct":
        if field.struct is None or field.nullable:
            raise _NoWalkError
        return _struct(field.struct, kept)
    return [_scalar(field.kind, how | _compact(field))]


def _elements(field: FieldPlan, kept: Kept) -> list[bytes]:
    if field.struct is not None:
        return _struct(field.struct, kept)
    assert field.element_kind is not None
    return [_scalar(field.element_kind, _compact(field))]


def _scalar(kind: str, how: _How) -> bytes:
    if kind in _SIZES:
        return _op(_Op.SKIP, 0, _SIZES[kind])
    if kind in ("string", "bytes"):
        return _op(_Op.TEXT if kind == "string" else _Op.BLOB, how, 0)
    raise _NoWalkError


def _compact(field: FieldPlan) -> _How:
    return _How.COMPACT if field.compact else _How(0)
