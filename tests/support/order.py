"""In which order files are collected and run: what takes longest first, the rest by their names.

Files are shared out to processes whole (``--dist loadfile``), so a long one that is begun last
leaves the other processes with nothing to do. ``longest.txt`` names those that take longest, the
longest first. It does not say which tests there are: a name too few or too many costs time alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

__all__ = ["LONGEST", "backwards", "place"]

_NAMES: Final = Path(__file__).with_name("longest.txt")
LONGEST: Final = tuple(
    line for line in _NAMES.read_text().splitlines() if line and not line.startswith("#")
)
_RANKS: Final = {name: rank for rank, name in enumerate(LONGEST)}


def place(item: pytest.Item) -> tuple[int, str]:
    """Sorts a run's tests by their files; those of one file stay as they stand in it."""
    name = item.nodeid.partition("::")[0]
    return _RANKS.get(name, len(_RANKS)), name


def backwards(worker: str) -> bool:
    """Whether that process (``gw0``, ``gw1``, ...) collects the last folder first.

    Every process imports every file, and pytest rewrites the assertions of one that it has not seen
    before, which takes longer than all the rest. From both ends, each of two processes finds half
    of that done by the other.
    """
    return int(worker.removeprefix("gw") or 0) % 2 == 1
