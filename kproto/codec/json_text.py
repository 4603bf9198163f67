"""Print the bytes of messages as JSON text with the native engine, without making objects.

The text is that of ``to_json_value``, encoded by msgspec. There is no second printer in Python:
``text_printer`` returns None without the engine, and the printer returns None for bytes that it
cannot print. The caller then decodes the message.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from kproto.codec import registry
from kproto.codec.structs import RootStruct
from kproto.codegen.plan import FieldPlan, StructPlan

__all__ = ["SIZE_SUFFIX", "Printed", "TextPrinter", "is_error_code", "text_printer"]

SIZE_SUFFIX = "SizeInBytes"
"""Kafka's JsonConverter appends this to the name of a records field that it prints as a size."""

Printed: TypeAlias = tuple[str, int, tuple[int, ...], int | None]
"""The text, the offset after the message, the error codes other than 0 (each once), and the value
of the top-level field ``throttleTimeMs``, or None without one."""

TextPrinter: TypeAlias = Callable[[bytes, int], Printed | None]
"""Takes bytes and the offset of a message."""

_PRINT_SIZE, _PRINT_ERROR_CODE, _PRINT_THROTTLE = 1, 2, 4
"""``print_flag`` in ``kproto/native/engine.h``."""


def is_error_code(item: FieldPlan) -> bool:
    """Whether a field has an error code."""
    return item.kind == "int16" and item.name.endswith("error_code")


def text_printer(
    cls: type[RootStruct], version: int, *, sizes: bool = False, longest: int = sys.maxsize
) -> TextPrinter | None:
    """Return the printer of a message at a version. With ``sizes``, records are printed as their
    size in bytes. Bytes longer than ``longest`` are printed as the text ``(N bytes)``. Raises
    UnsupportedVersionError if there is no such version."""
    compiled = registry.compiled_plan(cls, version)
    if compiled is None:
        return None
    plan = registry.plan_of(cls, version)
    described = tuple(_struct(each, sizes, each is plan.root) for each in plan.structs)
    return compiled.printer(described, longest).print


def _struct(
    plan: StructPlan, sizes: bool, is_root: bool
) -> tuple[tuple[int, bytes, bytes, int], ...]:
    """Describe the fields in the schema's order: the place of each among the inline and tagged
    ones, its key, the key of its size, and flags."""
    places = {item: place for place, item in enumerate((*plan.inline, *plan.tagged))}
    return tuple(
        (
            places[item],
            _key(item.json_name),
            _key(item.json_name + SIZE_SUFFIX),
            _flags(item, sizes, is_root),
        )
        for item in plan.order
        if item not in plan.absent
    )


def _flags(item: FieldPlan, sizes: bool, is_root: bool) -> int:
    if sizes and item.is_records and item.kind == "bytes":
        return _PRINT_SIZE
    if is_error_code(item):
        return _PRINT_ERROR_CODE
    if is_root and item.kind == "int32" and item.json_name == "throttleTimeMs":
        return _PRINT_THROTTLE
    return 0


def _key(name: str) -> bytes:
    return msgspec.json.encode(name) + b":"
