"""Track the position of a parse or a build: path, first byte of each open field, and spans.

This module knows neither schemas nor encodings; the constructs of this package report to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NoReturn

import msgspec

from kproto.errors import DecodeError, EncodeError

__all__ = ["FieldSpan", "Walk"]


_MOST_SPANS = 32
"""Limit on elements of zero bytes, which could otherwise continue without end if the data is only
the beginning of a message. It far exceeds the nesting of structs."""


class FieldSpan(msgspec.Struct, frozen=True):
    """A run of bytes and its meaning.

    ``offset`` and ``length`` are in bytes from the start of the data. ``type`` is the schema's
    (``int32``, ``[]ReassignableTopic``) or one of ``count`` (an array's), ``presence`` (a nullable
    struct's marker), ``tagged fields`` (a whole section), ``tag count``, ``tag`` (a tag number with
    its size; the value is the number), ``unknown tag``. Leaves are contiguous: each begins where
    the previous one ended. A leaf includes its own length prefix. Other spans (structs, arrays,
    sections) cover the leaves inside them.
    """

    offset: int
    length: int
    path: str
    type: str
    value: Any
    leaf: bool


class Walk:
    """The state of one build, or of one parse. ``end`` is the length of the data; ``size`` is the
    length of the whole message if the data is only its beginning."""

    def __init__(self, end: int = 0, *, keep_spans: bool = False, size: int | None = None) -> None:
        self.end = end
        self.size = end if size is None else size
        self._spans: list[FieldSpan | None] | None = [] if keep_spans else None
        self._segments: list[str] = []
        self._starts: list[int] = [0]

    @property
    def path(self) -> str:
        joined = ""
        for segment in self._segments:
            dot = "." if joined and not segment.startswith("[") else ""
            joined += dot + segment
        return joined

    @property
    def spans(self) -> list[FieldSpan]:
        """The spans in the order of the data, each container before its content."""
        return [span for span in self._spans or () if span is not None]

    @contextmanager
    def inside(self, segment: str = "", start: int = 0) -> Iterator[None]:
        """Within this context, errors have ``segment`` in their path and ``start`` as their
        offset."""
        self._starts.append(start)
        if segment:
            self._segments.append(segment)
        yield
        # Not in a finally: an error ends the walk, and its path is read where it was raised.
        if segment:
            self._segments.pop()
        self._starts.pop()

    def reserve(self) -> int:
        """Reserve the place of a container's span, which precedes the spans inside it."""
        if self._spans is None:
            return -1
        if len(self._spans) > _MOST_SPANS * (self.end + 1):
            self.fail("more fields than its bytes can hold")
        self._spans.append(None)
        return len(self._spans) - 1

    def fill(self, place: int, start: int, end: int, type_: str, value: Any, leaf: bool) -> None:
        if self._spans is not None:
            self._spans[place] = FieldSpan(start, end - start, self.path, type_, value, leaf)

    def note(self, start: int, end: int, type_: str, value: Any) -> None:
        """Add the span of a leaf that is not a field: a count, a marker, a tag."""
        self.fill(self.reserve(), start, end, type_, value, leaf=True)

    def fail(self, problem: str) -> NoReturn:
        raise DecodeError(problem, offset=self._starts[-1], path=self.path)

    def refuse(self, problem: str) -> NoReturn:
        raise EncodeError(problem, path=self.path)

    def left(self, stream: BinaryIO) -> int:
        return self.end - stream.tell()

    def room(self, stream: BinaryIO) -> int:
        """Return the largest number of bytes that could follow if the data were whole."""
        return self.size - stream.tell()

    def need(self, stream: BinaryIO, size: int) -> None:
        if size > self.left(stream):
            self.fail(f"bytes needed: {size}, left: {self.left(stream)}")
