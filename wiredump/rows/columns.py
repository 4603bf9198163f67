"""What a table's description is made of."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

__all__ = ["Column", "Table", "TypeName", "columns"]

TypeName: TypeAlias = Literal[
    "bool", "int16", "int32", "int64", "string", "binary", "strings", "int32s"
]
"""``strings`` and ``int32s`` are lists."""


class Column(NamedTuple):
    """``doc`` says what a value means, and when it is null."""

    name: str
    type: TypeName
    doc: str


class Table(NamedTuple):
    """The columns ``order`` name a row; writers sort by them what they write at a time."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    order: tuple[str, ...]


def columns(text: str) -> tuple[Column, ...]:
    """One column a line: name, type, doc."""
    rows = (line.split(None, 2) for line in text.strip().splitlines())
    return tuple(Column(name, type_, doc) for name, type_, doc in rows)  # type: ignore[arg-type]
