"""Read and write runs of structs of the same shape in one pass.

The partitions of a topic nearly always have equally many replicas. In a struct that holds only
numbers and arrays of numbers, the lengths of the arrays (the *shape*) fix the offset of every
field, so a run of one shape is a table of fixed-width rows. The length bytes of all rows are
compared at once by strided slices, and ``iter_unpack`` reads the rest. Where a row differs, the
rows before it are still read at once, the general code reads that row, and the rows after it are
tried again.

The body of a message that holds only numbers and strings has a shape too: the lengths of its
strings. If a body of the same size was decoded before, the whole body is unpacked with that shape
and the lengths are compared afterwards.

One comprehension (or one ``Struct``) is made for each shape, and at most ``MAX_SHAPES`` for each
struct, so that hostile input cannot cause unlimited compilation.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kproto.codegen.names import class_name
from kproto.codegen.plan import FieldPlan, StructPlan
from kproto.codegen.shapes import MAX_ELEMENTS, MAX_SHAPES, Shape

__all__ = ["BodyTable", "PackTable", "RunReader"]

MIN_PART: Final = 6
"""Shorter runs before an element of another shape are read one by one: finding them costs more."""
MAX_ROWS: Final = 128
"""Longer runs are read in pieces, so that the bytes compared stay in proportion to the bytes read
even if hostile input alternates shapes."""


class Run(NamedTuple):
    """How elements of one shape are read: the width of an element, the (offset, value) of each byte
    that determines the shape, and the reader of such rows."""

    width: int
    fixed: list[tuple[int, int]]
    read: Callable[[bytes], list[Any]]


_BYTES: Final = [bytes((value,)) for value in range(256)]


Lengths = tuple[int | None, ...]


class RunReader:
    """Reads runs of one struct. ``last`` is the shape found last, which the next run probably
    has."""

    __slots__ = ("known", "last", "plan", "structs")

    def __init__(self, shape: Shape, structs: Mapping[str, type]) -> None:
        self.plan = shape.plan
        self.structs = structs
        self.known: dict[Lengths, Run] = {}
        self.last: Run | None = None

    def guess(self, buf: bytes, p: int, left: int, values: list[Any]) -> int:
        """Append to ``values`` those of the ``left`` elements at ``p`` that have the last shape, up
        to the first that differs. Returns the offset after them, or ``p`` if none was read."""
        run = self.last
        if run is None:
            return p
        width, fixed, read = run
        if left > MAX_ROWS:
            left = MAX_ROWS
        stop = p + width * left
        for offset, value in fixed:
            column = buf[p + offset : stop : width]
            if column.count(value) != left:
                left = len(column) - len(column.lstrip(_BYTES[value]))
                if left < MIN_PART:
                    return p
                stop = p + width * left
        values += read(buf[p:stop])
        return stop

    def learn(self, buf: bytes, p: int, left: int, values: list[Any]) -> int:
        """As ``guess``, then retry with the shape of the last of ``values``, which ends at
        ``p``."""
        stop = self.guess(buf, p, left, values)
        if stop != p:
            return stop
        lengths = _lengths_of(self.plan, values[-1])
        run = self.known.get(lengths) if lengths is not None else None
        if run is None:
            if lengths is None or len(self.known) >= MAX_SHAPES:
                return p
            run = self.known[lengths] = _compile(self.plan, lengths, self.structs)
        before, self.last = self.last, run
        if run is not before:
            stop = self.guess(buf, p, left, values)
        if stop == p:
            self.last = before
        return stop


class PackTable(dict[Any, Callable[..., bytes] | None]):
    """For encoders: maps the lengths of a struct's arrays to one ``pack`` of the whole struct.

    The packer also writes the length prefixes and the empty tagged section. The value is None where
    the general code must write the struct. The key is the one length or the tuple of lengths; the
    packer takes the values in wire order.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.plan = shape.plan

    def __missing__(self, key: int | tuple[int, ...]) -> Callable[..., bytes] | None:
        lengths = key if isinstance(key, tuple) else (key,)
        if len(self) >= MAX_SHAPES or max(lengths) > MAX_ELEMENTS:
            return None
        remaining = iter(lengths)
        letters = [">"]
        for item in self.plan.inline:
            if item.kind == "array":
                letters.append("B" if item.compact else "i")
                letters.append(f"{next(remaining)}{item.element_format}")
            else:
                letters.append(item.format or "")
        letters.append("B" if self.plan.flexible else "")
        made = self[key] = struct.Struct("".join(letters)).pack
        return made


class BodyTable(dict[int, tuple[Any, ...]]):
    """Maps the size of a body to the function that unpacks all of it and the lengths of its strings
    as written (null is 0). The value is empty if the first body of that size had tagged fields or a
    string whose length takes two bytes. Without this table, the pure engine takes 1.15 times as
    long to decode a heartbeat."""

    def __init__(self, plan: StructPlan) -> None:
        super().__init__()
        self.plan = plan

    def __missing__(self, size: int) -> None:
        return None

    def learn(self, size: int, message: Any) -> None:
        """Record the shape of ``message``, which was decoded from a body of ``size`` bytes."""
        letters, lengths = [">"], []
        for item in self.plan.inline:
            if item.kind != "string":
                letters.append(item.format or "")
                continue
            value = getattr(message, item.name)
            length = -1 if value is None else len(value.encode())
            lengths.append(length + item.compact)
            letters.append(f"{'B' if item.compact else 'h'}{max(length, 0)}s")
        letters.append("B" if self.plan.flexible else "")
        if max(lengths) < 128:
            layout = struct.Struct("".join(letters))
            if layout.size == size:
                self[size] = layout.unpack, *lengths
                return
        self[size] = ()


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
    """Make the reader of rows of one shape."""
    letters, columns, arguments = [">"], [], []
    fixed: list[tuple[int, int]] = []
    high: list[tuple[int, int]] = []  # bytes that hardly ever differ, so they are compared last
    remaining = iter(lengths)
    for index, item in enumerate(plan.inline):
        if item.kind != "array":
            letters.append(item.format or "")
            columns.append(f"c{index}")
            arguments.append(f"{item.name}=c{index}")
            continue
        length = next(remaining)
        offset = struct.calcsize("".join(letters))
        *upper, low = _length_bytes(item, length)
        letters.append("x" * (len(upper) + 1))
        fixed.append((offset + len(upper), low))
        high += [(offset + at, byte) for at, byte in enumerate(upper)]
        letters.append((item.element_format or "") * (length or 0))
        names = [f"c{index}_{number}" for number in range(length or 0)]
        columns += names
        arguments.append(f"{item.name}={None if length is None else '[' + ', '.join(names) + ']'}")
    if plan.flexible:
        high.append((struct.calcsize("".join(letters)), 0))
        letters.append("x")
    layout = struct.Struct("".join(letters))
    call = f"{class_name(plan)}({', '.join(arguments)})"
    if columns:
        comma = "," if len(columns) == 1 else ""
        source = f"lambda data: [{call} for {', '.join(columns)}{comma} in rows(data)]"
    else:  # rows of empty arrays only, for which iter_unpack yields nothing
        source = f"lambda data: [{call} for _ in range(len(data) // {layout.size})]"
    # The text contains only names and numbers of the plan, and no byte of the input.
    reader = eval(source, {**structs, "rows": layout.iter_unpack})
    return Run(layout.size, fixed + high, reader)


def _length_bytes(item: FieldPlan, length: int | None) -> bytes:
    if item.compact:
        return bytes((0 if length is None else length + 1,))
    return struct.pack(">i", -1 if length is None else length)
