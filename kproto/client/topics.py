"""Topics and the cluster: Metadata (3), DescribeTopicPartitions (75), DescribeCluster (60),
CreateTopics (19), DeleteTopics (20).

Builds bodies and interprets responses. No I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from kproto.client.calls import Attempt
from kproto.client.errors import (
    BrokerError,
    NotControllerError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
    broker_error,
    raise_for_code,
)
from kproto.client.values import (
    ClusterDescription,
    NewTopic,
    Node,
    PartitionDescription,
    TopicDescription,
)
from kproto.errors import UnsupportedVersionError
from kproto.schema.model import ZERO_UUID
from kproto.schema.versions import Versions

__all__ = ["create", "delete", "describe", "describe_cluster", "list_names", "silent"]

METADATA: Final = 3
CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
DESCRIBE_CLUSTER: Final = 60
DESCRIBE_TOPIC_PARTITIONS: Final = 75

_NULL_IS_ALL: Final = Versions(1, 2**15 - 1)
_CAN_FORBID_CREATION: Final = 4
_BY_STATE: Final = 6
_DEFAULTS: Final = 4

Topics = Mapping[str, TopicDescription | BrokerError]


# ---- reading ------------------------------------------------------------------------------------


async def list_names(attempt: Attempt, *, internal: bool) -> list[str]:
    """Return all topics in ascending order."""
    response = await _metadata(attempt, None)
    return sorted(each.name for each in response.topics if internal or not each.is_internal)


async def describe(attempt: Attempt, names: Sequence[str]) -> Topics:
    """Return what the broker knows of each topic."""
    if attempt.serves(DESCRIBE_TOPIC_PARTITIONS) and names:
        return await _describe_in_pages(attempt, names)
    response = await _metadata(attempt, names)
    found = {each.name: _topic_or_error(each) for each in response.topics}
    return {name: found.get(name) or UnknownTopicOrPartitionError() for name in names}


async def _metadata(attempt: Attempt, names: Sequence[str] | None) -> Any:
    request: Any = attempt.dialect.message("MetadataRequest")
    version = attempt.version(METADATA, _NULL_IS_ALL)
    if names is None:
        return await _checked(attempt, request(topics=None), version)
    if version < _CAN_FORBID_CREATION:
        # A broker may create a topic that a request names, but not if the request names none.
        return await _checked(attempt, request(topics=None), version)
    topic = request.STRUCTS["MetadataRequestTopic"]
    body = request(topics=[topic(name=name) for name in names], allow_auto_topic_creation=False)
    return await _checked(attempt, body, version)


async def _checked(attempt: Attempt, body: Any, version: int) -> Any:
    response = await attempt.request(body, version)
    raise_for_code(response.error_code)
    return response


async def _describe_in_pages(attempt: Attempt, names: Sequence[str]) -> Topics:
    """Describe topics in pages (KIP-966): a response has a limited number of partitions and the
    position of the next page."""
    request: Any = attempt.dialect.message("DescribeTopicPartitionsRequest")
    topic, cursor_type = request.STRUCTS["TopicRequest"], request.STRUCTS["Cursor"]
    left = sorted(set(names))
    found: dict[str, TopicDescription | BrokerError] = {}
    cursor: Any = None
    while left:
        body = request(topics=[topic(name=name) for name in left], cursor=cursor)
        response = await attempt.request(body)
        for row in response.topics:
            found[row.name] = _joined(found.get(row.name), _topic_or_error(row))
        following = response.next_cursor
        if following is None:
            break
        at = (following.topic_name, following.partition_index)
        if cursor is not None and at <= (cursor.topic_name, cursor.partition_index):
            raise UnknownServerError(f"DescribeTopicPartitions makes no progress beyond {at}")
        cursor = cursor_type(topic_name=at[0], partition_index=at[1])
        left = [name for name in left if name >= following.topic_name]
    return {name: found.get(name) or UnknownTopicOrPartitionError() for name in names}


def _joined(
    earlier: TopicDescription | BrokerError | None, later: TopicDescription | BrokerError
) -> TopicDescription | BrokerError:
    if isinstance(earlier, TopicDescription) and isinstance(later, TopicDescription):
        later.partitions[:0] = earlier.partitions
    return later


def _topic_or_error(row: Any) -> TopicDescription | BrokerError:
    if row.error_code:
        return broker_error(row.error_code)
    topic_id: UUID | None = None if row.topic_id == ZERO_UUID else row.topic_id
    partitions = [_partition(each) for each in row.partitions]
    partitions.sort(key=lambda each: each.index)
    return TopicDescription(row.name, topic_id, row.is_internal, partitions)


def _partition(row: Any) -> PartitionDescription:
    return PartitionDescription(
        index=row.partition_index,
        leader=row.leader_id,
        leader_epoch=row.leader_epoch,
        replicas=row.replica_nodes,
        isr=row.isr_nodes,
        offline_replicas=row.offline_replicas,
        eligible_leader_replicas=getattr(row, "eligible_leader_replicas", None),
        last_known_elr=getattr(row, "last_known_elr", None),
    )


async def describe_cluster(attempt: Attempt, *, include_fenced_brokers: bool) -> ClusterDescription:
    """Use DescribeCluster, or Metadata if the broker is older than that."""
    if not attempt.serves(DESCRIBE_CLUSTER) and not include_fenced_brokers:
        request: Any = attempt.dialect.message("MetadataRequest")
        version = attempt.version(METADATA, _NULL_IS_ALL)
        response = await _checked(attempt, request(topics=[]), version)
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in response.brokers]
        return ClusterDescription(response.cluster_id, response.controller_id, nodes)
    request = attempt.dialect.message("DescribeClusterRequest")
    body = request(include_fenced_brokers=include_fenced_brokers)
    response = await attempt.request(body)
    raise_for_code(response.error_code, response.error_message)
    nodes = [
        Node(each.broker_id, each.host, each.port, each.rack, each.is_fenced)
        for each in response.brokers
    ]
    return ClusterDescription(response.cluster_id, response.controller_id, nodes)


# ---- changing -----------------------------------------------------------------------------------


async def create(
    attempt: Attempt, topics: Sequence[NewTopic], *, validate_only: bool
) -> Mapping[str, BrokerError | None]:
    """Return the outcome of each topic."""
    version = attempt.version(CREATE_TOPICS)
    request: Any = attempt.dialect.message("CreateTopicsRequest")
    if version < _DEFAULTS and any(_needs_defaults(topic) for topic in topics):
        names = ", ".join(topic.name for topic in topics if _needs_defaults(topic))
        raise UnsupportedVersionError(
            f"CreateTopics has a default number of partitions and replicas from version "
            f"{_DEFAULTS} on, and the node supports up to {version}: specify both for {names}"
        )
    body = request(
        topics=[_creatable(request, topic) for topic in topics],
        timeout_ms=attempt.timeout_ms,
        validate_only=validate_only,
    )
    response = await attempt.request(body, version)
    return _outcomes((row.name, row.error_code, row.error_message) for row in response.topics)


def _needs_defaults(topic: NewTopic) -> bool:
    return topic.replica_assignments is None and None in (
        topic.num_partitions,
        topic.replication_factor,
    )


def _creatable(request: Any, topic: NewTopic) -> Any:
    structs = request.STRUCTS
    assigned = topic.replica_assignments
    return structs["CreatableTopic"](
        name=topic.name,
        num_partitions=-1 if topic.num_partitions is None else topic.num_partitions,
        replication_factor=-1 if topic.replication_factor is None else topic.replication_factor,
        assignments=[
            structs["CreatableReplicaAssignment"](partition_index=index, broker_ids=list(brokers))
            for index, brokers in (assigned or {}).items()
        ],
        configs=[
            structs["CreatableTopicConfig"](name=name, value=value)
            for name, value in topic.configs.items()
        ],
    )


async def delete(attempt: Attempt, names: Collection[str]) -> Mapping[str, BrokerError | None]:
    """Return the outcome of each topic."""
    version = attempt.version(DELETE_TOPICS)
    request: Any = attempt.dialect.message("DeleteTopicsRequest")
    if version >= _BY_STATE:
        state = request.STRUCTS["DeleteTopicState"]
        body = request(topics=[state(name=name) for name in names], timeout_ms=attempt.timeout_ms)
    else:
        body = request(topic_names=list(names), timeout_ms=attempt.timeout_ms)
    response = await attempt.request(body, version)
    return _outcomes((row.name, row.error_code, row.error_message) for row in response.responses)


def _outcomes(rows: Any) -> Mapping[str, BrokerError | None]:
    found = {name: broker_error(code, text) if code else None for name, code, text in rows}
    errors = list(found.values())
    if errors and all(isinstance(each, NotControllerError) for each in errors):
        raise NotControllerError(errors[0].text if errors[0] else None)
    return found


def silent(name: str) -> UnknownServerError:
    """Return Kafka's error for a topic that the response leaves out."""
    return UnknownServerError(f"The controller response did not contain a result for topic {name}")
