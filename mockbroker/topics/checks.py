"""What is looked at when a topic is to be created (19), one function a check.

Which of them a controller makes, and in which order, is ``eras``'s; ``administration`` runs
them. Each refuses, or fills in what the topic will have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kproto.error_codes import ErrorCode
from mockbroker.configs.changes import check_no_nulls, topic_values
from mockbroker.configs.effective import broker_entry
from mockbroker.errors import Refusal
from mockbroker.state.controller import Controller
from mockbroker.state.model import Partition
from mockbroker.state.results import NewTopic
from mockbroker.state.topic_names import check_topic_name, collide
from mockbroker.topics.assignments import new_partition, spread
from mockbroker.topics.eras import CreationEra, TopicCheck
from mockbroker.topics.listed_replicas import check_listed

__all__ = [
    "CHECKS",
    "TopicDraft",
    "asked_partitions",
    "check_absent",
    "check_collisions",
    "check_name",
    "partitions_of",
    "setting",
]


def asked_partitions(controller: Controller, topic: NewTopic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    if topic.num_partitions == -1:
        return int(setting(controller, "num.partitions"))
    return max(topic.num_partitions, 0)


def setting(controller: Controller, name: str) -> str:
    """The controller's own value of a broker config that always has one."""
    return broker_entry(controller.state, controller.state.controller_id, name).value or ""


@dataclass(slots=True)
class TopicDraft:
    """A topic in the making; the checks fill in what it will have."""

    controller: Controller
    asked: NewTopic
    configs: dict[str, str] = field(default_factory=dict)
    partitions: tuple[Partition, ...] = ()

    @property
    def era(self) -> CreationEra:
        return self.controller.administration.creation


def check_absent(new: TopicDraft) -> None:
    name, controller = new.asked.name, new.controller
    if name in controller.state.topics:
        raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    marked = new.era.marked
    if marked is not None and name in controller.state.deleting:
        raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, marked.format(name=name))


def check_name(new: TopicDraft) -> None:
    check_topic_name(new.asked.name)


def check_collisions(new: TopicDraft) -> None:
    name = new.asked.name
    if "." not in name and "_" not in name:
        return
    others = [other for other in new.controller.state.topics if collide(name, other)]
    if others:
        raise Refusal(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            new.era.collides.format(name=name, others=", ".join(others)),
        )


def _check_nulls(new: TopicDraft) -> None:
    check_no_nulls(new.asked.configs)


def _check_values(new: TopicDraft) -> None:
    new.configs = topic_values(new.controller, new.asked.configs)


def _check_counts(new: TopicDraft) -> None:
    """That listed replicas come without counts."""
    if not new.asked.assignments:
        return
    for count, name in ((new.asked.replication_factor, "replication factor"),
                        (new.asked.num_partitions, "numPartitions")):  # fmt: skip
        if count != -1:
            raise Refusal(ErrorCode.INVALID_REQUEST, new.era.both_given.format(field=name))


def _check_listed(new: TopicDraft) -> None:
    if not new.asked.assignments:
        return
    lists: dict[int, tuple[int, ...]] = {}
    for index, broker_ids in new.asked.assignments:
        if index in lists and new.era.numbered_twice is not None:
            raise Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, new.era.numbered_twice.format(index=index)
            )
        lists[index] = broker_ids
    check_listed(new.controller, new.era.listed, lists)
    if sorted(lists) != list(range(len(lists))):
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    new.partitions = partitions_of(new.controller, 0, [lists[index] for index in sorted(lists)])


def _check_spread(new: TopicDraft) -> None:
    """That counts, where replicas are not listed, can be met; and how."""
    asked = new.asked
    if asked.assignments:
        return
    if asked.replication_factor < -1 or asked.replication_factor == 0:
        raise Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, new.era.bad_factor)
    if asked.num_partitions < -1 or asked.num_partitions == 0:
        raise Refusal(ErrorCode.INVALID_PARTITIONS, new.era.bad_count)
    factor = asked.replication_factor
    if factor == -1:
        factor = int(setting(new.controller, "default.replication.factor"))
    count = asked_partitions(new.controller, asked)
    new.partitions = partitions_of(new.controller, 0, spread(new.controller, 0, count, factor))


CHECKS: Final[Mapping[TopicCheck, Callable[[TopicDraft], None]]] = {
    "absent": check_absent,
    "nulls": _check_nulls,
    "counts": _check_counts,
    "spread": _check_spread,
    "name": check_name,
    "collisions": check_collisions,
    "listed": _check_listed,
    "values": _check_values,
}


def partitions_of(
    controller: Controller, first: int, assignments: Sequence[Sequence[int]]
) -> tuple[Partition, ...]:
    return tuple(
        new_partition(controller, first + offset, broker_ids)
        for offset, broker_ids in enumerate(assignments)
    )
