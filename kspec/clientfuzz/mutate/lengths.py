"""Mutations of lengths and counts, nulls, and unusual forms of varints."""

from __future__ import annotations

from typing import Final

from kspec.clientfuzz.mutate.changes import Change, Edit
from kspec.clientfuzz.mutate.draws import Draws
from kspec.clientfuzz.mutate.tree import FrameTree, Spot
from kspec.vectors.places import Place, padded

__all__ = [
    "length_above",
    "length_below",
    "length_huge",
    "length_negative",
    "length_remaining",
    "length_zero",
    "null_allowed",
    "null_forbidden",
    "varint_above",
    "varint_long",
    "varint_padded",
]

_HIGHEST: Final = {2: 2**15 - 1, 4: 2**31 - 1}


def _changed_length(tree: FrameTree, draws: Draws, kind: str, length: int | str) -> Change | None:
    """Replace a length or count and nothing else. A number is added to the true one."""
    found = tree.sized(draws)
    if found is None:
        return None
    spot, place = found
    if place.value is None:
        return None
    highest = 2**31 - 1 if place.flexible else _HIGHEST[place.size]
    match length:
        case int():
            value = place.value + length
        case "huge":
            value = highest
        case "remaining":
            value = min(len(tree.frame) - place.end + 1, highest)
        case _:
            value = int(length)
    if value == place.value or value > highest or (isinstance(length, int) and value < 0):
        return None
    return _prefixed(tree, spot, place, kind, value)


def _prefixed(tree: FrameTree, spot: Spot, place: Place, kind: str, value: int) -> Change:
    what = "count" if spot.span.type == "count" else "length"
    edit = Edit(place.start, place.end - place.start, place.prefix(value))
    return Change(kind, spot.path, f"{what} {place.value} says {value}", tree.edits(spot, edit))


def length_above(tree: FrameTree, draws: Draws) -> Change | None:
    return _changed_length(tree, draws, "length-above", 1)


def length_below(tree: FrameTree, draws: Draws) -> Change | None:
    return _changed_length(tree, draws, "length-below", -1)


def length_zero(tree: FrameTree, draws: Draws) -> Change | None:
    return _changed_length(tree, draws, "length-zero", "0")


def length_negative(tree: FrameTree, draws: Draws) -> Change | None:
    return _changed_length(tree, draws, "length-negative", "-2")


def length_huge(tree: FrameTree, draws: Draws) -> Change | None:
    return _changed_length(tree, draws, "length-huge", "huge")


def length_remaining(tree: FrameTree, draws: Draws) -> Change | None:
    return _changed_length(tree, draws, "length-remaining", "remaining")


def null_allowed(tree: FrameTree, draws: Draws) -> Change | None:
    return _null(tree, draws, "null-allowed", nullable=True)


def null_forbidden(tree: FrameTree, draws: Draws) -> Change | None:
    return _null(tree, draws, "null-forbidden", nullable=False)


def _null(tree: FrameTree, draws: Draws, kind: str, *, nullable: bool) -> Change | None:
    """Put null in place of a string, bytes or an array."""
    found = tree.sized(draws)
    if found is None:
        return None
    spot, place = found
    if place.value is None or place.nullable is not nullable:
        return None
    edit = Edit(place.start, place.whole - place.start, place.prefix(None))
    what = spot.span.type if spot.span.type != "count" else "array"
    whole = spot
    if what == "array":
        array = next(
            span for span in spot.part.spans if span.path == spot.path and span.type[:2] == "[]"
        )
        whole = Spot(spot.part, array)
    return Change(kind, spot.path, f"{what} is null", tree.edits(whole, edit))


def varint_padded(tree: FrameTree, draws: Draws) -> Change | None:
    """Write the same number in more bytes than necessary, which is valid but rare."""
    found = _varint(tree, draws)
    if found is None:
        return None
    spot, place, now = found
    size = draws.between(len(now) + 1, 5) if len(now) < 5 else 6
    return _varied(tree, spot, place, "varint-padded", padded(now, size), f"in {size} bytes")


def varint_above(tree: FrameTree, draws: Draws) -> Change | None:
    """Write five bytes whose value exceeds an int32."""
    found = _varint(tree, draws)
    if found is None:
        return None
    spot, place, _ = found
    last = draws.one([0x08, 0x0F, 0x10, 0x7F])
    data = bytes([0xFF, 0xFF, 0xFF, 0xFF, last])
    return _varied(tree, spot, place, "varint-above", data, f"is {data.hex()}")


def varint_long(tree: FrameTree, draws: Draws) -> Change | None:
    """Write the same number in six or ten bytes, or ten bytes that never end."""
    found = _varint(tree, draws)
    if found is None:
        return None
    spot, place, now = found
    data = draws.one([padded(now, 6), padded(now, 10), b"\xff" * 10])
    return _varied(tree, spot, place, "varint-long", data, f"is {data.hex()}")


def _varint(tree: FrameTree, draws: Draws) -> tuple[Spot, Place, bytes] | None:
    found = tree.sized(draws)
    if found is None or not found[1].flexible:
        return None
    spot, place = found
    return spot, place, tree.frame[place.start : place.end]


def _varied(tree: FrameTree, spot: Spot, place: Place, kind: str, data: bytes, how: str) -> Change:
    edit = Edit(place.start, place.end - place.start, data)
    what = "count" if spot.span.type == "count" else "length"
    shown = "null" if place.value is None else place.value
    return Change(kind, spot.path, f"{what} {shown} {how}", tree.edits(spot, edit))
