"""Rules as rows: the one form in which a state machine's rules are written.

A ``Row`` states which requirement asks for a rule, the condition under which it applies, its
effects in order, and the releases that have it. A condition looks at a context; an effect acts on a
subject. The package that owns a table defines both. Releases differ in ``since`` and ``until``
alone: no condition or effect asks which release is running.

``scripts.mutate_rows`` finds every ``Row`` below ``mockbroker`` and checks that a test depends on
it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from kproto.error_codes import ErrorCode

__all__ = [
    "Do",
    "Effect",
    "Refuse",
    "Release",
    "Row",
    "always",
    "apply_first",
    "rows_of_release",
]

ContextT = TypeVar("ContextT")
SubjectT = TypeVar("SubjectT")
SubjectT_contra = TypeVar("SubjectT_contra", contravariant=True)

Release: TypeAlias = tuple[int, int]
"""A line of Kafka releases: (2, 4)."""


class Effect(Protocol[SubjectT_contra]):
    """One step of a row: a value that knows how to act on a subject."""

    def perform(self, subject: SubjectT_contra, /) -> None: ...


class Do(msgspec.Struct, Generic[SubjectT_contra], frozen=True):
    """An effect that is a function of the subject."""

    act: Callable[[SubjectT_contra], None]

    def perform(self, subject: SubjectT_contra, /) -> None:
        self.act(subject)


class _Refusable(Protocol):
    def refuse(self, code: ErrorCode) -> None: ...


class Refuse(msgspec.Struct, frozen=True):
    """An effect that refuses the subject with an error code."""

    code: ErrorCode

    def perform(self, subject: _Refusable, /) -> None:
        subject.refuse(self.code)


class Row(msgspec.Struct, Generic[ContextT, SubjectT], frozen=True):
    """``requirement`` names ids of ``docs/reference/requirements.json``. Releases before ``since``,
    and from ``until`` on, lack the row."""

    requirement: str
    when: Callable[[ContextT], bool]
    then: tuple[Effect[SubjectT], ...]
    since: Release = (0, 0)
    until: Release | None = None

    def belongs_to(self, release: Release) -> bool:
        """Whether this release has the row."""
        return self.since <= release and (self.until is None or release < self.until)


def always(_: Any) -> bool:
    """The condition of a row that applies whenever no row above it does."""
    return True


def rows_of_release(
    rows: Sequence[Row[ContextT, SubjectT]], release: Release
) -> tuple[Row[ContextT, SubjectT], ...]:
    """The rows that this release has, in their order."""
    return tuple(row for row in rows if row.belongs_to(release))


def apply_first(
    rows: Sequence[Row[ContextT, SubjectT]], context: ContextT, subject: SubjectT
) -> bool:
    """Perform the effects of the first row whose condition holds. Returns whether one did."""
    for row in rows:
        if row.when(context):
            for effect in row.then:
                effect.perform(subject)
            return True
    return False
