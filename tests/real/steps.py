"""What a scripted session is made of: requests to make and moments to wait for. Data only.

A session is played in three rounds, each after the last one of every other session: ``running``
(all four brokers), ``frozen`` (broker 4 is a live member that does not catch up) and ``stopped``
(broker 4 has left). It never learns whether Kafka or the mock answers.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    CreateTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    MetadataRequest,
    MetadataRequestTopic,
    ReassignablePartition,
    ReassignableTopic,
)
from kproto.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)
from kproto.messages.describe_configs_request import DescribeConfigsResource
from kproto.messages.elect_leaders_request import TopicPartitions
from kproto.messages.incremental_alter_configs_request import AlterableConfig, AlterConfigsResource

__all__ = [
    "APPEND",
    "BROKER",
    "CONTROLLER",
    "DELETE",
    "PREFERRED",
    "SET",
    "SUBTRACT",
    "TOPIC",
    "UNCLEAN",
    "Ask",
    "CatchUp",
    "Look",
    "Rounds",
    "Session",
    "Settle",
    "Step",
    "Submit",
    "TopicIds",
    "alter",
    "change",
    "cluster",
    "create",
    "create_counted",
    "describe",
    "elect",
    "listing",
    "metadata",
    "try_to_create",
]

CONTROLLER: Final = 1
PREFERRED, UNCLEAN = 0, 1
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)

TopicIds: TypeAlias = Mapping[str, uuid.UUID]
"""Topic name -> id, of the topics the session created; each cluster draws its own."""


@dataclass(frozen=True)
class Ask:
    """A request, its answer to be compared.

    ``body`` is the message, or makes it from the topics' ids. ``version`` None is the session's
    for the api it varies, else the highest both sides serve. ``eventually``: brokers learn of
    changes after the controller answered, so Kafka is asked until it says the same as the mock, and
    what it says in the end counts. ``forged`` is the version in the header of a body encoded at
    ``version``. A session makes no sense where what is not ``refusable`` was refused.
    """

    body: Any
    version: int | None = None
    broker_id: int = CONTROLLER
    eventually: bool = False
    forged: int | None = None
    refusable: bool = True


@dataclass(frozen=True)
class Settle:
    """Wait until every replica of the session's topics that can catch up has done so."""


@dataclass(frozen=True)
class CatchUp:
    """Wait until one replica, which can, has caught up."""

    topic: str
    partition: int
    broker_id: int


@dataclass(frozen=True)
class Submit:
    """Write a znode as any client of ZooKeeper can; None deletes it."""

    path: str
    text: str | None


@dataclass(frozen=True)
class Look:
    """Compare the znode's text, read as JSON, with the mock's; None is that there is none. Kafka is
    looked at until they are the same."""

    path: str


Step: TypeAlias = Ask | Settle | CatchUp | Submit | Look


@dataclass(frozen=True)
class Rounds:
    running: Sequence[Step] = ()
    frozen: Sequence[Step] = ()
    stopped: Sequence[Step] = ()


@dataclass(frozen=True)
class Session:
    """``name`` is the prefix of every topic it makes. ``api_key`` is asked at ``version``.
    ``shows`` are the requirements it would show to be missed."""

    name: str
    api_key: int
    version: int
    rounds: Rounds = field(repr=False)
    shows: tuple[str, ...] = ()


Partitions: TypeAlias = tuple[str, Sequence[int]]


# ---- the requests, as short as they can be said ----------------------------------------------


def create(topic: str, *assignment: Sequence[int], **configs: str) -> Ask:
    """Create a topic with these replicas in its partitions; underscores in names stand for dots.
    At version 4, whose answer is short: what else it says is for the sessions of api 19."""
    return Ask(try_to_create(topic, *assignment, **configs).body, version=4, refusable=False)


