"""Short forms of OffsetCommit (8), OffsetFetch (9) and OffsetDelete (47) for any version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from kproto.messages import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from kproto.messages.offset_commit_request import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.offset_delete_request import (
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto.messages.offset_fetch_request import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.coordinators.offset_rules import OffsetToCommit
from mockbroker.simulation.coordinators.offset_store import OffsetStore
from mockbroker.simulation.log.logs import InternalProducer
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster

__all__ = [
    "Codes",
    "Fetched",
    "coordinated",
    "coordinator_of",
    "delete",
    "end_transaction",
    "fetch",
    "offset_commit",
    "pend",
]

Codes: TypeAlias = dict[tuple[str, int], int]
"""(topic, partition) -> error code."""

Fetched: TypeAlias = dict[tuple[str, int], tuple[int, int, str, int]]
"""(topic, partition) -> (offset, leader epoch, metadata, error code)."""

PARTITION = OffsetCommitRequestPartition


def coordinated(brokers: int = 1, **options: Any) -> Cluster:
    """A cluster whose offsets topic exists, with the topics foo and bar of three partitions."""
    topics = options.pop("topics", (f"foo:3:{brokers}", f"bar:3:{brokers}"))
    cluster = simulated_cluster(brokers, topics=topics, **options)
    assert cluster.coordinators.find(CoordinatorKind.GROUP, "any", 1) is None
    return cluster


def coordinator_of(cluster: Cluster, group_id: str) -> int:
    name, index = cluster.coordinators.partition_of(CoordinatorKind.GROUP, group_id)
    return cluster.topics.partition(name, index).leader


def pend(
    store: OffsetStore,
    producer_id: int,
    group_id: str,
    offsets: Sequence[tuple[tuple[str, int], OffsetToCommit]],
) -> None:
    """Commit offsets in a transaction."""
    producer = InternalProducer(producer_id, 0)
    assert store.commit(group_id, offsets, producer=producer).results == [0] * len(offsets)


def end_transaction(cluster: Cluster, producer_id: int, *, committed: bool) -> None:
    """Decide on the offsets of a transaction, as markers in every partition would."""
    for partition in cluster.topics["__consumer_offsets"].partitions:
        tp = ("__consumer_offsets", partition.index)
        cluster.offsets.end_transaction(producer_id, tp, committed=committed)


def offset_commit(
    broker: DirectBroker,
    version: int,
    offsets: Mapping[tuple[str, int], int | OffsetCommitRequestPartition],
    group_id: str = "g",
    *,
    broker_id: int | None = None,
    **fields: Any,
) -> Codes:
    """Commit offsets; a partition's value is its offset or the rest of its row."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, index), offset in offsets.items():
        row = PARTITION(committed_offset=offset) if isinstance(offset, int) else offset
        row.partition_index = index
        topics.setdefault(topic, []).append(row)
    known = broker.cluster.topics
    request = OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                partitions=rows,
                **({"topic_id": known[name].topic_id} if version >= 10 and name in known else {}),
            )
            for name, rows in topics.items()
        ],
        **fields,
    )
    at = coordinator_of(broker.cluster, group_id) if broker_id is None else broker_id
    answer = broker.ask(request, version, broker_id=at)
    names = {topic.topic_id: name for name, topic in known.items()}
    return {
        (topic.name if version < 10 else names.get(topic.topic_id, ""), row.partition_index): (
            row.error_code
        )
        for topic in answer.topics
        for row in topic.partitions
    }


def fetch(
    broker: DirectBroker,
    version: int,
    wanted: Mapping[str, Sequence[int]] | None,
    group_id: str = "g",
    *,
    broker_id: int | None = None,
    require_stable: bool = False,
) -> Fetched | int:
    """Fetch offsets; None: all. An error of the group is returned as a number."""
    known = broker.cluster.topics
    if version >= 8:
        rows = None if wanted is None else [
            OffsetFetchRequestTopics(
                name=name,
                partition_indexes=list(indexes),
                **({"topic_id": known[name].topic_id} if version >= 10 and name in known else {}),
            )
            for name, indexes in wanted.items()
        ]  # fmt: skip
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group_id, topics=rows)],
            require_stable=require_stable,
        )
    else:
        topics = None if wanted is None else [
            OffsetFetchRequestTopic(name=name, partition_indexes=list(indexes))
            for name, indexes in wanted.items()
        ]  # fmt: skip
        request = OffsetFetchRequest(
            group_id=group_id, topics=topics, require_stable=require_stable
        )
    at = coordinator_of(broker.cluster, group_id) if broker_id is None else broker_id
    answer = broker.ask(request, version, broker_id=at)
    (group,) = answer.groups if version >= 8 else [answer]
    if group.error_code:
        assert not group.topics
        code: int = group.error_code
        return code
    names = {topic.topic_id: name for name, topic in known.items()}
    return {
        (topic.name if version < 10 else names.get(topic.topic_id, ""), row.partition_index): (
            row.committed_offset,
            row.committed_leader_epoch,
            row.metadata,
            row.error_code,
        )
        for topic in group.topics
        for row in topic.partitions
    }


def delete(
    broker: DirectBroker,
    wanted: Mapping[str, Sequence[int]],
    group_id: str = "g",
    *,
    broker_id: int | None = None,
) -> Codes | int:
    """Delete offsets. An error of the group is returned as a number."""
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequestPartition(partition_index=i) for i in indexes],
            )
            for name, indexes in wanted.items()
        ],
    )
    at = coordinator_of(broker.cluster, group_id) if broker_id is None else broker_id
    answer = broker.ask(request, 0, broker_id=at)
    if answer.error_code:
        assert not answer.topics
        code: int = answer.error_code
        return code
    return {
        (topic.name, row.partition_index): row.error_code
        for topic in answer.topics
        for row in topic.partitions
    }
