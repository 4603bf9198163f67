"""The release that a cluster behaves as, and how to state what differs between releases.

Only this package compares numbers of releases. Other modules ask by name: ``release.has(FACT)`` for
what a release does or does not do, ``release.value_of(VARYING)`` for what has a value in each.
``facts`` names what has no row, ``fixes`` what users can switch; ``rows`` selects the rules that a
release has.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec
from msgspec.structs import force_setattr

__all__ = [
    "EVER",
    "NEWEST",
    "Bound",
    "CurrentRelease",
    "Fact",
    "Fix",
    "Release",
    "ReleaseNumber",
    "Varying",
    "by_release",
]

T = TypeVar("T")

ReleaseNumber: TypeAlias = tuple[int, ...]
"""(4, 1) or (4, 1, 2); a line stands for its first release. Before 1.0 lines have three numbers:
(0, 10, 2)."""

EVER: Final[ReleaseNumber] = (0, 0)
"""No release is older."""


class Fact(msgspec.Struct, frozen=True):
    """Something that the releases from ``since`` until ``until`` do, and others do not.

    ``requirement`` names ids of ``docs/reference/requirements.json``.
    """

    requirement: str
    since: ReleaseNumber = EVER
    until: ReleaseNumber | None = None

    def holds_for(self, number: ReleaseNumber) -> bool:
        """Whether the release with this number does it."""
        return number >= self.since and (self.until is None or number < self.until)


class Fix(msgspec.Struct, frozen=True):
    """A fix of Kafka that clients notice, which a cluster can have or lack whatever its release.

    ``issue`` is its name, such as KAFKA-19233. ``requirement`` names ids of
    ``docs/reference/requirements.json``. Releases have it from ``since`` on; ``backports`` are the
    first patch releases of earlier lines that have it, too. ``says`` is one sentence about what a
    client notices.
    """

    issue: str
    requirement: str
    since: ReleaseNumber
    says: str
    backports: tuple[ReleaseNumber, ...] = ()

    @property
    def number(self) -> int:
        """The issue's number."""
        return int(self.issue.rpartition("-")[2])

    @property
    def names(self) -> tuple[str, ...]:
        """The first releases that have it, oldest first."""
        return tuple(".".join(map(str, each)) for each in sorted((*self.backports, self.since)))

    def holds_for(self, number: ReleaseNumber) -> bool:
        """Whether the release with this number has it, unless a user switched it."""
        return number >= self.since or any(
            number[:2] == first[:2] and number >= first for first in self.backports
        )


Bound: TypeAlias = ReleaseNumber | Fact | Fix
"""The first release that does something, or the first that does not."""


class Varying(msgspec.Struct, Generic[T], frozen=True):
    """A value that changes with the release: ``(since, value)``, oldest first."""

    requirement: str
    values: tuple[tuple[ReleaseNumber, T], ...]


class Release(msgspec.Struct, frozen=True):
    """What a cluster behaves as. ``fixes`` says of fixes, by issue, whether it has them; of others
    the number decides."""

    number: ReleaseNumber
    fixes: tuple[tuple[str, bool], ...] = ()

    @property
    def now(self) -> Release:
        """The release as a value that does not change."""
        return self

    def follow(self, use: Callable[[Release], None]) -> None:
        """Call a function with the release, and again whenever the release changes."""
        use(self)

    def has(self, fact: Fact | Fix) -> bool:
        if isinstance(fact, Fix):
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

    def is_within(self, since: Bound, until: Bound | None) -> bool:
        """Whether it is not older than ``since`` and older than ``until``. A fact in place of a
        number stands for the releases that have it."""
        begun = self.number >= since if isinstance(since, tuple) else self.has(since)
        if until is None or isinstance(until, tuple):
            return begun and (until is None or self.number < until)
        return begun and not self.has(until)

    def is_newer_than(self, other: Release) -> bool:
        return self.number > other.number

    def is_in_lines(self, first: ReleaseNumber, last: ReleaseNumber) -> bool:
        """Whether it belongs to the lines from ``first`` to ``last``, both included."""
        return first <= self.number and self.number[: len(last)] <= last


class CurrentRelease(Release, frozen=True, eq=False):
    """The release that a running cluster behaves as, which an upgrade changes.

    It has no hash: a cache would remember a value that changes, and with it the cluster.
    """

    _followers: list[Callable[[Release], None]] = msgspec.field(default_factory=list)
    _now: Release = Release(EVER)

    def __post_init__(self) -> None:
        force_setattr(self, "_now", Release(self.number, self.fixes))

    def __hash__(self) -> int:
        raise TypeError("the release of a cluster changes: cache by its value, as `by_release`")

    @property
    def now(self) -> Release:
        return self._now

    def follow(self, use: Callable[[Release], None]) -> None:
        self._followers.append(use)
        use(self.now)

    def become(self, other: Release) -> None:
        """Behave as another release from now on."""
        force_setattr(self, "number", other.number)
        force_setattr(self, "fixes", other.fixes)
        force_setattr(self, "_now", Release(other.number, other.fixes))
        for use in self._followers:
            use(self.now)


def by_release(value: Callable[[Release], T]) -> Callable[[Release], T]:
    """Compute the value of each release once. For the release of a cluster it is that of now."""
    remembered = cache(value)

    @wraps(value)
    def of_now(release: Release) -> T:
        return remembered(release.now)

    return of_now


NEWEST: Final = Release((4, 4))
"""The newest release that the mock knows."""
