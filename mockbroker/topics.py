"""Creating topics (19), deleting them (20) and adding partitions (37), as a controller does.

Which checks it makes, in which order and in what words is ``administration_eras``'s. Nothing is
deferred: a topic is gone, reassignments and all, when DeleteTopics answers.
"""

from __future__ import annotations

import base64
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kproto.error_codes import ErrorCode, message
from kproto.schema.model import ZERO_UUID
from mockbroker.actions import PartitionsAdded, TopicCreated, TopicDeleted
from mockbroker.administration_eras import CreationEra, TopicCheck
from mockbroker.assignments import check_assignment, continued, new_partition, spread
from mockbroker.config_changes import check_no_nulls, store_new, topic_values
from mockbroker.configs import broker_entry, created_topic_entries
from mockbroker.controller import Controller
from mockbroker.errors import ClusterError, Refusal
from mockbroker.listed_replicas import check_listed
from mockbroker.model import Partition, Topic
from mockbroker.results import (
    CreatePartitionsResult,
    CreateTopicResult,
    DeleteTopicResult,
    NewTopic,
)
from mockbroker.topic_names import check_topic_name, collide

__all__ = ["add", "add_partitions", "create", "delete", "fresh_id"]

_RESERVED: Final = "__cluster_metadata"
"""The log of a KRaft cluster itself; no client ever gets to make it."""

_PATIENCE_MS: Final = 60_000


def fresh_id(new_id: Callable[[], uuid.UUID]) -> uuid.UUID:
    """A topic id whose text form does not start with '-', which command lines would misread."""
    while True:
        candidate = new_id()
        if not base64.urlsafe_b64encode(candidate.bytes).startswith(b"-"):
            return candidate


# ---- create --------------------------------------------------------------------------------------


def create(
    controller: Controller,
    topics: Sequence[NewTopic],
    new_id: Callable[[], uuid.UUID],
    *,
    validate_only: bool,
    wait_ms: int = _PATIENCE_MS,
) -> tuple[CreateTopicResult, ...]:
    """One result for each distinct name, in request order. Topics succeed or fail one by one."""
    era = controller.administration.creation
    times = Counter(topic.name for topic in topics)
    asked = sum(_asked_partitions(controller, topic) for topic in topics)
    results: dict[str, CreateTopicResult] = {}
    for topic in topics:
        try:
            if topic.name == _RESERVED:
                raise Refusal(*era.reserved)
            if times[topic.name] > 1:
                raise Refusal(ErrorCode.INVALID_REQUEST, era.repeated)
            if era.most_partitions is not None and asked > era.most_partitions:
                raise Refusal(
                    ErrorCode.POLICY_VIOLATION,
                    "Excessively large number of partitions per request.",
                )
            created = _create_one(controller, topic, new_id, validate_only=validate_only)
            results[topic.name] = created
            if _gives_up(controller, wait_ms) and not validate_only:
                results[topic.name] = CreateTopicResult(
                    topic.name, ErrorCode.REQUEST_TIMED_OUT, topic_id=created.topic_id
                )
        except Refusal as refusal:
            results[topic.name] = CreateTopicResult(topic.name, refusal.code, refusal.message)
    return tuple(results.values())


def add(
    controller: Controller,
    name: str,
    assignment: Sequence[Sequence[int]],
    new_id: Callable[[], uuid.UUID],
) -> Topic:
    """A topic the cluster starts with. Raises ClusterError where CreateTopics would refuse, except
    that partitions may differ in their number of replicas."""
    try:
        new = _New(controller, NewTopic(name))
        for check in (_check_absent, _check_name, _check_collisions):
            check(new)
        if not assignment:
            raise Refusal(ErrorCode.INVALID_PARTITIONS, "a topic needs at least one partition")
        for broker_ids in assignment:
            check_assignment(controller, broker_ids)
        topic = Topic(name, fresh_id(new_id), _partitions(controller, 0, assignment))
    except Refusal as refusal:
        raise ClusterError(f"topic {name!r}: {refusal.message}") from None
    controller.record("add_topic", TopicCreated(topic))
    return topic


def _gives_up(controller: Controller, wait_ms: int) -> bool:
    """Whether the caller does not wait for what it asked for, where others would have to."""
    return controller.administration.waits and wait_ms <= 0


