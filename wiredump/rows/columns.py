"""The types that describe a table."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

__all__ = ["Column", "Table", "TypeName", "columns"]

_NS: Final = "_ns"
_DURATIONS: Final = frozenset({"handshake_ns", "latency_ns", "duration_ns", "copy_delay_ns"})

TypeName: TypeAlias = Literal[
    "bool", "int16", "int32", "int64", "string", "binary", "strings", "int32s"
]
"""``strings`` and ``int32s`` are lists."""


class Column(NamedTuple):
    """A column; ``doc`` states what a value means, and when it is null."""

    name: str
    type: TypeName
    doc: str

    @property
    def is_time(self) -> bool:
        """Whether values are nanoseconds since the Unix epoch, not durations."""
        name = self.name
        return name.endswith(_NS) and name not in _DURATIONS and "_rtt_" not in name


class Table(NamedTuple):
    """A table. The columns ``order`` are the key of a row; writers sort each row group by them."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    order: tuple[str, ...]

    @property
    def timestamps(self) -> dict[str, str]:
        """The columns with times, by the names of the timestamps that writers put beside them."""
        times = (each.name for each in self.columns if each.is_time)
        return {f"{name.removesuffix(_NS)}_at": name for name in times}


def columns(text: str) -> tuple[Column, ...]:
    """Parse columns from text: one per line, with name, type and documentation."""
    rows = (line.split(None, 2) for line in text.strip().splitlines())
    return tuple(Column(name, type_, doc) for name, type_, doc in rows)  # type: ignore[arg-type]
