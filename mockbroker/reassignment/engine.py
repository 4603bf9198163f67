"""Rows of a machine, and what runs them. Knows no KIP: tables say what happens when.

A row is a condition on one partition and the effects that follow, in order. Effects first work on a
draft of the partition; some put that draft on record in znodes, and ``effects.Commit`` makes it
what the controller remembers, and so what it answers. Everything goes to the action log in the
order it happens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from mockbroker.state.actions import Change
from mockbroker.state.controller import Controller
from mockbroker.state.model import Partition, TargetedPartition, TopicPartition

__all__ = [
    "Brokers",
    "Choice",
    "Condition",
    "Effect",
    "Moment",
    "Release",
    "Row",
    "Work",
    "in_force",
    "run_first",
    "run_until_none",
]

Brokers: TypeAlias = tuple[int, ...]
Release: TypeAlias = tuple[int, int]
"""A line of Kafka releases: (2, 4)."""


@dataclass(slots=True)
class Moment:
    """What conditions and choices look at.

    ``start`` is the partition when the row began, ``now`` the draft its effects have made of it so
    far; ``asked`` the replicas a request wants, where one started this. ``facts`` is what a
    machine looked up beforehand for its own rows (a legacy flag, ``min.insync.replicas``).
    """

    start: Partition
    now: Partition
    is_live: Callable[[int], bool]
    asked: Brokers = ()
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def target(self) -> Brokers:
        """T of ``start``; empty where there is no reassignment."""
        return self.start.target or ()

    @property
    def whole_target(self) -> Brokers | None:
        """What ``now`` heads for, None where nobody knows."""
        return self.now.whole_target if isinstance(self.now, TargetedPartition) else None


Condition: TypeAlias = Callable[[Moment], bool]
Choice: TypeAlias = Callable[[Moment], Brokers]


class Effect(Protocol):
    """One thing that happens: a value, with what it does to the work at hand."""

    def perform(self, work: Work) -> None: ...


@dataclass(frozen=True, slots=True)
class Row:
    """``requirement`` is what asks for it. Releases before ``since``, and from ``until`` on, do not
    have the row."""

    requirement: str
    when: Condition
    then: tuple[Effect, ...]
    since: Release = (0, 0)
    until: Release | None = None


def in_force(rows: Sequence[Row], release: Release) -> tuple[Row, ...]:
    """The rows that this release has."""
    return tuple(
        row for row in rows if row.since <= release and (row.until is None or release < row.until)
    )


@dataclass(slots=True)
class Work:
    """One row at work on one partition: what an effect acts on."""

    controller: Controller
    cause: str
    tp: TopicPartition
    moment: Moment

    @property
    def now(self) -> Partition:
        """The draft of the partition."""
        return self.moment.now

    @now.setter
    def now(self, partition: Partition) -> None:
        self.moment.now = partition

    def record(self, change: Change) -> None:
        self.controller.record(self.cause, change)

    def live(self, brokers: Brokers) -> Brokers:
        return tuple(each for each in brokers if self.moment.is_live(each))


def run_until_none(
    controller: Controller, cause: str, tp: TopicPartition, rows: Sequence[Row]
) -> None:
    """Apply the first row that matches, and again, until none does."""
    while run_first(controller, cause, tp, rows):
        pass


def run_first(
    controller: Controller,
    cause: str,
    tp: TopicPartition,
    rows: Sequence[Row],
    *,
    asked: Brokers = (),
    facts: dict[str, Any] | None = None,
    before: Partition | None = None,
    draft: Partition | None = None,
) -> bool:
    """Apply the first row that matches; whether one did. ``before`` is what to decide on, where
    that is not the partition as it is; ``draft`` what somebody has made of it already."""
    partition = before or controller.state.topics[tp[0]].partitions[tp[1]]
    moment = Moment(partition, draft or partition, controller.is_live, asked, facts or {})
    for row in rows:
        if row.when(moment):
            work = Work(controller, cause, tp, moment)
            for effect in row.then:
                effect.perform(work)
            return True
    return False
