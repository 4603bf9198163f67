"""Mutations of tagged sections (KIP-482): tags that are unknown, repeated, out of order, too many,
of a wrong size, or missing."""

from __future__ import annotations

from kproto.codec.runtime import unsigned_varint
from kspec.clientfuzz.mutate.changes import Change, Edit
from kspec.clientfuzz.mutate.draws import Draws
from kspec.clientfuzz.mutate.tree import FrameTree, Spot, varint

__all__ = ["tag_count", "tag_order", "tag_size", "tag_twice", "tag_unknown", "tags_missing"]

_UNKNOWN = (1000, 20000, 2**31 - 1)
"""Tag numbers that no schema uses."""


def _section(tree: FrameTree, draws: Draws) -> tuple[Spot, int, int, int] | None:
    """Choose a section. Return it, its count, the offset of its first tag, and its highest tag or
    -1."""
    spot = tree.pick(draws, lambda span: span.type == "tagged fields")
    if spot is None:
        return None
    count, first = varint(tree.frame, spot.span.offset)
    highest, at = -1, first
    for _ in range(count):
        highest, at = varint(tree.frame, at)
        size, at = varint(tree.frame, at)
        at += size
    return spot, count, first, highest


def _path(spot: Spot) -> str:
    return spot.path or ("header" if spot.part.schema.type == "header" else "")


def _with(
    tree: FrameTree, found: tuple[Spot, int, int, int], kind: str, added: list[bytes], detail: str
) -> Change:
    """Add tags behind the existing ones."""
    spot, count, first, _ = found
    count_bytes, more = unsigned_varint(count + len(added)), b"".join(added)
    if spot.end == first:  # one edit, as an insertion at another edit's end would have no order
        edits: tuple[Edit, ...] = (
            Edit(spot.span.offset, first - spot.span.offset, count_bytes + more),
        )
    else:
        edits = (
            Edit(spot.span.offset, first - spot.span.offset, count_bytes),
            Edit(spot.end, 0, more),
        )
    return Change(kind, _path(spot), detail, tree.edits(spot, *edits))


def _tag(number: int, data: bytes) -> bytes:
    return unsigned_varint(number) + unsigned_varint(len(data)) + data


def tag_unknown(tree: FrameTree, draws: Draws) -> Change | None:
    """Add a tag of a future version, which is valid."""
    found = _section(tree, draws)
    if found is None or found[3] >= _UNKNOWN[0]:
        return None
    number, data = draws.one(_UNKNOWN), draws.data(draws.one([0, 1, 3, 200]))
    detail = f"unknown tag {number} of {len(data)} bytes"
    return _with(tree, found, "tag-unknown", [_tag(number, data)], detail)


def tag_twice(tree: FrameTree, draws: Draws) -> Change | None:
    found = _section(tree, draws)
    if found is None or found[3] >= _UNKNOWN[0]:
        return None
    number = draws.one(_UNKNOWN)
    tags = [_tag(number, b"\x01"), _tag(number, b"\x02")]
    return _with(tree, found, "tag-twice", tags, f"unknown tag {number} twice")


def tag_order(tree: FrameTree, draws: Draws) -> Change | None:
    found = _section(tree, draws)
    if found is None or found[3] >= _UNKNOWN[0]:
        return None
    tags = [_tag(_UNKNOWN[1], b"\x01"), _tag(_UNKNOWN[0], b"\x02")]
    detail = f"unknown tags {_UNKNOWN[1]}, {_UNKNOWN[0]} in this order"
    return _with(tree, found, "tag-order", tags, detail)


def tag_count(tree: FrameTree, draws: Draws) -> Change | None:
    """Write a count that the bytes do not match."""
    found = _section(tree, draws)
    if found is None:
        return None
    spot, count, first, _ = found
    says = draws.one([count + 1, 127, 2**31 - 1, 2**32 - 1])
    edit = Edit(spot.span.offset, first - spot.span.offset, unsigned_varint(says))
    detail = f"{count} tagged fields said to be {says}"
    return Change("tag-count", _path(spot), detail, tree.edits(spot, edit))


def tag_size(tree: FrameTree, draws: Draws) -> Change | None:
    """Write a tag, an existing or a new one, whose size differs from its value's."""
    spot = tree.pick(draws, lambda span: span.type == "tag")
    if spot is None:
        found = _section(tree, draws)
        if found is None or found[3] >= _UNKNOWN[0]:
            return None
        size = draws.one([2, 1000, 2**31 - 1])
        tag = unsigned_varint(_UNKNOWN[0]) + unsigned_varint(size) + b"\x01"
        detail = f"unknown tag {_UNKNOWN[0]} of 1 byte says {size}"
        return _with(tree, found, "tag-size", [tag], detail)
    number, at = varint(tree.frame, spot.span.offset)
    size, end = varint(tree.frame, at)
    says = draws.one([each for each in (0, size - 1, size + 1, 1000, 2**31 - 1) if each >= 0])
    if says == size:
        return None
    edit = Edit(at, end - at, unsigned_varint(says))
    detail = f"tag {number} of {size} bytes says {says}"
    return Change("tag-size", spot.path, detail, tree.edits(spot, edit))


def tags_missing(tree: FrameTree, draws: Draws) -> Change | None:
    """Remove the tagged section, like an encoder that treats the version as not flexible."""
    spot = tree.pick(draws, lambda span: span.type == "tagged fields")
    if spot is None:
        return None
    edit = Edit(spot.span.offset, spot.span.length, b"")
    return Change("tags-missing", _path(spot), "no tagged section", tree.edits(spot, edit))
