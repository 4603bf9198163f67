"""Sessions over CreateTopics (19), DeleteTopics (20) and CreatePartitions (37)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

from kproto.messages import CreatePartitionsRequest, DeleteTopicsRequest
from kproto.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsTopic,
)
from kproto.messages.delete_topics_request import DeleteTopicState
from kproto.schema.model import ZERO_UUID
from tests.real.sessions.registry import session
from tests.real.steps import (
    Ask,
    Rounds,
    alter,
    create,
    create_counted,
    metadata,
    try_to_create,
)

# ---- 19 CreateTopics -------------------------------------------------------------------------


@session(19)
def topics_created(t: str) -> Rounds:
    return Rounds(
        [
            try_to_create(t, [1, 2], [2, 3]),
            try_to_create(t, [1]),
            try_to_create(f"{t}-dup", [1, 1]),
            try_to_create(f"{t}-uneven", [1, 2], [3]),
            try_to_create(f"{t} bad", [1]),
            try_to_create("", [1]),
            try_to_create(f"{t}-config", [1], retention_ms="soon"),
            try_to_create(f"{t}-config", [1], no_such="1"),
            metadata(t),
        ]
    )


@session(19, zookeeper=False)
def topics_nobody_can_lead(t: str) -> Rounds:
    """Where brokers are in ZooKeeper such topics are made, and waited for in vain."""
    return Rounds([try_to_create(f"{t}-far", [9]), try_to_create(f"{t}-none", [])])


@session(19, since=4)
def topics_counted(t: str) -> Rounds:
    """How many, and not where: that is drawn by lot."""
    given = try_to_create(f"{t}-both", [1])
    given.body.topics[0].num_partitions = 1
    factor = try_to_create(f"{t}-both", [1])
    factor.body.topics[0].replication_factor = 1
    return Rounds(
        [
            create_counted(t, 3, 2),
            create_counted(f"{t}-default", -1, -1),
            create_counted(f"{t}-zero", 0, 1),
            create_counted(f"{t}-negative", -2, 1),
            create_counted(f"{t}-bare", 1, 0),
            create_counted(f"{t}-many", 1, 9),
            create_counted(f"{t}-only", 2, 1, validate_only=True),
            metadata(f"{t}-only"),
            given,
            factor,
        ]
    )


@session(19, since=1)
def topics_refused(t: str) -> Rounds:
    null = try_to_create(f"{t}-null", [1], retention_ms="1")
    null.body.topics[0].configs[0].value = None
    twice = try_to_create(f"{t}-twice", [1])
    twice.body.topics.append(twice.body.topics[0])
    gap = try_to_create(f"{t}-gap", [1], [1])
    gap.body.topics[0].assignments[1].partition_index = 7
    same = try_to_create(f"{t}-same", [1, 2], [2, 3])
    same.body.topics[0].assignments[1].partition_index = 0
    two = try_to_create(f"{t}-good", [1])
    two.body.topics.append(try_to_create(f"{t}-worse", [1, 1]).body.topics[0])
    return Rounds(
        [
            null,
            twice,
            gap,
            same,
            metadata(f"{t}-same"),
            two,
            try_to_create(f"{t}.x", [1]),
            try_to_create(f"{t}_x", [1]),
            try_to_create(f"{t} bad", [1, 1], no_such="1"),
            try_to_create("__cluster_metadata", [1]),
        ]
    )


@session(19, since=2, zookeeper=True)
def topics_not_waited_for(t: str) -> Rounds:
    return Rounds(
        [
            try_to_create(t, [1, 9], wait_ms=0),
            metadata(t),
            try_to_create(t, [1], wait_ms=0),
            _delete(t, wait_ms=0),
            metadata(t),
        ]
    )


# ---- 20 DeleteTopics -------------------------------------------------------------------------


def _delete(*names: str, wait_ms: int = 30000, version: int | None = 5) -> Ask:
    return Ask(DeleteTopicsRequest(topic_names=list(names), timeout_ms=wait_ms), version=version)


@session(20, until=5)
def topics_deleted(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2]),
            create(f"{t}-b", [1]),
            metadata(t),
            _delete(t, f"{t}-unknown", version=None),
            metadata(t),
            alter((t, 0, [1])),
            _delete(f"{t}-b", f"{t}-b", version=None),
            metadata(f"{t}-b"),
            _delete(version=None),
        ]
    )


@session(20, since=6)
def topics_deleted_by_id(t: str) -> Rounds:
    def delete(*topics: tuple[str | None, uuid.UUID]) -> DeleteTopicsRequest:
        rows = [DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in topics]
        return DeleteTopicsRequest(topics=rows, timeout_ms=30000)

    return Rounds(
        [
            create(t, [1]),
            create(f"{t}-b", [1]),
            metadata(t, f"{t}-b"),
            Ask(delete((None, uuid.UUID(int=77)), (f"{t}-unknown", ZERO_UUID))),
            Ask(lambda ids: delete((t, ids[t]))),
            Ask(delete((None, ZERO_UUID))),
            Ask(lambda ids: delete((None, ids[t]))),
            Ask(delete((f"{t}-b", ZERO_UUID))),
            metadata(t, f"{t}-b"),
        ]
    )


# ---- 37 CreatePartitions ---------------------------------------------------------------------


def _grow(
    topic: str, count: int, *lists: Sequence[int], wait_ms: int = 30000, listed: bool = True
) -> Ask:
    """To ``count`` partitions in all; the controller chooses unless any are ``listed``."""
    rows = [CreatePartitionsAssignment(broker_ids=list(each)) for each in lists]
    return Ask(
        CreatePartitionsRequest(
            topics=[
                CreatePartitionsTopic(
                    name=topic, count=count, assignments=rows if lists or not listed else None
                )
            ],
            timeout_ms=wait_ms,
        )
    )


@session(37)
def partitions_added(t: str) -> Rounds:
    only_validated = _grow(t, 5)
    only_validated.body.validate_only = True
    return Rounds(
        [
            create(t, [3, 1]),
            _grow(t, 2, [2, 3]),
            metadata(t),
            only_validated,
            _grow(t, 2),
            _grow(t, 1),
            _grow(t, 0),
            _grow(f"{t}-unknown", 2),
            metadata(t),
        ]
    )


@session(37)
def partitions_listed_badly(t: str) -> Rounds:
    twice = _grow(t, 2, [1, 2])
    twice.body.topics.append(twice.body.topics[0])
    return Rounds(
        [
            create(t, [3, 1]),
            _grow(t, 2, [1, 1]),
            _grow(t, 2, [1, 9]),
            _grow(t, 3, [8, 2], [9, 1]),
            _grow(t, 2, [1]),
            _grow(t, 3, [1, 2], [1]),
            _grow(t, 2, []),
            _grow(t, 2, [1, 2], [2, 3]),
            _grow(t, 3, [1, 2]),
            _grow(t, 2, listed=False),
            twice,
            metadata(t),
        ]
    )


@session(37, zookeeper=True)
def partitions_chosen(t: str) -> Rounds:
    """Not by lot there: it goes on from partition 0."""
    return Rounds(
        [create(t, [3, 1]), _grow(t, 7), metadata(t), _grow(t, 8, wait_ms=0), metadata(t)],
        stopped=[_grow(t, 12), metadata(t), _grow(t, 13, [4, 1]), create(f"{t}-b", [4, 1])],
    )


@session(37)
def partitions_added_while_reassigning(t: str) -> Rounds:
    return Rounds(
        [create(t, [1, 2])],
        frozen=[
            alter((t, 0, [1, 4])),
            _grow(t, 2, [1, 2]),
            metadata(t),
            alter((t, 0, None)),
            _grow(t, 3, [1, 2], [2, 1]),
            _grow(t, 2, [1, 2]),
            metadata(t),
        ],
    )


@session(37, zookeeper=True)
def partitions_off_the_controller(t: str) -> Rounds:
    return Rounds([create(t, [1]), replace(_grow(t, 2), broker_id=2), metadata(t)])