def _asked_partitions(controller: Controller, topic: NewTopic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    if topic.num_partitions == -1:
        return int(_setting(controller, "num.partitions"))
    return max(topic.num_partitions, 0)


def _setting(controller: Controller, name: str) -> str:
    """The controller's own value of a broker config that always has one."""
    return broker_entry(controller.state, controller.state.controller_id, name).value or ""


def _create_one(
    controller: Controller,
    topic: NewTopic,
    new_id: Callable[[], uuid.UUID],
    *,
    validate_only: bool,
) -> CreateTopicResult:
    new = _New(controller, topic)
    for check in new.era.checks:
        _CHECKS[check](new)
    partitions, configs = new.partitions, new.configs
    topic_id = fresh_id(new_id)
    result = CreateTopicResult(
        topic.name,
        topic_id=topic_id,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
        configs=created_topic_entries(controller.state, configs),
    )
    if not validate_only:
        created = Topic(topic.name, topic_id, partitions)
        controller.record("create_topics", TopicCreated(created))
        store_new(controller, topic.name, configs)
    return result


@dataclass(slots=True)
class _New:
    """A topic in the making; the checks fill in what it will have."""

    controller: Controller
    asked: NewTopic
    configs: dict[str, str] = field(default_factory=dict)
    partitions: tuple[Partition, ...] = ()

    @property
    def era(self) -> CreationEra:
        return self.controller.administration.creation


def _check_absent(new: _New) -> None:
    name = new.asked.name
    if name in new.controller.state.topics:
        raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def _check_name(new: _New) -> None:
    check_topic_name(new.asked.name)


def _check_collisions(new: _New) -> None:
    name = new.asked.name
    if "." not in name and "_" not in name:
        return
    others = [other for other in new.controller.state.topics if collide(name, other)]
    if others:
        raise Refusal(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            new.era.collides.format(name=name, others=", ".join(others)),
        )


def _check_nulls(new: _New) -> None:
    check_no_nulls(new.asked.configs)


def _check_values(new: _New) -> None:
    new.configs = topic_values(new.controller, new.asked.configs)


def _check_counts(new: _New) -> None:
    """That listed replicas come without counts."""
    if not new.asked.assignments:
        return
    for count, name in ((new.asked.replication_factor, "replication factor"),
                        (new.asked.num_partitions, "numPartitions")):  # fmt: skip
        if count != -1:
            raise Refusal(ErrorCode.INVALID_REQUEST, new.era.both_given.format(field=name))


def _check_listed(new: _New) -> None:
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
    new.partitions = _partitions(new.controller, 0, [lists[index] for index in sorted(lists)])


def _check_spread(new: _New) -> None:
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
        factor = int(_setting(new.controller, "default.replication.factor"))
    count = _asked_partitions(new.controller, asked)
    new.partitions = _partitions(new.controller, 0, spread(new.controller, 0, count, factor))


_CHECKS: Final[Mapping[TopicCheck, Callable[[_New], None]]] = {
    "absent": _check_absent,
    "nulls": _check_nulls,
    "counts": _check_counts,
    "spread": _check_spread,
    "name": _check_name,
    "collisions": _check_collisions,
    "listed": _check_listed,
    "values": _check_values,
}


def _partitions(
    controller: Controller, first: int, assignments: Sequence[Sequence[int]]
) -> tuple[Partition, ...]:
    return tuple(
        new_partition(controller, first + offset, broker_ids)
        for offset, broker_ids in enumerate(assignments)
    )


# ---- add partitions ------------------------------------------------------------------------------


def add_partitions(
    controller: Controller,
    topics: Sequence[tuple[str, int, Sequence[Sequence[int]] | None]],
    *,
    validate_only: bool,
    wait_ms: int = _PATIENCE_MS,
) -> tuple[CreatePartitionsResult, ...]:
    """(name, new total count, None or a list of broker ids for each new partition)"""
    era = controller.administration.growth
    times = Counter(name for name, _, _ in topics)
    added_in_all = _asked_additions(controller, topics)
    results: dict[str, CreatePartitionsResult] = {}
    for name, count, assignments in topics:
        try:
            if times[name] > 1:
                raise Refusal(ErrorCode.INVALID_REQUEST, era.repeated)
            if era.most_partitions is not None and added_in_all > era.most_partitions:
                raise Refusal(
                    ErrorCode.POLICY_VIOLATION,
                    "Excessively large number of additional partitions per request.",
                )
            added = _additional_partitions(controller, name, count, assignments)
        except Refusal as refusal:
            results[name] = CreatePartitionsResult(name, refusal.code, refusal.message)
            continue
        results[name] = CreatePartitionsResult(name)
        if not validate_only:
            if _gives_up(controller, wait_ms):
                results[name] = CreatePartitionsResult(name, ErrorCode.REQUEST_TIMED_OUT)
            controller.record("create_partitions", PartitionsAdded(name, added))
    return tuple(results.values())


def _asked_additions(
    controller: Controller, topics: Sequence[tuple[str, int, Sequence[Sequence[int]] | None]]
) -> int:
    known = controller.state.topics
    return sum(
        max(0, count - len(known[name].partitions)) for name, count, _ in topics if name in known
    )


def _additional_partitions(
    controller: Controller, name: str, count: int, assignments: Sequence[Sequence[int]] | None
) -> tuple[Partition, ...]:
    era = controller.administration.growth
    topic = controller.state.topics.get(name)
    if topic is None:
        text = era.unknown_topic
        raise Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None if text is None else text.format(name=name)
        )
    if era.in_flight is not None and any(each.reassigning for each in topic.partitions):
        raise Refusal(ErrorCode.REASSIGNMENT_IN_PROGRESS, era.in_flight.format(name=name))
    present = len(topic.partitions)
    if count <= present:
        text = era.as_many if count == present else era.fewer
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS, text.format(name=name, present=present, wanted=count)
        )
    additional = count - present
    first = topic.partitions[0].replicas
    if assignments is not None:
        lists = {present + place: broker_ids for place, broker_ids in enumerate(assignments)}
        check_listed(controller, era.listed, lists, expected=len(first), added=additional)
    elif era.continued:
        assignments = continued(controller, first[0], present, additional, len(first))
    else:
        assignments = spread(controller, present, additional, len(first))
    return _partitions(controller, present, assignments)


