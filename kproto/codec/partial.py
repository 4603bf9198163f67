"""Decode a truncated or damaged body as far as possible, as JSON.

``interpreter`` walks the plan; a subclass of its reader keeps the values that were complete when
the walk ended. No value is invented: a field that was not read to its end is left out, and so is a
struct or an array of which nothing was read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kproto.codec.interpreter import Classes, Reader
from kproto.codec.json_form import StructWriter
from kproto.codec.message import Buffer, Message
from kproto.codec.registry import plan_of, structs_of, trailing_bytes
from kproto.codec.structs import MessageStruct
from kproto.codegen.plan import FieldPlan, StructPlan
from kproto.errors import DecodeError

__all__ = ["PartialBody", "decode_partly"]


class PartialBody(NamedTuple):
    """``value`` has the form of ``to_json_value``. ``error`` is the decoder's, or None for a
    complete message."""

    value: dict[str, Any]
    error: DecodeError | None


def decode_partly(
    cls: type[Message], data: Buffer, version: int, offset: int = 0, *, size: int | None = None
) -> PartialBody:
    """Decode the body that begins at ``offset`` and should fill the rest of ``data``.

    ``size`` is the size of the whole body where ``data`` is only its beginning. An array that
    extends beyond ``data`` is then read up to its last complete element, and the error is that of
    the next one. Without ``size`` the error is exactly the decoder's. Raises
    UnsupportedVersionError for a version that the message does not have, and no other error.
    """
    raw = bytes(data)
    plan, classes = plan_of(cls, version).root, structs_of(cls)
    reader = _ProgressReader(raw, classes, size)
    try:
        message, end = reader.struct(plan, offset, "")
    except DecodeError as error:
        return PartialBody(reader.so_far(error), error)
    value = StructWriter(classes).struct(plan, message, "")
    return PartialBody(value, trailing_bytes(raw, end) if end != len(raw) else None)


class _OpenStruct:
    """A struct that is being read: its complete fields, the current field, and the complete
    elements of that field if it is an array."""

    __slots__ = ("current", "elements", "last_path", "plan", "values")

    def __init__(self, plan: StructPlan) -> None:
        self.plan = plan
        self.values: dict[str, Any] = {}
        self.current: FieldPlan | None = None
        self.elements: list[Any] = []
        self.last_path = ""


class _ProgressReader(Reader):
    __slots__ = ("opened",)

    def __init__(self, data: bytes, classes: Classes, size: int | None) -> None:
        super().__init__(data, classes, size)
        self.opened: list[_OpenStruct] = []

    def struct(self, plan: StructPlan, at: int, path: str) -> tuple[MessageStruct, int]:
        self.opened.append(_OpenStruct(plan))
        done = super().struct(plan, at, path)
        self.opened.pop()
        return done

    def field(self, item: FieldPlan, at: int, path: str) -> tuple[Any, int]:
        inside = self.opened[-1]
        inside.current, inside.elements = item, []
        value, at = super().field(item, at, path)
        inside.values[item.name] = value
        inside.current, inside.last_path = None, path
        return value, at

    def value(
        self, kind: str, item: FieldPlan, nullable: bool, at: int, path: str
    ) -> tuple[Any, int]:
        value, end = super().value(kind, item, nullable, at, path)
        if item.kind == "array":
            elements = self.opened[-1].elements
            if len(elements) >= len(
                self.data
            ):  # elements of zero bytes, and more than ``data`` could hold
                self.need(len(self.data), 1, at, path)
            elements.append(value)
        return value, end

    def so_far(self, error: DecodeError) -> dict[str, Any]:
        """Return what was complete when ``error`` ended the walk."""
        innermost = self.opened[-1]
        if innermost.current is None and error.path and error.path == innermost.last_path:
            # This tagged field was read, but its size contradicts its value.
            innermost.values.popitem()
        value: dict[str, Any] = {}
        for each in reversed(self.opened):
            value = self._json(each, value)
        return value

    def _json(self, opened: _OpenStruct, inner: dict[str, Any]) -> dict[str, Any]:
        """``inner`` is the incomplete struct that ``opened`` contains, perhaps an element of an
        array."""
        writer = StructWriter(self.classes)
        out: dict[str, Any] = {}
        for item in opened.plan.order:
            if item is opened.current:
                part = _array(writer, item, opened.elements, inner)
                if part:
                    out[item.json_name] = part
            elif item.name in opened.values and writer.is_written(item, opened.values[item.name]):
                out[item.json_name] = writer.field(item, opened.values[item.name], "")
        return out


def _array(
    writer: StructWriter, item: FieldPlan, elements: list[Any], inner: dict[str, Any]
) -> Any:
    if item.kind != "array":
        return inner
    whole: list[Any] = writer.field(item, elements, "")
    return [*whole, inner] if inner else whole
