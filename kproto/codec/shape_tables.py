"""Runs of structs that have the same shape are read in one pass.

Partitions of a topic nearly always have as many replicas as each other. Where a struct holds only
numbers and arrays of numbers, the lengths of its arrays (its *shape*) fix the offset of every
field, so a run of one shape is a table of fixed-width rows: the length bytes of all rows are
compared at once, by strided slices, and ``iter_unpack`` reads the rest. Where a row differs, the
rows before it are still read at once; it is left to the element-by-element code, which is always
right, and the rows after it are tried again.

The body of a message that holds only numbers and strings has a shape too, the lengths of its
strings: all of it is unpacked at once where a body of that size was met before, and the lengths are
compared after.

One comprehension (or one ``Struct``) is made for each shape met, at most ``MAX_SHAPES`` a struct,
so that bytes from outside cannot make us compile without end.
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
"""So are fewer elements that precede one of another shape: that costs more to find."""
MAX_ROWS: Final = 128
"""More are read in pieces, so that what is compared stays in proportion to what is read, however
bytes from outside mix shapes."""


class Run(NamedTuple):
    """How elements of one shape are read: the width of one, the (offset, value) of each byte that
    makes the shape, and the reader of rows that have it."""

    width: int
    fixed: list[tuple[int, int]]
    read: Callable[[bytes], list[Any]]


_BYTES: Final = [bytes((value,)) for value in range(256)]


Lengths = tuple[int | None, ...]


class RunReader:
    """Reads runs of one struct; ``last`` is the shape met last, which the next run likely has."""

    __slots__ = ("known", "last", "plan", "structs")

    def __init__(self, shape: Shape, structs: Mapping[str, type]) -> None:
        self.plan = shape.plan
        self.structs = structs
        self.known: dict[Lengths, Run] = {}
        self.last: Run | None = None

    def guess(self, buf: bytes, p: int, left: int, values: list[Any]) -> int:
        """Append to ``values`` what of the ``left`` elements at ``p`` has the shape met last, up to
        one that differs. Returns the offset after them: ``p`` where it read nothing."""
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
        """As ``guess``, and then with the shape of the last of ``values``, which ends at ``p``."""
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
    """For encoders: the lengths of a struct's arrays -> one ``pack`` of the whole struct, its
    length prefixes and empty tagged section included; None where it is left to the general code.

    The key is the one length, or the tuple of them; the packer takes the values in wire order.
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
    """The size of a body -> what unpacks all of it, and the lengths its strings had as they are
    written (null is 0). That is empty where the first of that size had tagged fields, or strings
    whose length takes a second byte."""

    def __init__(self, plan: StructPlan) -> None:
        super().__init__()
        self.plan = plan

    def __missing__(self, size: int) -> None:
        return None

    def learn(self, size: int, message: Any) -> None:
        """``message`` is what a body of that size held."""
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
    """The row reader of one shape."""
    letters, columns, arguments = [">"], [], []
    fixed: list[tuple[int, int]] = []
    high: list[tuple[int, int]] = []  # bytes that hardly ever differ, so they are looked at last
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
    else:  # rows of nothing but empty arrays, of which iter_unpack hands out nothing
        source = f"lambda data: [{call} for _ in range(len(data) // {layout.size})]"
    # Only names and numbers of the plan are in this text; no byte of the input is.
    reader = eval(source, {**structs, "rows": layout.iter_unpack})
    return Run(layout.size, fixed + high, reader)


def _length_bytes(item: FieldPlan, length: int | None) -> bytes:
    if item.compact:
        return bytes((0 if length is None else length + 1,))
    return struct.pack(">i", -1 if length is None else length)
