"""What generated code calls the classes it makes."""

from __future__ import annotations

from typing import Final

from kproto.codegen.plan import StructPlan

__all__ = ["class_name"]

TAKEN: Final = frozenset(
    {"Slow", "Struct", "UUID", "buf", "end", "explain", "p", "parts", "q", "rows", "start", "w"}
    | {
        "tables",
        "compact",
        "long_array",
        "make_uuid",
        "packers",
        "runs",
        "string_length",
        "tagged_section",
    }
    | {
        "unknown_tags",
        "unpackers",
        "varint",
        "string_varint",
        "SHORT_LENGTH",
        "data",
        "float",
        "len",
        "range",
        "any",
        "list",
    }
)
"""Names that generated code uses for other things than classes."""


def class_name(plan: StructPlan) -> str:
    """What generated code calls the class of ``plan``: the schema's name, kept apart from ours."""
    return f"{plan.name}_" if plan.name in TAKEN else plan.name
