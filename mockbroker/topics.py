"""Creating topics (19), deleting them (20) and adding partitions (37), as a KRaft controller does.

Nothing is deferred: a topic is gone, reassignments and all, when DeleteTopics answers. Error texts
are those of Kafka 3.9.
"""

from __future__ import annotations

import base64
import uuid
from collections import Counter
from collections.abc import Callable, Sequence

from kproto.error_codes import ErrorCode, message
from kproto.schema.model import ZERO_UUID
from mockbroker.actions import PartitionsAdded, TopicCreated, TopicDeleted
from mockbroker.assignments import check_assignment, new_partition, spread
from mockbroker.configs import broker_entry, created_topic_entries, store_new, topic_values
from mockbroker.controller import Controller
from mockbroker.errors import ClusterError, Refusal
from mockbroker.model import Partition, Topic
from mockbroker.results import (
    CreatePartitionsResult,
    CreateTopicResult,
    DeleteTopicResult,
    NewTopic,
)
from mockbroker.topic_names import check_topic_name, collide

__all__ = ["MAX_PARTITIONS_PER_REQUEST", "add", "add_partitions", "create", "delete", "fresh_id"]

MAX_PARTITIONS_PER_REQUEST = 10_000


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
) -> tuple[CreateTopicResult, ...]:
    """One result for each distinct name, in request order. Topics succeed or fail one by one."""
    times = Counter(topic.name for topic in topics)
    too_many = sum(_asked_partitions(controller, t) for t in topics) > MAX_PARTITIONS_PER_REQUEST
    results: dict[str, CreateTopicResult] = {}
    for topic in topics:
        try:
            if times[topic.name] > 1:
                raise Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            if too_many:
                raise Refusal(
                    ErrorCode.POLICY_VIOLATION,
                    "Excessively large number of partitions per request.",
                )
            results[topic.name] = _create_one(
                controller, topic, new_id, validate_only=validate_only
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
        _check_new_name(controller, name)
        if not assignment:
            raise Refusal(ErrorCode.INVALID_PARTITIONS, "a topic needs at least one partition")
        for broker_ids in assignment:
            check_assignment(controller, broker_ids)
        topic = Topic(name, fresh_id(new_id), _partitions(controller, 0, assignment))
    except Refusal as refusal:
        raise ClusterError(f"topic {name!r}: {refusal.message}") from None
    controller.record("add_topic", TopicCreated(topic))
    return topic


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
    _check_new_name(controller, topic.name)
    configs = topic_values(topic.configs)
    partitions = (
        _manual_partitions(controller, topic)
        if topic.assignments
        else _automatic_partitions(controller, topic)
    )
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


def _check_new_name(controller: Controller, name: str) -> None:
    if name in controller.state.topics:
        raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    check_topic_name(name)
    if name == "__cluster_metadata":
        # The log of a KRaft cluster itself; no client ever gets to make it.
        raise Refusal(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED, message(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        )
    if "." in name or "_" in name:
        for other in controller.state.topics:
            if collide(name, other):
                raise Refusal(
                    ErrorCode.INVALID_TOPIC_EXCEPTION,
                    f"Topic '{name}' collides with existing topic: {other}",
                )


def _manual_partitions(controller: Controller, topic: NewTopic) -> tuple[Partition, ...]:
    for count, name in ((topic.replication_factor, "replication factor"),
                        (topic.num_partitions, "numPartitions")):  # fmt: skip
        if count != -1:
            raise Refusal(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {name} was not set to -1.",
            )
    created: dict[int, Partition] = {}
    replication_factor = None
    for index, broker_ids in topic.assignments:
        if index in created:
            raise Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        check_assignment(controller, broker_ids, replication_factor)
        replication_factor = len(broker_ids)
        created[index] = new_partition(controller, index, broker_ids)
    if sorted(created) != list(range(len(created))):
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return tuple(created[index] for index in sorted(created))


def _automatic_partitions(controller: Controller, topic: NewTopic) -> tuple[Partition, ...]:
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    factor = topic.replication_factor
    if factor == -1:
        factor = int(_setting(controller, "default.replication.factor"))
    assignments = spread(controller, 0, _asked_partitions(controller, topic), factor)
    return _partitions(controller, 0, assignments)


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
) -> tuple[CreatePartitionsResult, ...]:
    """(name, new total count, None or a list of broker ids for each new partition)"""
    times = Counter(name for name, _, _ in topics)
    too_many = _asked_additions(controller, topics) > MAX_PARTITIONS_PER_REQUEST
    results: dict[str, CreatePartitionsResult] = {}
    for name, count, assignments in topics:
        try:
            if times[name] > 1:
                raise Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            if too_many:
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
    topic = controller.state.topics.get(name)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    present = len(topic.partitions)
    if count == present:
        raise Refusal(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if count < present:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {name} currently has {present} partition(s); "
            f"{count} would not be an increase.",
        )
    additional = count - present
    factor = len(topic.partitions[0].replicas)
    if assignments is None:
        return _partitions(controller, present, spread(controller, present, additional, factor))
    if len(assignments) != additional:
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only "
            f"{len(assignments)} assignment(s) were specified.",
        )
    for broker_ids in assignments:
        check_assignment(controller, broker_ids, factor)
    return _partitions(controller, present, assignments)


# ---- delete --------------------------------------------------------------------------------------


def delete(
    controller: Controller, topics: Sequence[tuple[str | None, uuid.UUID]]
) -> tuple[DeleteTopicResult, ...]:
    """Each topic by name, with the zero uuid, or by id, with None. Results keep request order."""
    times = Counter(_as_asked(controller, *topic) for topic in topics)
    results: dict[tuple[str | None, uuid.UUID], DeleteTopicResult] = {}
    for name, topic_id in topics:
        key = (name, topic_id)
        if key in results:
            continue
        try:
            results[key] = _delete_one(controller, name, topic_id, times)
        except Refusal as refusal:
            results[key] = DeleteTopicResult(name, topic_id, refusal.code, refusal.message)
    return tuple(results.values())


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
    if times[_as_asked(controller, name, topic_id)] > 1:
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
