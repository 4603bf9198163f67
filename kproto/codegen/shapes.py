"""Which structs and bodies have a shape, that is, a layout fixed by the lengths of their parts.

Generated code reads and writes values of one shape in a single pass (``codec.shape_tables``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kproto.codegen.plan import StructPlan

__all__ = ["MAX_ELEMENTS", "MAX_SHAPES", "MIN_ROWS", "Shape", "has_body_shape", "shape_of"]

MAX_SHAPES: Final = 32
"""Shapes kept per struct, so that input cannot make us compile without end."""
MAX_ELEMENTS: Final = 16
"""Longer arrays are read one by one: a row would have too many columns."""
MIN_ROWS: Final = 3
"""Fewer elements are read one by one: comparing length bytes would cost what it saves."""


class Shape(NamedTuple):
    """The plan of a struct that has a shape."""

    plan: StructPlan


def shape_of(plan: StructPlan) -> Shape | None:
    """Return the shape of a struct that has one: it holds only numbers and arrays of numbers, at
    least one array, and no known tagged fields."""
    arrays = 0
    for item in plan.inline:
        if item.kind == "array" and item.element_format not in (None, "?"):
            arrays += 1
        elif item.format is None:
            return None
    return Shape(plan) if arrays and not (plan.tagged or plan.foreign_names) else None


def has_body_shape(plan: StructPlan) -> bool:
    """Whether a body has a shape: it holds only numbers and strings, and few of them."""
    kinds = [item.kind for item in plan.inline]
    flat = all(item.format is not None or item.kind == "string" for item in plan.inline)
    return flat and "string" in kinds and len(kinds) <= MAX_ELEMENTS
