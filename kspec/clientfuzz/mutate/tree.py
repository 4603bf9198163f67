"""A frame and the fields of its bytes, from which mutations choose their places.

Offsets count from the first byte of the frame's size. Only ``edits`` changes bytes, to adjust the
size of a tagged field when its value changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from kproto import Dialect, reference
from kproto.codec.registry import schema_of
from kproto.codec.runtime import unsigned_varint
from kproto.framing import SIZE_LENGTH
from kproto.partial import FrameLayout, request_layout, response_layout
from kproto.reference import FieldSpan
from kproto.schema.model import Field, MessageSchema
from kspec.clientfuzz.mutate.changes import Direction, Edit
from kspec.clientfuzz.mutate.draws import Draws
from kspec.vectors.places import Place, field_at, place_of

__all__ = ["FrameTree", "Section", "Spot", "frame_tree", "varint"]

_SIZED = ("count", "string", "bytes", "records")


class Section(NamedTuple):
    """The header or the body: its schema, version and spans."""

    schema: MessageSchema
    version: int
    spans: Sequence[FieldSpan]

    @property
    def flexible(self) -> bool:
        return self.schema.is_flexible(self.version)


class Spot(NamedTuple):
    """A span, and the section of the frame that it is in."""

    part: Section
    span: FieldSpan

    @property
    def end(self) -> int:
        return self.span.offset + self.span.length

    @property
    def path(self) -> str:
        return self.span.path

    @property
    def where(self) -> str:
        """The path without indices, with the kind of value."""
        return re.sub(r"\[\d+\]", "[]", self.span.path) + f" {self.span.type}"

    @property
    def field(self) -> Field:
        return field_at(self.part.schema, self.span.path)

    @property
    def place(self) -> Place:
        return place_of(self.part.schema, self.part.version, self.span, self.part.spans)


@dataclass(frozen=True)
class FrameTree:
    frame: bytes
    dialect: Dialect
    direction: Direction
    api_key: int
    layout: FrameLayout
    body_at: int
    header: Section
    body: Section

    def spots(self, wanted: Callable[[FieldSpan], bool]) -> list[Spot]:
        """The spots of the header, then those of the body. A response's correlation id and a
        request's API key, version and id are not included, as they have kinds of their own."""
        return [
            Spot(part, span)
            for part in (self.header, self.body)
            for span in part.spans
            if wanted(span) and not (part is self.header and span.path in _HEADER_KEYS)
        ]

    def pick(self, draws: Draws, wanted: Callable[[FieldSpan], bool]) -> Spot | None:
        """Choose a spot. Each field of the schema is equally likely, however often it occurs."""
        by_where: dict[str, list[Spot]] = {}
        for spot in self.spots(wanted):
            by_where.setdefault(spot.where, []).append(spot)
        if not by_where:
            return None
        return draws.one(by_where[draws.one(list(by_where))])

    def sized(self, draws: Draws) -> tuple[Spot, Place] | None:
        """Choose a spot with a length or count, and return its place."""
        spot = self.pick(draws, lambda span: span.type in _SIZED)
        return None if spot is None else (spot, spot.place)

    def edits(self, spot: Spot, *edits: Edit) -> tuple[Edit, ...]:
        """Return ``edits`` inside ``spot`` with those that adjust the sizes of enclosing tagged
        fields."""
        grown = sum(len(edit.data) - edit.length for edit in edits)
        if not grown:
            return edits
        around = [*self._tags_around(spot)]
        for tag, start, size in reversed(around):
            header = unsigned_varint(tag.value) + unsigned_varint(size + grown)
            grown += len(header) - (start - tag.offset)
            edits += (Edit(tag.offset, start - tag.offset, header),)
        return edits

    def _tags_around(self, spot: Spot) -> Iterator[tuple[FieldSpan, int, int]]:
        """Return the tagged fields that enclose it, outermost first, with each value's offset and
        size."""
        for tag in spot.part.spans:
            if tag.type != "tag" or tag.offset >= spot.span.offset:
                continue
            start = tag.offset + tag.length
            _, after = varint(self.frame, tag.offset)
            size, _ = varint(self.frame, after)
            if start <= spot.span.offset and spot.end <= start + size:
                yield tag, start, size


_HEADER_KEYS = ("correlation_id", "request_api_key", "request_api_version")


def frame_tree(
    frame: bytes, dialect: Dialect, direction: Direction, api_key: int, version: int
) -> FrameTree:
    """Decode a frame. Raises DecodeError if it is invalid, and UnsupportedVersionError if the
    dialect lacks the API key or version."""
    if direction == "request":
        dialect.decode_request(frame)
        layout = request_layout(dialect, frame)
    else:
        dialect.decode_response(frame, api_key=api_key, api_version=version)
        layout = response_layout(dialect, api_key=api_key, api_version=version)
    _, at = layout.header.decode_from(frame, layout.header_version, SIZE_LENGTH)
    header = _part(schema_of(layout.header), layout.header_version, frame[:at], SIZE_LENGTH)
    body = _part(schema_of(layout.body), layout.version, frame, at)
    return FrameTree(frame, dialect, direction, api_key, layout, at, header, body)


def _part(schema: MessageSchema, version: int, data: bytes, at: int) -> Section:
    spans = reference.fields(schema, version, data[at:])
    return Section(schema, version, [replace(span, offset=span.offset + at) for span in spans])


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the unsigned varint at an offset of a valid frame, and its end."""
    value, shift = 0, 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at
