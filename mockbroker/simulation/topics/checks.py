"""The checks of CreateTopics (19), one function each.

``answers`` says which of them a release makes and in which order; ``administration`` runs them.
Each check either raises Refusal or fills in a part of the new topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.errors import Refusal
from mockbroker.simulation.configs.changes import ConfigChanges
from mockbroker.simulation.configs.effective import EffectiveConfigs
from mockbroker.simulation.state.cluster_parts import Partition
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.results import NewTopic
from mockbroker.simulation.state.topic_names import check_topic_name, collide
from mockbroker.simulation.topics.answers import AdministrationAnswers, CreationAnswers, TopicCheck
from mockbroker.simulation.topics.assignments import check_listed, new_partition, spread

__all__ = [
    "CHECKS",
    "TopicDraft",
    "check_absent",
    "check_collisions",
    "check_name",
    "partitions_of",
    "requested_partitions",
]


def requested_partitions(configs: EffectiveConfigs, topic: NewTopic) -> int:
    """Return the number of partitions that a request asks for."""
    if topic.assignments:
        return len(topic.assignments)
    if topic.num_partitions == -1:
        return int(configs.controller_value("num.partitions"))
    return max(topic.num_partitions, 0)


class TopicDraft(msgspec.Struct):
    """A topic to be created. Checks fill in ``configs`` and ``partitions``."""

    controller: Controller
    administration: AdministrationAnswers
    effective_configs: EffectiveConfigs
    config_changes: ConfigChanges
    requested: NewTopic
    configs: dict[str, str] = msgspec.field(default_factory=dict)
    partitions: tuple[Partition, ...] = ()

    @property
    def answers(self) -> CreationAnswers:
        """How this release answers CreateTopics."""
        return self.administration.creation


def check_absent(new: TopicDraft) -> None:
    name, controller = new.requested.name, new.controller
    if name in controller.state.topics:
        raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, new.answers.exists.format(name=name))
    marked = new.answers.marked
    if marked is not None and name in controller.state.deleting:
        raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, marked.format(name=name))


def check_name(new: TopicDraft) -> None:
    check_topic_name(new.requested.name, new.effective_configs.release)


def check_collisions(new: TopicDraft) -> None:
    name = new.requested.name
    if "." not in name and "_" not in name:
        return
    others = [other for other in new.controller.state.topics if collide(name, other)]
    if others:
        raise Refusal(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            new.answers.collides.format(name=name, others=", ".join(others)),
        )


def _check_nulls(new: TopicDraft) -> None:
    nulls = [name for name, value in new.requested.configs if value is None]
    if nulls and new.answers.nulls is not None:
        code, text = new.answers.nulls
        raise Refusal(code, None if text is None else text.format(names=",".join(nulls)))


def _check_values(new: TopicDraft) -> None:
    given = [each for each in new.requested.configs if each[1] is not None]
    new.configs = new.config_changes.topic_values(given, values_fail=new.answers.values_fail)


def _check_counts(new: TopicDraft) -> None:
    """Counts and replica lists exclude each other."""
    if not new.requested.assignments:
        return
    for count, name in ((new.requested.replication_factor, "replication factor"),
                        (new.requested.num_partitions, "numPartitions")):  # fmt: skip
        if count != -1:
            raise Refusal(ErrorCode.INVALID_REQUEST, new.answers.both_given.format(field=name))


def _check_listed(new: TopicDraft) -> None:
    if not new.requested.assignments:
        return
    lists: dict[int, tuple[int, ...]] = {}
    for index, broker_ids in new.requested.assignments:
        if index in lists and new.answers.numbered_twice is not None:
            raise Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, new.answers.numbered_twice.format(index=index)
            )
        lists[index] = broker_ids
    check_listed(new.controller, new.answers.listed, lists)
    if sorted(lists) != list(range(len(lists))):
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    new.partitions = partitions_of(new.controller, 0, [lists[index] for index in sorted(lists)])


def _check_spread(new: TopicDraft) -> None:
    """Check the counts and choose the replicas, unless the request lists replicas."""
    requested = new.requested
    if requested.assignments:
        return
    answers = new.answers
    counts = [
        (requested.replication_factor, ErrorCode.INVALID_REPLICATION_FACTOR, answers.bad_factor),
        (requested.num_partitions, ErrorCode.INVALID_PARTITIONS, answers.bad_count),
    ]
    for count, code, text in counts[:: -1 if answers.partitions_first else 1]:
        if count < 1 and not (count == -1 and answers.has_defaults):
            raise Refusal(code, text)
    factor = requested.replication_factor
    if factor == -1:
        factor = int(new.effective_configs.controller_value("default.replication.factor"))
    count = requested_partitions(new.effective_configs, requested)
    lists = spread(new.controller, new.administration, 0, count, factor)
    new.partitions = partitions_of(new.controller, 0, lists)


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
    """Return new partitions with these replicas, numbered from ``first`` on."""
    return tuple(
        new_partition(controller, first + offset, broker_ids)
        for offset, broker_ids in enumerate(assignments)
    )
