"""Count how often each row of the controllers' tables was applied.

Rows are data (``mockbroker.simulation.releases.rows``), so that a counting effect can be put before
the effects of each row and removed again.
"""

from __future__ import annotations

from collections import Counter
from types import TracebackType
from typing import Any, Self

from msgspec.structs import force_setattr

from mockbroker.simulation.releases.rows import with_arguments
from scripts.mutate_rows import Place, all_rows

__all__ = ["RowCounts"]


@with_arguments
def _count(_: object, place: int, counts: Counter[int]) -> None:
    """Count the row, and leave the subject unchanged."""
    counts[place] += 1


class RowCounts:
    """A context manager that counts while entered. ``places`` are all rows, once each."""

    def __init__(self) -> None:
        self.places: list[Place] = all_rows()
        self.fired: Counter[int] = Counter()
        self._before: list[tuple[Any, ...]] = []

    def __enter__(self) -> Self:
        for number, place in enumerate(self.places):
            self._before.append(place.row.then)
            then = (_count(number, self.fired), *place.row.then)
            force_setattr(place.row, "then", then)
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for place, then in zip(self.places, self._before, strict=True):
            force_setattr(place.row, "then", then)
        self._before.clear()

    @property
    def untaken(self) -> list[Place]:
        """Rows that were not applied yet."""
        return [each for number, each in enumerate(self.places) if not self.fired[number]]

    def lines(self) -> list[str]:
        """Return each row with its count, for people."""
        return [f"{self.fired[number]:8} {each}" for number, each in enumerate(self.places)]
