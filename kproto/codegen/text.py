"""Lines of Python being written: indentation, unique names, shared constants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from kproto.codegen.plan import StructPlan

__all__ = ["Text", "class_name"]

TAKEN: Final = frozenset(
    {"Slow", "Struct", "UUID", "buf", "end", "explain", "p", "parts", "q", "rows", "start", "w"}
    | {"compact", "long_array", "make_uuid", "packers", "runs", "string_length", "tagged_section"}
    | {"unknown_tags", "unpackers", "varint", "data", "float", "len", "range", "any", "list"}
)
"""Names that generated code uses for other things than classes."""


def class_name(plan: StructPlan) -> str:
    """What generated code calls the class of ``plan``: the schema's name, kept apart from ours."""
    return f"{plan.name}_" if plan.name in TAKEN else plan.name



@dataclass(slots=True)
class Text:
    """Collects the lines of one function. ``constants`` maps a name the code uses to the
    expression that makes it, evaluated once when the code is loaded."""

    constants: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    depth: int = 0
    names: int = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.line(header)
        self.depth += 1
        yield
        self.depth -= 1

    def name(self, stem: str) -> str:
        """A local name not used before."""
        self.names += 1
        return f"{stem}_{self.names}"

    def constant(self, name: str, expression: str) -> str:
        name = name.replace("?", "t").replace(">", "")
        self.constants[name] = expression
        return name
