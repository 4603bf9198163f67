"""The context and the subject of reassignment rules, and the functions that apply a table.

A row's condition looks at one partition (``RuleContext``). Its effects first edit a draft of that
partition (``Transition.now``). Some effects write the draft to znodes, and ``effects.Commit`` makes
it the controller's own value, which requests are answered from. Everything enters the action log in
the order in which it happens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from kproto.error_codes import ErrorCode
from mockbroker.errors import Refusal
from mockbroker.rows import Effect, Row, apply_first
from mockbroker.state.actions import Change, PartitionChanged
from mockbroker.state.controller import Controller
from mockbroker.state.model import Partition, TargetedPartition, Topic, TopicPartition

__all__ = [
    "Brokers",
    "Choice",
    "Condition",
    "Effects",
    "Refuse",
    "RuleContext",
    "Table",
    "Transition",
    "ZnodeWriter",
    "run_first",
]

Brokers: TypeAlias = tuple[int, ...]


@dataclass(slots=True)
class RuleContext:
    """What conditions and choices look at.

    ``start`` is the partition when the row began; ``now`` is the draft that the row's effects have
    made of it so far. ``requested_replicas`` is the replica list of the request that started this,
    empty if none did. ``facts`` holds what a controller looked up beforehand for its own rows, such
    as ``min.insync.replicas``.
    """

    start: Partition
    now: Partition
    is_live: Callable[[int], bool]
    requested_replicas: Brokers = ()
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def target(self) -> Brokers:
        """The target of ``start``; empty where there is no reassignment."""
        return self.start.target or ()

    @property
    def whole_target(self) -> Brokers | None:
        """All replicas that ``now`` is being reassigned to; None if unknown."""
        return self.now.whole_target if isinstance(self.now, TargetedPartition) else None


Condition: TypeAlias = Callable[[RuleContext], bool]
Choice: TypeAlias = Callable[[RuleContext], Brokers]


class ZnodeWriter(Protocol):
    """What effects need of a controller that keeps its metadata in ZooKeeper."""

    def topic_text(self, topic: Topic) -> str: ...

    def store_state(
        self, controller: Controller, cause: str, name: str, partition: Partition
    ) -> bool: ...

    def plan_removed(self, controller: Controller) -> None: ...

    def change_partition(
        self, controller: Controller, cause: str, change: PartitionChanged
    ) -> None: ...


@dataclass(slots=True, kw_only=True)
class Transition(RuleContext):
    """One row being applied to one partition: the subject of effects, which edit ``now``."""

    controller: Controller
    cause: str
    tp: TopicPartition
    znode_writer: ZnodeWriter | None = None

    @property
    def writer(self) -> ZnodeWriter:
        """For effects that write znodes; no table of KRaft's has one."""
        assert self.znode_writer is not None, "this controller keeps no znodes"
        return self.znode_writer

    def record(self, change: Change) -> None:
        self.controller.record(self.cause, change)

    def live(self, brokers: Brokers) -> Brokers:
        return tuple(filter(self.is_live, brokers))


@dataclass(frozen=True, slots=True)
class Refuse:
    """Refuse the request and change nothing. In a text that is a string, ``{tp}`` stands for the
    partition; with None the error carries no text."""

    code: ErrorCode
    text: str | Callable[[Transition], str] | None = None

    def perform(self, transition: Transition) -> None:
        text = self.text
        if isinstance(text, str):
            text = text.format(tp=f"{transition.tp[0]}-{transition.tp[1]}")
        elif text is not None:
            text = text(transition)
        raise Refusal(self.code, text)


Effects: TypeAlias = tuple[Effect[Transition], ...]
Table: TypeAlias = tuple[Row[RuleContext, Transition], ...]


def run_first(
    controller: Controller,
    cause: str,
    tp: TopicPartition,
    rows: Table,
    *,
    requested_replicas: Brokers = (),
    facts: dict[str, Any] | None = None,
    before: Partition | None = None,
    draft: Partition | None = None,
    writer: ZnodeWriter | None = None,
) -> bool:
    """Apply the first row that matches. Returns whether one did.

    ``before`` is the partition to decide on, if that is not its present value; ``draft`` is what
    the caller has already made of it.
    """
    start = before or controller.state.topics[tp[0]].partitions[tp[1]]
    transition = Transition(
        start,
        draft or start,
        controller.state.live_ids.__contains__,
        requested_replicas,
        facts or {},
        controller=controller,
        cause=cause,
        tp=tp,
        znode_writer=writer,
    )
    return apply_first(rows, transition, transition)
