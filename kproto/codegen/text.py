"""Collect lines of generated Python: indentation, unique names and shared constants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kproto.codegen.shapes import Shape

__all__ = ["CodecText", "Text"]


class CodecText(NamedTuple):
    """The source of a decoder or encoder. ``constants`` maps the globals it needs besides
    ``runtime``'s and the classes to their expressions; ``shapes`` maps names to the structs that
    need a table of shapes."""

    source: str
    constants: dict[str, str]
    shapes: dict[str, Shape]


class Text:
    """Collects the lines of one function. ``constants`` maps a name in the code to the expression
    that makes it, which is evaluated once when the code is loaded."""

    def __init__(self, constants: dict[str, str]) -> None:
        self.constants = constants
        self.lines: list[str] = []
        self.depth = 0
        self.names = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.line(header)
        self.depth += 1
        yield
        self.depth -= 1

    def name(self, stem: str) -> str:
        """Return a new local name."""
        self.names += 1
        return f"{stem}_{self.names}"

    def constant(self, name: str, expression: str) -> str:
        name = name.replace("?", "t").replace(">", "")
        self.constants[name] = expression
        return name
