"""What the tests of the ZooKeeper machine look at: what it did, in order, a line each."""

import json
from collections.abc import Sequence
from typing import Any

from kproto.znodes.plan_znodes import REASSIGN_PARTITIONS
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import (
    LeaderAndIsrSent,
    PartitionChanged,
    StopReplicaSent,
    UpdateMetadataSent,
    ZnodeWritten,
)
from tests.mockbroker.simulated import simulated_cluster

__all__ = [
    "FOO",
    "PLAN",
    "STATE",
    "TOPIC",
    "ZK",
    "alter",
    "cluster_of",
    "listed",
    "plan_of",
    "planned",
    "shape",
    "story",
    "submit",
]

ZK = "zookeeper"
FOO = ("foo", 0)
PLAN = REASSIGN_PARTITIONS
TOPIC = "/brokers/topics/foo"
STATE = "/brokers/topics/foo/partitions/0/state"


def cluster_of(*topics: str, reassignment: str = ZK, brokers: int = 6) -> Cluster:
    """Six brokers, foo-0 on the first three unless told otherwise."""
    return simulated_cluster(brokers, topics=topics or ["foo=1,2,3"], reassignment=reassignment)


def alter(
    cluster: Cluster, replicas: Sequence[int] | None, tp: tuple[str, int] = FOO
) -> tuple[int, str | None]:
    """Error code and text."""
    (topic,) = cluster.reassignments.alter([(tp[0], [(tp[1], replicas)])]).topics
    (row,) = topic.partitions
    return row.error_code, row.error_message


def listed(cluster: Cluster) -> dict[tuple[str, int], tuple[list[int], list[int], list[int]]]:
    """Replicas, adding and removing of what is under way."""
    return {
        (topic.name, each.partition_index): (
            list(each.replicas),
            list(each.adding_replicas),
            list(each.removing_replicas),
        )
        for topic in cluster.reassignments.list_ongoing(None).topics
        for each in topic.partitions
    }


def shape(cluster: Cluster, tp: tuple[str, int] = FOO) -> tuple[list[int], list[int], int, int]:
    """Replicas, ISR, leader and leader epoch."""
    partition = cluster.topics.partition(*tp)
    return (
        list(partition.replicas), list(partition.isr), partition.leader, partition.leader_epoch
    )  # fmt: skip


def plan_of(targets: dict[tuple[str, int], list[int]]) -> str:
    return json.dumps(
        {
            "version": 1,
            "partitions": [
                {"topic": topic, "partition": index, "replicas": replicas}
                for (topic, index), replicas in targets.items()
            ],
        }
    )


def submit(cluster: Cluster, targets: dict[tuple[str, int], list[int]]) -> None:
    Operations(cluster).write_znode(PLAN, plan_of(targets))


def planned(cluster: Cluster) -> dict[tuple[str, int], list[int]] | None:
    """What is in the plan's znode; None where there is none."""
    found = cluster.znodes.read(PLAN)
    if found is None:
        return None
    return {
        (entry["topic"], entry["partition"]): entry["replicas"]
        for entry in json.loads(found[0])["partitions"]
    }


def story(cluster: Cluster, since: int, topic: str = "foo") -> list[str]:
    """What happened to one topic, and to the plan, from an offset of the log on."""
    lines = (_line(action.change, topic) for action in cluster.log.since(since))
    return [line for line in lines if line]


def _line(change: Any, topic: str) -> str:
    if isinstance(change, ZnodeWritten) and change.path == PLAN:
        return "plan gone" if change.after is None else "plan written"
    if isinstance(change, ZnodeWritten) and change.path == f"/brokers/topics/{topic}":
        return f"topic znode {_assignment(change.after)}"
    if isinstance(change, ZnodeWritten) and change.path.startswith(f"/brokers/topics/{topic}/"):
        return f"state znode {_state(change.after)}"
    if getattr(change, "topic", None) != topic:
        return ""
    match change:
        case PartitionChanged():
            after = change.after
            isr = _ids(after.isr)
            return f"memory {_ids(after.replicas)} isr {isr} {after.leader}@{after.leader_epoch}"
        case LeaderAndIsrSent():
            new = " new" if change.is_new else ""
            what = f"{_ids(change.replicas)}+{_ids(change.adding)}-{_ids(change.removing)}"
            isr = f"isr {_ids(change.isr)} {change.leader}@{change.leader_epoch}"
            return f"LeaderAndIsr{new} to {_ids(change.to)} {what} {isr}"
        case UpdateMetadataSent():
            isr = f"isr {_ids(change.isr)} {change.leader}@{change.leader_epoch}"
            return f"UpdateMetadata to {_ids(change.to)} {_ids(change.replicas)} {isr}"
        case StopReplicaSent():
            return f"StopReplica{' delete' if change.delete else ''} to {_ids(change.to)}"
        case _:
            return ""


def _assignment(text: str | None) -> str:
    if text is None:
        return "gone"
    parts = json.loads(text)
    adding, removing = (
        parts.get(f"{kind}_replicas", {}).get("0", []) for kind in ("adding", "removing")
    )
    return f"{_ids(parts['partitions']['0'])}+{_ids(adding)}-{_ids(removing)}"


def _state(text: str | None) -> str:
    if text is None:
        return "gone"
    parts = json.loads(text)
    return f"isr {_ids(parts['isr'])} {parts['leader']}@{parts['leader_epoch']}"


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))
