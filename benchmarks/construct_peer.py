"""The same messages declared in construct and compiled, as a user of construct would declare them.

``kproto.reference`` uses construct, too, but with classes of its own for offsets and paths, which
construct's compiler does not compile. Here only construct's own classes are used, derived from our
plan, so that ``compile`` can turn most of them into Python. Every tagged field stays a pair of
number and bytes. Values are construct's containers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import construct as c

from kproto.codegen.plan import FieldPlan, StructPlan

__all__ = ["declare", "operations"]

NUMBERS = {
    "bool": c.Flag,
    "int8": c.Int8sb,
    "int16": c.Int16sb,
    "uint16": c.Int16ub,
    "int32": c.Int32sb,
    "uint32": c.Int32ub,
    "int64": c.Int64sb,
    "float64": c.Float64b,
    "uuid": c.Bytes(16),
}
COMPACT = c.ExprAdapter(c.VarInt, c.obj_ - 1, c.obj_ + 1)
"""A length or a count, which is encoded as one more than its value."""
TAGS = c.PrefixedArray(
    c.VarInt, c.Struct("tag" / c.VarInt, "data" / c.Prefixed(c.VarInt, c.GreedyBytes))
)


def operations(plan: StructPlan, body: bytes) -> dict[str, Callable[[], object]]:
    """Return compiled parse and build of ``body``. Raises AssertionError if it does not
    round-trip."""
    compiled = declare(plan).compile()
    message = compiled.parse(body)
    assert compiled.build(message) == body, f"construct does not round-trip {plan.name}"
    return {"decode": lambda: compiled.parse(body), "encode": lambda: compiled.build(message)}


def declare(plan: StructPlan) -> Any:
    """Return the construct of a struct. Raises NotImplementedError for types that no workload
    has."""
    fields = [item.name / _value(item) for item in plan.inline]
    return c.Struct(*fields, *(["tags" / TAGS] if plan.flexible else []))


def _value(item: FieldPlan) -> Any:
    if item.kind == "array":
        if item.element_kind == "struct":
            assert item.struct is not None
            element = declare(item.struct)
        else:
            element = _scalar(item.element_kind or "", item.compact)
        return c.PrefixedArray(COMPACT if item.compact else c.Int32sb, element)
    if item.kind == "struct" and item.struct is not None and not item.nullable:
        return declare(item.struct)
    if item.nullable and item.kind == "string":
        null = c.Const(b"\0" if item.compact else b"\xff\xff")
        none = c.ExprAdapter(null, lambda _raw, _context: None, lambda value, _context: value)
        return c.Select(none, _scalar("string", item.compact))
    return _scalar(item.kind, item.compact)


def _scalar(kind: str, compact: bool) -> Any:
    if kind in NUMBERS:
        return NUMBERS[kind]
    if kind == "string":
        return c.PascalString(COMPACT if compact else c.Int16sb, "utf8")
    raise NotImplementedError(f"no workload has a field like this: {kind}")
