"""Rules as rows: the one form in which a state machine's rules are written.

A ``Row`` states which requirement asks for a rule, the condition under which it applies, its
effects in order, and the releases that have it. A condition is a function of a context, an effect a
function of a subject. The package that owns a table defines both. Releases differ in ``since`` and
``until`` alone: no condition or effect asks which release is running.

``scripts.mutate_rows`` finds every ``Row`` below ``mockbroker`` and checks that a test depends on
it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cache, lru_cache, wraps
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeAlias, TypeVar

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.releases.release import EVER, Bound, Release

__all__ = [
    "Effect",
    "Refusable",
    "Row",
    "always",
    "apply_first",
    "first_row",
    "refuse",
    "refuse_with_text",
    "rows_of_release",
    "rules_of_release",
    "with_arguments",
]

ContextT = TypeVar("ContextT")
SubjectT = TypeVar("SubjectT")
ValueT = TypeVar("ValueT", bound=Hashable)
ArgumentsT = ParamSpec("ArgumentsT")
RulesT = TypeVar("RulesT", bound=msgspec.Struct)

_REMEMBERED: Final = 1024
"""Contexts whose row a function of ``first_row`` remembers."""

Effect: TypeAlias = Callable[[SubjectT], None]
"""One step of a row: a function that acts on a subject."""


def with_arguments(
    act: Callable[Concatenate[SubjectT, ArgumentsT], None],
) -> Callable[ArgumentsT, Effect[SubjectT]]:
    """Turn a function of a subject and arguments into one that takes the arguments and returns an
    effect::

        @with_arguments
        def set_leader(partition: Partition, leader: int) -> None: ...

        Row("K455-01", always, (set_leader(3),))
    """

    @wraps(act)
    def effect_of(*args: ArgumentsT.args, **kwargs: ArgumentsT.kwargs) -> Effect[SubjectT]:
        def effect(subject: SubjectT) -> None:
            act(subject, *args, **kwargs)

        # For ``scripts.mutate_rows``: texts of 500 effects would cost each start several ms.
        vars(effect).update(act=act, args=args, kwargs=kwargs)
        return effect

    return effect_of


class _HasCode(Protocol):
    code: ErrorCode


class _HasText(_HasCode, Protocol):
    text: str | None


class Refusable:
    """A base class for subjects that keep the error code with which a row refuses them."""

    __slots__ = ()

    def refuse(self: _HasCode, code: ErrorCode) -> None:
        self.code = code


class _CanRefuse(Protocol):
    def refuse(self, code: ErrorCode) -> None: ...


@with_arguments
def refuse(subject: _CanRefuse, code: ErrorCode) -> None:
    """Refuse the subject with an error code."""
    subject.refuse(code)


@with_arguments
def refuse_with_text(
    subject: _HasText, text: str, code: ErrorCode = ErrorCode.INVALID_REQUEST
) -> None:
    """Set the subject's error code and text. ``{subject.level}`` in ``text`` stands for the
    subject's ``level``, and so on."""
    subject.code, subject.text = code, text.format(subject=subject)


class Row(msgspec.Struct, Generic[ContextT, SubjectT], frozen=True, eq=False):
    """``requirement`` names ids of ``docs/reference/requirements.json``. Releases before ``since``,
    and from ``until`` on, lack the row; a fact in their place stands for the releases that have it.
    """

    requirement: str
    when: Callable[[ContextT], bool]
    then: tuple[Effect[SubjectT], ...]
    since: Bound = EVER
    until: Bound | None = None

    def belongs_to(self, release: Release) -> bool:
        """Whether this release has the row."""
        return release.is_within(self.since, self.until)

    def apply(self, subject: SubjectT) -> None:
        """Apply the effects in their order."""
        for effect in self.then:
            effect(subject)


def always(_: Any) -> bool:
    """The condition of a row that applies whenever no row above it does."""
    return True


def rows_of_release(
    rows: Sequence[Row[ContextT, SubjectT]], release: Release
) -> tuple[Row[ContextT, SubjectT], ...]:
    """The rows that this release has, in their order."""
    selected: tuple[Row[ContextT, SubjectT], ...] = _rows_of_release(tuple(rows), release.now)
    return selected


@cache  # of some 70 tables, which every cluster asks for
def _rows_of_release(rows: tuple[Row[Any, Any], ...], release: Release) -> tuple[Any, ...]:
    return tuple(row for row in rows if row.belongs_to(release))


def rules_of_release(rules: type[RulesT], release: Release) -> RulesT:
    """The rules of one release. ``rules`` is a struct of tables, whose defaults have the rows of
    all releases; a field may hold several tables."""
    selected: RulesT = _rules_of_release(rules, release.now)
    return selected


@cache
def _rules_of_release(rules: type[Any], release: Release) -> Any:
    def selected(table: Any) -> Any:
        if table and isinstance(table[0], tuple):
            return tuple(map(selected, table))
        return rows_of_release(table, release)

    every = rules()
    return rules(*(selected(getattr(every, name)) for name in rules.__struct_fields__))


def first_row(
    rows: Sequence[Row[ValueT, SubjectT]],
) -> Callable[[ValueT], Row[ValueT, SubjectT] | None]:
    """Return a function from a context to the first row whose condition holds, which it remembers.

    A context has to be a frozen value with everything that conditions look at, and to take few
    different values: equal contexts have the same row. Clusters share what is remembered.
    """
    return _first_row(tuple(rows))


@cache
def _first_row(rows: tuple[Row[Any, Any], ...]) -> Callable[[Any], Row[Any, Any] | None]:
    @lru_cache(maxsize=_REMEMBERED)
    def first_of(context: Any) -> Row[Any, Any] | None:
        return next((row for row in rows if row.when(context)), None)

    return first_of


def apply_first(
    rows: Sequence[Row[ContextT, SubjectT]], context: ContextT, subject: SubjectT
) -> bool:
    """Apply the effects of the first row whose condition holds. Returns whether one did."""
    for row in rows:
        if row.when(context):
            row.apply(subject)
            return True
    return False
