"""Names of message classes in generated code."""

from __future__ import annotations

from typing import Final

from kproto.codegen.plan import StructPlan

__all__ = ["class_name"]

TAKEN: Final = frozenset(
    {
        "Exception", "FastPathMiss", "SHORT_LENGTH", "Struct", "UUID", "any", "buf", "compact",
        "data", "end", "explain", "float", "len", "list", "long_array", "make_uuid", "p",
        "packers", "parts", "q", "range", "rows", "runs", "start", "string_length",
        "string_varint", "tables", "tagged_section", "unknown_tags", "unpackers", "varint", "w",
    }
)  # fmt: skip
"""Names that generated code uses for things other than classes."""


def class_name(plan: StructPlan) -> str:
    """Return the name of the class of ``plan`` in generated code: the schema's name, unless it is
    in ``TAKEN``."""
    return f"{plan.name}_" if plan.name in TAKEN else plan.name
