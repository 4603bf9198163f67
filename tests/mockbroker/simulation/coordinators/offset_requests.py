"""Short forms of OffsetCommit (8), OffsetFetch (9) and OffsetDelete (47) for any version."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.coordinators.offset_rules import OffsetToCommit
from mockbroker.simulation.coordinators.offset_store import OffsetStore
from mockbroker.simulation.log.logs import InternalProducer
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.support.requests import request_of

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
    offsets: Mapping[tuple[str, int], int | dict[str, Any]],
    group_id: str = "g",
    *,
    broker_id: int | None = None,
    **fields: Any,
) -> Codes:
    """Commit offsets; a partition's value is its offset or the rest of its row."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for (topic, index), offset in offsets.items():
        row = {"committed_offset": offset} if isinstance(offset, int) else offset
        topics.setdefault(topic, []).append({"partition_index": index, **row})
    known = broker.cluster.topics
    request = request_of(
        "OffsetCommit",
        group_id=group_id,
        topics=[
            {"name": name, "partitions": rows, **_topic_id(broker, version, name)}
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


def _topic_id(broker: DirectBroker, version: int, name: str) -> dict[str, Any]:
    topic = broker.cluster.topics.get(name)
    return {"topic_id": topic.topic_id} if version >= 10 and topic is not None else {}


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
    rows = wanted and [
        {"name": name, "partition_indexes": list(each), **_topic_id(broker, version, name)}
        for name, each in wanted.items()
    ]
    asked: dict[str, Any] = {"group_id": group_id, "topics": rows}
    request = request_of(
        "OffsetFetch",
        require_stable=require_stable,
        **({"groups": asked} if version >= 8 else asked),
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
    request = request_of(
        "OffsetDelete",
        group_id=group_id,
        topics=[
            {"name": name, "partitions": [{"partition_index": i} for i in indexes]}
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
