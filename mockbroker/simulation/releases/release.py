"""The release that a cluster behaves as, and how to state what differs between releases.

Only this package compares numbers of releases. Other modules ask by name: ``release.has(FACT)`` for
what a release does or does not do, ``release.value_of(VARYING)`` for what has a value in each.
``facts`` names what has no row; ``rows`` selects the rules that a release has.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec

__all__ = ["EVER", "NEWEST", "Fact", "Release", "ReleaseNumber", "Varying"]

T = TypeVar("T")

ReleaseNumber: TypeAlias = tuple[int, ...]
"""(4, 1) or (4, 1, 2); a line stands for its first release. Before 1.0 lines have three numbers:
(0, 10, 2)."""

EVER: Final[ReleaseNumber] = (0, 0)
"""No release is older."""


class Fact(msgspec.Struct, frozen=True):
    """Something that the releases from ``since`` until ``until`` do, and others do not.

    ``requirement`` names ids of ``docs/reference/requirements.json``. ``backports`` are the first
    patch releases of earlier lines that do it, too. ``issue`` names a fix of Kafka, such as
    KAFKA-19233, which a cluster can have or lack whatever its release.
    """

    requirement: str
    since: ReleaseNumber = EVER
    until: ReleaseNumber | None = None
    backports: tuple[ReleaseNumber, ...] = ()
    issue: str = ""

    def holds_for(self, number: ReleaseNumber) -> bool:
        """Whether the release with this number does it, unless a user switched it."""
        if self.until is not None and number >= self.until:
            return False
        return number >= self.since or any(
            number[:2] == first[:2] and number >= first for first in self.backports
        )


class Varying(msgspec.Struct, Generic[T], frozen=True):
    """A value that changes with the release: ``(since, value)``, oldest first."""

    requirement: str
    values: tuple[tuple[ReleaseNumber, T], ...]


class Release(msgspec.Struct, frozen=True):
    """What a cluster behaves as. ``fixes`` says of fixes, by issue, whether it has them; of others
    the number decides."""

    number: ReleaseNumber
    fixes: tuple[tuple[str, bool], ...] = ()

    def has(self, fact: Fact) -> bool:
        for issue, has_it in self.fixes:
            if issue == fact.issue:
                return has_it
        return fact.holds_for(self.number)

    def value_of(self, varying: Varying[T]) -> T:
        """The newest value that this release has reached. Raises KeyError before the first."""
        found: Any = None
        for since, value in varying.values:
            if self.number < since:
                break
            found = (value,)
        if found is None:
            raise KeyError(self.number)
        return found[0]  # type: ignore[no-any-return]

    def is_within(self, since: ReleaseNumber | Fact, until: ReleaseNumber | Fact | None) -> bool:
        """Whether it is not older than ``since`` and older than ``until``. A fact in place of a
        number stands for the releases that have it."""
        begun = self.has(since) if isinstance(since, Fact) else self.number >= since
        if isinstance(until, Fact):
            return begun and not self.has(until)
        return begun and (until is None or self.number < until)

    def is_in_lines(self, first: ReleaseNumber, last: ReleaseNumber) -> bool:
        """Whether it belongs to the lines from ``first`` to ``last``, both included."""
        return first <= self.number and self.number[: len(last)] <= last


NEWEST: Final = Release((4, 4))
"""The newest release that the mock knows."""
