"""Creating topics (19), deleting them (20) and adding partitions (37), as a controller does.

Which checks it makes, in which order and in what words is ``eras``'s. Nothing is
deferred: a topic is gone, reassignments and all, when DeleteTopics answers.
"""

from __future__ import annotations

import base64
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from kproto.error_codes import ErrorCode, message
from kproto.schema.model import ZERO_UUID
from mockbroker.configs.changes import store_new
from mockbroker.configs.effective import created_topic_entries
from mockbroker.errors import ClusterError, Refusal
from mockbroker.state.actions import PartitionsAdded, TopicCreated, TopicDeleted
from mockbroker.state.controller import Controller
from mockbroker.state.model import NO_LEADER, Partition, Topic
from mockbroker.state.results import (
    CreatePartitionsResult,
    CreateTopicResult,
    DeleteTopicResult,
    NewTopic,
)
from mockbroker.topics.assignments import check_assignment, continued, spread
from mockbroker.topics.checks import (
    CHECKS,
    TopicDraft,
    asked_partitions,
    check_absent,
    check_collisions,
    check_name,
    partitions_of,
    setting,
)
from mockbroker.topics.listed_replicas import check_listed
from mockbroker.topics.timeline_order import first_iterated

__all__ = ["add", "add_partitions", "create", "delete", "fresh_cluster_id", "fresh_id"]

_RESERVED: Final = "__cluster_metadata"
"""The log of a KRaft cluster itself; no client ever gets to make it."""

_PATIENCE_MS: Final = 60_000


def fresh_id(new_id: Callable[[], uuid.UUID]) -> uuid.UUID:
    """A topic id whose text form does not start with '-', which command lines would misread."""
    while True:
        candidate = new_id()
        if not base64.urlsafe_b64encode(candidate.bytes).startswith(b"-"):
            return candidate


def fresh_cluster_id() -> str:
    """A random one, as KRaft makes them."""
    return base64.urlsafe_b64encode(fresh_id(uuid.uuid4).bytes).rstrip(b"=").decode()


# ---- create --------------------------------------------------------------------------------------


def create(
    controller: Controller,
    topics: Sequence[NewTopic],
    new_id: Callable[[], uuid.UUID],
    *,
    validate_only: bool,
    wait_ms: int = _PATIENCE_MS,
) -> tuple[CreateTopicResult, ...]:
    """One result for each distinct name (or for each one asked for), in request order. Topics
    succeed or fail one by one."""
    era = controller.administration.creation
    times = Counter(topic.name for topic in topics)
    asked = sum(asked_partitions(controller, topic) for topic in topics)
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
    if era.told_each:
        return tuple(results[topic.name] for topic in topics)
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
        new = TopicDraft(controller, NewTopic(name))
        for check in (check_absent, check_name, check_collisions):
            check(new)
        if not assignment:
            raise Refusal(ErrorCode.INVALID_PARTITIONS, "a topic needs at least one partition")
        for broker_ids in assignment:
            check_assignment(controller, broker_ids)
        topic = Topic(name, fresh_id(new_id), partitions_of(controller, 0, assignment))
    except Refusal as refusal:
        raise ClusterError(f"topic {name!r}: {refusal.message}") from None
    controller.record("add_topic", TopicCreated(topic))
    return topic


def _gives_up(controller: Controller, wait_ms: int) -> bool:
    """Whether the caller does not wait for what it asked for, where others would have to."""
    return controller.administration.waits and wait_ms <= 0


def _create_one(
    controller: Controller,
    topic: NewTopic,
    new_id: Callable[[], uuid.UUID],
    *,
    validate_only: bool,
) -> CreateTopicResult:
    new = TopicDraft(controller, topic)
    for check in new.era.checks:
        CHECKS[check](new)
    partitions, configs = new.partitions, new.configs
    drawn = new.era.ids_drawn or not validate_only
    topic_id = fresh_id(new_id) if drawn else ZERO_UUID
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
            controller.record("create_partitions", PartitionsAdded(name, added))
            leaders = [each.leader for each in controller.state.topics[name].partitions]
            in_vain = era.awaits_leaders and NO_LEADER in leaders
            if in_vain or _gives_up(controller, wait_ms):
                results[name] = CreatePartitionsResult(name, ErrorCode.REQUEST_TIMED_OUT)
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
    model = first_iterated(present) if era.model == "hashed" else 0
    factor = len(topic.partitions[model].replicas)
    if assignments is not None:
        lists = {present + place: broker_ids for place, broker_ids in enumerate(assignments)}
        check_listed(controller, era.listed, lists, expected=factor, added=additional)
    elif era.continued:
        assignments = continued(controller, first[0], present, additional, factor)
    else:
        assignments = spread(controller, present, additional, factor)
    return partitions_of(controller, present, assignments)


# ---- delete --------------------------------------------------------------------------------------


def delete(
    controller: Controller,
    topics: Sequence[tuple[str | None, uuid.UUID]],
    *,
    wait_ms: int = _PATIENCE_MS,
) -> tuple[DeleteTopicResult, ...]:
    """Each topic by name, with the zero uuid, or by id, with None. Results keep request order."""
    era = controller.administration.deletion
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
            text = refusal.message if era.told else None
            results[key] = DeleteTopicResult(name, topic_id, refusal.code, text)
    # Where that is no error, what was asked for twice is told twice.
    return tuple(results[topic] for topic in (results if era.repeated_refused else topics))


def _as_asked(controller: Controller, name: str | None, topic_id: uuid.UUID) -> str | uuid.UUID:
    """The topic's name however it was asked for, to find what was asked for twice."""
    return name if name is not None else controller.state.topic_names.get(topic_id, topic_id)


def _delete_one(
    controller: Controller,
    name: str | None,
    topic_id: uuid.UUID,
    times: Counter[str | uuid.UUID],
) -> DeleteTopicResult:
    era = controller.administration.deletion
    by_id = topic_id != ZERO_UUID
    if name is not None and by_id:
        raise _invalid("You may not specify both topic name and topic id.")
    if name is None and not by_id:
        raise Refusal(era.neither, "Neither topic name nor id were specified.")
    if setting(controller, "delete.topic.enable") != "true":
        raise Refusal(ErrorCode.TOPIC_DELETION_DISABLED, message(ErrorCode.TOPIC_DELETION_DISABLED))
    if era.repeated_refused and times[_as_asked(controller, name, topic_id)] > 1:
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
    return DeleteTopicResult(found.name, found.topic_id if era.ids_found else topic_id)


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
