"""Lines of Python being written: indentation, unique names, shared constants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kproto.codegen.shapes import Shape

__all__ = ["CodecText", "Text"]


class CodecText(NamedTuple):
    """A decoder or encoder as source. ``constants`` are the globals it uses besides ``runtime``'s
    and the classes: name -> expression; ``shapes`` the structs that have a table of shapes."""

    source: str
    constants: dict[str, str]
    shapes: dict[str, Shape]


class Text:
    """Collects the lines of one function. ``constants`` maps a name the code uses to the
    expression that makes it, evaluated once when the code is loaded."""

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
        """A local name not used before."""
        self.names += 1
        return f"{stem}_{self.names}"

    def constant(self, name: str, expression: str) -> str:
        name = name.replace("?", "t").replace(">", "")
        self.constants[name] = expression
        return name
