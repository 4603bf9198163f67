"""Runs of structs that have the same shape are read in one pass.

Partitions of a topic nearly always have as many replicas as each other. Where a struct holds only
numbers and arrays of numbers, the lengths of its arrays (its *shape*) fix the offset of every
field, so a run of one shape is a table of fixed-width rows: the length bytes of all rows are
compared at once, by strided slices, and ``iter_unpack`` reads the rest. A run that differs is left
to the element-by-element code, which is always right.

One comprehension is compiled for each shape met, at most ``MAX_SHAPES`` a struct, so that bytes
from outside cannot make us compile without end.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from kproto.codegen.plan import FieldPlan, StructPlan
from kproto.codegen.text import class_name

__all__ = ["Shape", "run_reader", "shape_of"]

MAX_SHAPES: Final = 32
MAX_ELEMENTS: Final = 16
"""Longer arrays are read one by one: a row would have too many columns."""

Run = tuple[int, list[tuple[int, int]], list[int], Callable[[bytes], list[Any]]]
"""Row width; (offset, value) of each length byte; offsets of bytes that must be 0; row reader."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a struct decides its shape: its plan, and how long a run must be to pay."""

    plan: StructPlan
    min_run: int = 3


def shape_of(plan: StructPlan) -> Shape | None:
    """The shape of a struct that has one: only numbers and arrays of numbers, at least one
    array, no known tagged fields."""
    arrays = 0
    for item in plan.inline:
        if item.kind == "array" and item.element_format is not None:
            arrays += 1
        elif item.format is None:
            return None
    return Shape(plan) if arrays and not (plan.tagged or plan.foreign_names) else None


Lengths = tuple[int | None, ...]


def run_reader(
    shape: Shape, structs: Mapping[str, type]
) -> Callable[[bytes, int, int, int, list[Any], int], int]:
    """A function that reads a run: ``(buf, first, p, left, values, end)``.

    ``buf[first:p]`` is the element just read, ``left`` elements follow at ``p``. Appends them to
    ``values`` and returns the offset after them, or returns 0 and appends nothing.
    """
    plan = shape.plan
    known: dict[Lengths, Run] = {}
    made = count(1)

    def read_run(
        buf: bytes, first: int, p: int, left: int, values: list[Any], end: int
    ) -> int:
        width = p - first
        stop = p + width * left
        if stop > end:
            return 0
        lengths = _lengths_of(plan, values[-1])
        if lengths is None:
            return 0
        run = known.get(lengths)
        if run is None:
            if next(made) > MAX_SHAPES:
                return 0
            run = known[lengths] = _compile(plan, lengths, structs)
        row, same, zero, read = run
        if row != width:
            return 0
        for offset, value in same:
            if buf[p + offset : stop : row].count(value) != left:
                return 0
        for offset in zero:
            if any(buf[p + offset : stop : row]):
                return 0
        values += read(buf[p:stop])
        return stop

    return read_run


def _lengths_of(plan: StructPlan, sample: Any) -> Lengths | None:
    lengths: list[int | None] = []
    for item in plan.inline:
        if item.kind == "array":
            value = getattr(sample, item.name)
            if value is not None and len(value) > MAX_ELEMENTS:
                return None
            lengths.append(None if value is None else len(value))
    return tuple(lengths)


def _compile(plan: StructPlan, lengths: Lengths, structs: Mapping[str, type]) -> Run:
    """The row reader of one shape."""
    letters, columns, arguments = [">"], [], []
    same: list[tuple[int, int]] = []
    zero: list[int] = []
    remaining = iter(lengths)
    for index, item in enumerate(plan.inline):
        if item.kind != "array":
            letters.append(item.format or "")
            columns.append(f"c{index}")
            arguments.append(f"{item.name}=c{index}")
            continue
        length = next(remaining)
        offset = struct.calcsize("".join(letters))
        for position, byte in enumerate(_length_bytes(item, length)):
            letters.append("x")
            if byte:
                same.append((offset + position, byte))
            else:
                zero.append(offset + position)
        letters.append((item.element_format or "") * (length or 0))
        names = [f"c{index}_{number}" for number in range(length or 0)]
        columns += names
        arguments.append(f"{item.name}={None if length is None else '[' + ', '.join(names) + ']'}")
    if plan.flexible:
        zero.append(struct.calcsize("".join(letters)))
        letters.append("x")
    layout = struct.Struct("".join(letters))
    if not columns:  # rows of nothing but empty arrays: iter_unpack has nothing to hand out
        columns = ["_nothing"]
        source = f"lambda data: [{class_name(plan)}({', '.join(arguments)}) for _ in range(len(data) // {layout.size})]"
    else:
        comma = "," if len(columns) == 1 else ""
        source = (
            f"lambda data: [{class_name(plan)}({', '.join(arguments)}) "
            f"for {', '.join(columns)}{comma} in rows(data)]"
        )
    # Only names and numbers of the plan are in this text; no byte of the input is.
    reader = eval(source, {**structs, "rows": layout.iter_unpack})
    return layout.size, same, zero, reader


def _length_bytes(item: FieldPlan, length: int | None) -> bytes:
    if item.compact:
        return bytes((0 if length is None else length + 1,))
    return struct.pack(">i", -1 if length is None else length)
