"""What the tests of KIP-236's newer revision write into znodes, and how they read the log."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kproto.znodes.plan_znodes import (
    CANCEL_REASSIGNMENT_IN_PROGRESS as CANCEL,
)
from kproto.znodes.plan_znodes import (
    REASSIGN_PARTITIONS as PLAN,
)
from kproto.znodes.plan_znodes import (
    REASSIGN_PARTITIONS_QUEUE as QUEUE,
)
from mockbroker.cluster import Cluster
from mockbroker.reassignment.kip_236_new.plans import PendingPartition
from mockbroker.state.actions import (
    LeaderAndIsrSent,
    PartitionChanged,
    ReplicasMoved,
    StopReplicaSent,
    UpdateMetadataSent,
    Warned,
    ZnodeWritten,
)
from tests.mockbroker.reassignment.walks import FOO, cluster_of

__all__ = [
    "CANCEL",
    "NEW",
    "PLAN",
    "QUEUE",
    "cancel",
    "cluster",
    "entry",
    "on_record",
    "plan",
    "queue",
    "story",
    "submit",
    "warnings",
]

NEW = "kip-236-new"


def cluster(*topics: str) -> Cluster:
    """Six brokers, foo-0 on the first three unless told otherwise."""
    return cluster_of(NEW, *topics)


def entry(
    replicas: Sequence[int], original: Sequence[int] | None = None, tp: tuple[str, int] = FOO
) -> dict[str, Any]:
    said = {"topic": tp[0], "partition": tp[1], "replicas": list(replicas)}
    return said if original is None else {**said, "original_replicas": list(original)}


def plan(*entries: Mapping[str, Any]) -> str:
    return json.dumps({"version": 1, "partitions": entries})


def submit(cluster: Cluster, *entries: Mapping[str, Any]) -> None:
    cluster.write_znode(PLAN, plan(*entries))


def queue(cluster: Cluster, *entries: Mapping[str, Any]) -> None:
    cluster.write_znode(QUEUE, plan(*entries))


def cancel(cluster: Cluster) -> None:
    cluster.write_znode(CANCEL, "")


def on_record(cluster: Cluster, path: str = PLAN) -> list[dict[str, Any]] | None:
    """What the plan says now, None where there is none."""
    found = cluster.read_znode(path)
    if found is None:
        return None
    said = json.loads(found[0])
    assert said.pop("version") == 1
    (entries,) = said.values()
    return list(entries)


def warnings(cluster: Cluster, since: int = 0) -> list[str]:
    return [a.change.text for a in cluster.log.since(since) if isinstance(a.change, Warned)]


def story(cluster: Cluster, since: int) -> list[tuple[Any, ...]]:
    """Everything that happened, in order, in few words; znodes of topics by the end of their path,
    and a partition as replicas, ISR, leader, leader epoch, RAR and OAR."""
    return [_told(action.change) for action in cluster.log.since(since)]


def _told(change: Any) -> tuple[Any, ...]:
    match change:
        case ZnodeWritten(path=path, after=after):
            name = path.removeprefix("/admin/").rpartition("/")[2]
            return "znode", name, after if not after else _brief(json.loads(after))
        case PartitionChanged(after=after):
            return "memory", *_partition(after)
        case LeaderAndIsrSent():
            state = (list(change.replicas), list(change.isr), change.leader, change.leader_epoch)
            return "LeaderAndIsr", change.to, *state
        case StopReplicaSent():
            return "StopReplica", change.to, change.delete
        case UpdateMetadataSent():
            state = (list(change.replicas), list(change.isr), change.leader, change.leader_epoch)
            return "UpdateMetadata", change.to, *state
        case ReplicasMoved():
            return change.state, change.replicas
        case Warned(text):
            return "warned", text
    return (type(change).__name__,)


def _brief(said: Any) -> Any:
    """A state znode as leader, leader epoch and ISR; what has partitions as those."""
    match said:
        case {"leader": leader, "leader_epoch": epoch, "isr": isr}:
            return leader, epoch, isr
        case {"partitions": partitions}:
            return partitions
    return said


def _partition(partition: Any) -> tuple[Any, ...]:
    known = (list(partition.replicas), list(partition.isr), partition.leader)
    if not isinstance(partition, PendingPartition):
        return *known, partition.leader_epoch
    original = partition.original_replicas
    goes, was = list(partition.new_replicas), None if original is None else list(original)
    return *known, partition.leader_epoch, goes, was
