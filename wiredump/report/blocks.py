"""What sections of the page consist of: plain values, which ``templates/report.html`` renders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

__all__ = [
    "NOTHING", "Block", "Cell", "Details", "Figure", "Note", "Table", "count", "cut", "duration",
    "moment",
]  # fmt: skip


class Note(NamedTuple):
    """A paragraph. ``kind`` is a class of the style sheet; ``name`` its id."""

    text: str
    kind: str = "soft"
    name: str = ""


class Cell(NamedTuple):
    """``value`` is what a column is sorted by; ``target`` the id that the cell links to."""

    text: str
    value: float | None = None
    target: str = ""


class Table(NamedTuple):
    """``heads`` that end in # are of numbers, in ~ of texts that need space, in % of ids that may
    be broken anywhere. ``total`` is a row that is not sorted."""

    name: str
    heads: Sequence[str]
    rows: Iterable[Sequence[Any]]
    total: Sequence[Any] = ()


class Figure(NamedTuple):
    """A plot for wide windows and one for narrow ones; ``label`` is their text alternative."""

    name: str
    plots: tuple[str, str]
    label: str


class Details(NamedTuple):
    """A part that is folded until a link leads to its id, ``name``."""

    name: str
    summary: str
    blocks: Sequence[Block]


Block = Note | Table | Figure | Details

NOTHING = Note("None.")


def count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def cut(shown: int, total: int, order: str = "first", unit: str = "rows") -> list[Block]:
    """Say how many rows a table leaves out, if it does."""
    if shown >= total:
        return []
    hidden = f"{count(total - shown)} {unit} are not shown."
    return [Note(f"The {order} {count(shown)} of {count(total)}; {hidden}")]


def moment(ns: int | None) -> Cell:
    """Format a time in UTC, to the millisecond."""
    if ns is None:
        return Cell("")
    try:
        when = datetime.fromtimestamp(ns // 10**9, UTC)
    except (ValueError, OverflowError, OSError):
        return Cell(f"{ns} ns", ns)
    return Cell(f"{when:%Y-%m-%d %H:%M:%S}.{ns % 10**9 // 10**6:03}", ns)


def duration(ns: float | None) -> Cell:
    """Format a duration: 0.12 ms, 4.1 ms, 1.25 s."""
    if ns is None:
        return Cell("")
    if ns < 1e6:
        return Cell(f"{ns / 1e6:.3f} ms", ns)
    return Cell(f"{ns / 1e6:.1f} ms" if ns < 1e9 else f"{ns / 1e9:.2f} s", ns)
