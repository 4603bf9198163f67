"""Find where selected fields are in the bytes of one frame, without decoding it.

A consumer in C slices the frame by these places, without an object for each value. There is no such
reader in Python: ``place_finder`` returns None without the native engine, and ``find`` returns None
for bytes that do not match. The caller then decodes the message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import NamedTuple, TypeAlias

from kproto.codec import registry
from kproto.codec.registry import CompiledPlan
from kproto.codec.structs import RootStruct
from kproto.columns.layout import lay_out
from kproto.errors import SelectionError

__all__ = ["Place", "PlaceFinder", "place_finder"]

Place: TypeAlias = tuple[int, int]
"""Offset and size; (-1, -1) for null, and for a default that is not in the bytes. The offset of a
string or bytes is past its length."""

Locate: TypeAlias = Callable[[bytes, int, CompiledPlan], tuple[bytes, int] | None]


class PlaceFinder(NamedTuple):
    """``locate(data, offset, header)`` is the function in C. It skips a ``header`` at ``offset``
    and reads the message that follows; it returns the places as pairs of int32, row by row, and the
    offset after the message, or None if the bytes do not match."""

    locate: Locate
    header: CompiledPlan
    width: int
    """The number of columns."""

    def find(self, data: bytes, offset: int) -> tuple[list[tuple[Place, ...]], int] | None:
        """Return the place of each column for every row, and where the message ends."""
        found = self.locate(data, offset, self.header)
        if found is None:
            return None
        places: Iterator[Place] = Struct("=ii").iter_unpack(found[0])
        return list(zip(*[places] * self.width, strict=True)), found[1]


def place_finder(
    header: tuple[type[RootStruct], int], message: type[RootStruct], version: int,
    columns: Sequence[str],
) -> PlaceFinder | None:  # fmt: skip
    """Return the finder of fields in frames of ``message``, which begin with ``header``, a class
    and its version. ``columns`` are paths as in ``select``; the rows are the same.

    Raises UnsupportedVersionError, UnknownNameError and SelectionError as ``select``; an array has
    no place.
    """
    layout = lay_out(registry.plan_of(message, version), {path: path for path in columns})
    arrays = [field.path for field in layout.fields if field.kind == "array"]
    if arrays:
        raise SelectionError(f"{arrays[0]} is an array: it has no place of its own")
    skipped = registry.compiled_plan(*header)
    plan = registry.compiled_plan(message, version)
    if skipped is None or plan is None:
        return None
    described = tuple(level.described() for level in layout.levels)
    selection = plan.select(described, len(layout.fields))
    return PlaceFinder(selection.locate, skipped, len(layout.fields))