# ---- delete --------------------------------------------------------------------------------------


def delete(
    controller: Controller,
    topics: Sequence[tuple[str | None, uuid.UUID]],
    *,
    wait_ms: int = _PATIENCE_MS,
) -> tuple[DeleteTopicResult, ...]:
    """Each topic by name, with the zero uuid, or by id, with None. Results keep request order."""
    told = controller.administration.deletion_told
    times = Counter(_as_asked(controller, *topic) for topic in topics)
    results: dict[tuple[str | None, uuid.UUID], DeleteTopicResult] = {}
    for name, topic_id in topics:
        key = (name, topic_id)
        if key in results:
            continue
        try:
            results[key] = _delete_one(controller, name, topic_id, times)
            if _gives_up(controller, wait_ms):
                results[key] = replace(results[key], error_code=ErrorCode.REQUEST_TIMED_OUT)
        except Refusal as refusal:
            text = refusal.message if told else None
            results[key] = DeleteTopicResult(name, topic_id, refusal.code, text)
    # Where that is no error, what was asked for twice is told twice.
    return tuple(results[topic] for topic in (results if told else topics))


def _as_asked(controller: Controller, name: str | None, topic_id: uuid.UUID) -> str | uuid.UUID:
    """The topic's name however it was asked for, to find what was asked for twice."""
    return name if name is not None else controller.state.topic_names.get(topic_id, topic_id)


def _delete_one(
    controller: Controller,
    name: str | None,
    topic_id: uuid.UUID,
    times: Counter[str | uuid.UUID],
) -> DeleteTopicResult:
    by_id = topic_id != ZERO_UUID
    if name is not None and by_id:
        raise _invalid("You may not specify both topic name and topic id.")
    if name is None and not by_id:
        raise _invalid("Neither topic name nor id were specified.")
    if _setting(controller, "delete.topic.enable") != "true":
        raise Refusal(ErrorCode.TOPIC_DELETION_DISABLED, message(ErrorCode.TOPIC_DELETION_DISABLED))
    if controller.administration.deletion_told and times[_as_asked(controller, name, topic_id)] > 1:
        raise _invalid("Duplicate topic id." if by_id else "Duplicate topic name.")
    if by_id and topic_id not in controller.state.topic_names:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_ID, message(ErrorCode.UNKNOWN_TOPIC_ID))
    found = controller.state.topics.get(
        controller.state.topic_names[topic_id] if name is None else name
    )
    if found is None:
        raise Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        )
    controller.record("delete_topics", TopicDeleted(found.name, found.topic_id))
    return DeleteTopicResult(found.name, found.topic_id)


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
