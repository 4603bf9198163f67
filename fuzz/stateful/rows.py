"""Count how often each row of the controllers' tables was applied.

Rows are data (``mockbroker.simulation.releases.rows``), so that a counting effect can be put before
the effects of each row and removed again.
"""

from __future__ import annotations

from collections import Counter
from types import TracebackType
from typing import Any, Self

from msgspec.structs import force_setattr

from mockbroker.simulation.releases.rows import Row, with_arguments
from scripts.mutate_rows import Place, all_rules

__all__ = ["RowCounts"]


@with_arguments
def _count(_: object, place: int, counts: Counter[int]) -> None:
    """Count the row, and leave the subject unchanged."""
    counts[place] += 1


class RowCounts:
    """A context manager that counts while entered. ``places`` are all rows, once each."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self._rows: list[Row[Any, Any]] = []
        for place in all_rules():
            if isinstance(place.rule, Row):
                self.places.append(place)
                self._rows.append(place.rule)
        self.fired: Counter[int] = Counter()
        self._before: list[tuple[Any, ...]] = []

    def __enter__(self) -> Self:
        for number, row in enumerate(self._rows):
            self._before.append(row.then)
            force_setattr(row, "then", (_count(number, self.fired), *row.then))
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for row, then in zip(self._rows, self._before, strict=True):
            force_setattr(row, "then", then)
        self._before.clear()

    @property
    def untaken(self) -> list[Place]:
        """Rows that were not applied yet."""
        return [each for number, each in enumerate(self.places) if not self.fired[number]]

    def lines(self) -> list[str]:
        """Return each row with its count, for people."""
        return [f"{self.fired[number]:8} {each}" for number, each in enumerate(self.places)]