def try_to_create(
    topic: str, *assignment: Sequence[int], wait_ms: int = 60000, **configs: str
) -> Ask:
    """As ``create``, at the session's version, and it may be refused; ``wait_ms`` is how long a
    broker may wait for the topic to have leaders."""
    return Ask(
        CreateTopicsRequest(
            timeout_ms=wait_ms,
            topics=[
                CreatableTopic(
                    name=topic,
                    num_partitions=-1,
                    replication_factor=-1,
                    assignments=[
                        CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
                        for index, replicas in enumerate(assignment)
                    ],
                    configs=[
                        CreatableTopicConfig(name=name.replace("_", "."), value=value)
                        for name, value in configs.items()
                    ],
                )
            ],
        )
    )


def create_counted(topic: str, partitions: int, factor: int, *, validate_only: bool = False) -> Ask:
    """A topic whose replicas the controller chooses."""
    asked = try_to_create(topic)
    (row,) = asked.body.topics
    row.num_partitions, row.replication_factor = partitions, factor
    asked.body.validate_only = validate_only
    return asked


def alter(
    *rows: tuple[str, int, Sequence[int] | None],
    factor_may_change: bool = True,
    broker_id: int = CONTROLLER,
) -> Ask:
    """Reassign: (topic, partition, replicas or None to cancel); adjoining rows share a topic."""
    topics: list[ReassignableTopic] = []
    for topic, partition, replicas in rows:
        if not topics or topics[-1].name != topic:
            topics.append(ReassignableTopic(name=topic, partitions=[]))
        topics[-1].partitions.append(
            ReassignablePartition(
                partition_index=partition, replicas=None if replicas is None else list(replicas)
            )
        )
    body = AlterPartitionReassignmentsRequest(topics=topics)
    if not factor_may_change:
        body.allow_replication_factor_change = False
    return Ask(body, broker_id=broker_id)


def listing(*topics: Partitions, everything: bool = False, broker_id: int = CONTROLLER) -> Ask:
    """ListPartitionReassignments of these partitions."""
    rows = [
        ListPartitionReassignmentsTopics(name=name, partition_indexes=list(indexes))
        for name, indexes in topics
    ]
    body = ListPartitionReassignmentsRequest(topics=None if everything else rows)
    return Ask(body, broker_id=broker_id)


def elect(
    kind: int, *topics: Partitions, everything: bool = False, broker_id: int = CONTROLLER
) -> Ask:
    rows = [TopicPartitions(topic=name, partitions=list(indexes)) for name, indexes in topics]
    body = ElectLeadersRequest(topic_partitions=None if everything else rows)
    if kind:
        body.election_type = kind
    return Ask(body, broker_id=broker_id)


def metadata(
    *names: str,
    everything: bool = False,
    operations: bool = False,
    version: int | None = None,
    broker_id: int = CONTROLLER,
) -> Ask:
    body = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
    if everything:
        body.topics = None
    body.include_topic_authorized_operations = operations
    return Ask(body, version, broker_id=broker_id, eventually=True)


def describe(
    *resources: tuple[int, str],
    names: Sequence[str] | None = None,
    synonyms: bool = False,
    broker_id: int = CONTROLLER,
) -> Ask:
    """DescribeConfigs of (resource type, name)."""
    return Ask(
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configuration_keys=None if names is None else list(names),
                )
                for kind, name in resources
            ],
            include_synonyms=synonyms,
        ),
        broker_id=broker_id,
        eventually=True,
    )


def change(
    *resources: tuple[int, str, Sequence[tuple[str, int, str | None]]],
    validate_only: bool = False,
    broker_id: int = CONTROLLER,
) -> Ask:
    """IncrementalAlterConfigs: (resource type, name, [(config, operation, value)])."""
    return Ask(
        IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=[
                        AlterableConfig(name=config, config_operation=operation, value=value)
                        for config, operation, value in operations
                    ],
                )
                for kind, name, operations in resources
            ],
            validate_only=validate_only,
        ),
        broker_id=broker_id,
    )


def cluster(**values: Any) -> Ask:
    return Ask(DescribeClusterRequest(**values), eventually=True)


Script: TypeAlias = Callable[[str], Rounds]
