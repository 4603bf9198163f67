"""Mutations of values that a schema allows but few expect: unusual numbers, texts and ids, repeated
or missing elements, error codes."""

from __future__ import annotations

import struct
from typing import Any, Final

from kproto.error_codes import ErrorCode
from kproto.reference import FieldSpan
from kproto.schema.model import FIXED_SIZES
from kspec.clientfuzz.mutate.changes import Change, Edit
from kspec.clientfuzz.mutate.draws import Draws
from kspec.clientfuzz.mutate.tree import FrameTree, Spot

__all__ = [
    "element_gone",
    "element_twice",
    "error_known",
    "error_unknown",
    "number",
    "presence",
    "real",
    "text",
    "text_invalid",
    "truth",
    "uuid_",
]

_BITS: Final = {
    "int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 16, "uint32": 32,
}  # fmt: skip
_TEXTS: Final = (
    "", "\x00", "a\x00b", " ", "..", "%s%n", "é日😀", "\u202e", "\ufeff", "x" * 300, "y" * 32767,
)  # fmt: skip
_BAD_UTF8: Final = (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"a\x80", b"\xf8\x88\x80\x80")
_REALS: Final = (
    float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, 1.7976931348623157e308, -1.0,
)  # fmt: skip
_KNOWN_CODES: Final = tuple(sorted(int(code) for code in ErrorCode))


def _is_error(span: FieldSpan) -> bool:
    return span.type == "int16" and span.path.endswith("error_code")


def number(tree: FrameTree, draws: Draws) -> Change | None:
    """Write a limit of the type's range, a neighbour of one, or a neighbour of the old value."""
    spot = tree.pick(draws, lambda span: span.type in _BITS and not _is_error(span))
    if spot is None:
        return None
    bits, signed = _BITS[spot.span.type], spot.span.type.startswith("int")
    highest = (1 << (bits - signed)) - 1
    lowest = -(1 << (bits - 1)) if signed else 0
    now = spot.span.value
    values = (lowest, lowest + 1, -2, -1, 0, 1, now - 1, now + 1, highest - 1, highest)
    value = draws.one([each for each in values if lowest <= each <= highest and each != now])
    return _fixed(spot, "number", value.to_bytes(bits // 8, "big", signed=signed), value)


def error_known(tree: FrameTree, draws: Draws) -> Change | None:
    """Write any of Kafka's codes, including ones that make no sense here."""
    return _error(tree, draws, "error-known", _KNOWN_CODES)


def error_unknown(tree: FrameTree, draws: Draws) -> Change | None:
    unknown = (max(_KNOWN_CODES) + 1, 999, -2, 2**15 - 1, -(2**15))
    return _error(tree, draws, "error-unknown", unknown)


def _error(tree: FrameTree, draws: Draws, kind: str, codes: tuple[int, ...]) -> Change | None:
    spot = tree.pick(draws, _is_error)
    if spot is None:
        return None
    code = draws.one([each for each in codes if each != spot.span.value])
    return _fixed(spot, kind, code.to_bytes(2, "big", signed=True), code)


def real(tree: FrameTree, draws: Draws) -> Change | None:
    spot = tree.pick(draws, lambda span: span.type == "float64")
    if spot is None:
        return None
    value = draws.one(_REALS)
    data = struct.pack(">d", value)
    if data == tree.frame[spot.span.offset : spot.end]:
        return None
    return _fixed(spot, "real", data, value)


def truth(tree: FrameTree, draws: Draws) -> Change | None:
    """Negate a boolean, or write a byte that is neither 0 nor 1."""
    spot = tree.pick(draws, lambda span: span.type == "bool")
    if spot is None:
        return None
    value = draws.one([int(not spot.span.value), 2, 0x80, 0xFF])
    return _fixed(spot, "bool", bytes([value]), value)


def presence(tree: FrameTree, draws: Draws) -> Change | None:
    """Change the marker of a nullable struct to the other value, or to an invalid one."""
    spot = tree.pick(draws, lambda span: span.type == "presence")
    if spot is None:
        return None
    now = tree.frame[spot.span.offset]
    value = draws.one([each for each in (0x01, 0xFF, 0x00, 0x05, 0x80) if each != now])
    edit = Edit(spot.span.offset, 1, bytes([value]))
    return Change("presence", spot.path, f"marker 0x{now:02x} is 0x{value:02x}", (edit,))


def uuid_(tree: FrameTree, draws: Draws) -> Change | None:
    spot = tree.pick(draws, lambda span: span.type == "uuid")
    if spot is None:
        return None
    value = draws.one([b"\x00" * 16, b"\xff" * 16, b"\x00" * 15 + b"\x01", draws.data(16)])
    if value == tree.frame[spot.span.offset : spot.end]:
        return None
    return _fixed(spot, "uuid", value, value.hex())


def _fixed(spot: Spot, kind: str, data: bytes, value: Any) -> Change:
    assert len(data) == FIXED_SIZES[spot.span.type]
    detail = f"{spot.span.value} is {value}"
    return Change(kind, spot.path, detail, (Edit(spot.span.offset, spot.span.length, data),))


def text(tree: FrameTree, draws: Draws) -> Change | None:
    """Write an unusual valid text with its true length."""
    return _text(tree, draws, "text", draws.one(_TEXTS).encode())


def text_invalid(tree: FrameTree, draws: Draws) -> Change | None:
    """Write bytes that are not UTF-8, with their true length."""
    return _text(tree, draws, "text-invalid", draws.one(_BAD_UTF8))


def _text(tree: FrameTree, draws: Draws, kind: str, data: bytes) -> Change | None:
    spot = tree.pick(draws, lambda span: span.type == "string")
    if spot is None or spot.span.value == data.decode(errors="replace"):
        return None
    edit = Edit(spot.span.offset, spot.span.length, spot.place.prefix(len(data)) + data)
    shown = data if len(data) <= 40 else f"{len(data)} bytes"
    return Change(kind, spot.path, f"is {shown!r}", tree.edits(spot, edit))


def element_twice(tree: FrameTree, draws: Draws) -> Change | None:
    """Repeat an element of an array and adjust the count."""
    found = _element(tree, draws)
    if found is None:
        return None
    array, element, count = found
    place = Spot(array.part, count).place
    data = tree.frame[element.offset : element.offset + element.length]
    edits = (
        Edit(place.start, place.end - place.start, place.prefix(count.value + 1)),
        Edit(element.offset + element.length, 0, data),
    )
    return Change("element-twice", element.path, "twice", tree.edits(array, *edits))


def element_gone(tree: FrameTree, draws: Draws) -> Change | None:
    """Remove an element of an array and adjust the count."""
    found = _element(tree, draws)
    if found is None:
        return None
    array, element, count = found
    place = Spot(array.part, count).place
    edits = (
        Edit(place.start, place.end - place.start, place.prefix(count.value - 1)),
        Edit(element.offset, element.length, b""),
    )
    return Change("element-gone", element.path, "left out", tree.edits(array, *edits))


def _element(tree: FrameTree, draws: Draws) -> tuple[Spot, FieldSpan, FieldSpan] | None:
    """Choose an array and one of its elements, and return its count too."""
    array = tree.pick(draws, lambda span: span.type.startswith("[]") and bool(span.value))
    if array is None:
        return None
    path = f"{array.path}[{draws.below(len(array.span.value))}]"
    spans = array.part.spans
    count = next(span for span in spans if span.path == array.path and span.type == "count")
    inside = [span for span in spans if span.path == path and span.type not in _PARTS]
    return (array, inside[0], count) if inside else None


_PARTS: Final = ("count", "presence", "tagged fields", "tag count", "tag")
