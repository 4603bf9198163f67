"""What the tests of the KIP-455 machines look at: R, I and T over time, and what was written."""

from typing import Any, TypeAlias

import pytest

from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import PartitionChanged, Warned, ZnodeWritten
from tests.mockbroker.simulated import simulated_cluster

__all__ = [
    "BOTH",
    "FOO",
    "NEW",
    "OLD",
    "STATE",
    "TOPIC",
    "State",
    "alter",
    "changes",
    "cluster_of",
    "joined",
    "now",
    "remembered",
    "state_with",
    "topic_znodes",
    "walk",
    "warnings",
    "znode_writes",
]

FOO = ("foo", 0)
OLD, NEW = "kip-455-old", "kip-455-new"
BOTH = pytest.mark.parametrize("draft", [OLD, NEW])
TOPIC = "/brokers/topics/foo"
STATE = "/brokers/topics/foo/partitions/0/state"

State: TypeAlias = tuple[list[int], list[int], list[int] | None]
"""R, I, T"""


def cluster_of(reassignment: str, *topics: str) -> Cluster:
    """Six brokers, foo-0 on the first three unless told otherwise."""
    return simulated_cluster(6, topics=topics or ["foo=1,2,3"], reassignment=reassignment)


def alter(cluster: Cluster, replicas: list[int] | None, tp: tuple[str, int] = FOO) -> int:
    """The error code."""
    (topic,) = cluster.reassignments.alter([(tp[0], [(tp[1], replicas)])]).topics
    return topic.partitions[0].error_code


def now(cluster: Cluster, tp: tuple[str, int] = FOO) -> State:
    return _state(cluster.topics.partition(*tp))


def walk(cluster: Cluster, tp: tuple[str, int] = FOO) -> list[State]:
    """Every different R, I, T the controller has remembered, in order."""
    changed = cluster.log.partition_changes(*tp)
    return [_state(changed[0].before), *(_state(change.after) for change in changed)]


def _state(partition: Any) -> State:
    target = partition.target
    return list(partition.replicas), list(partition.isr), None if target is None else list(target)


def changes(cluster: Cluster, kind: type[Any], since: int = 0) -> list[Any]:
    return [a.change for a in cluster.log.since(since) if isinstance(a.change, kind)]


def znode_writes(cluster: Cluster, since: int) -> list[tuple[str, str | None]]:
    """Path and text of each write, in order."""
    return [(write.path, write.after) for write in changes(cluster, ZnodeWritten, since)]


def warnings(cluster: Cluster, since: int = 0) -> list[str]:
    """What the controller has warned of."""
    return [each.text for each in changes(cluster, Warned, since)]


def topic_znodes(cluster: Cluster) -> dict[str, str]:
    """Texts by path, of what is kept about topics."""
    texts = cluster.state.znodes
    return {path: text for path, text in texts.items() if path.startswith("/brokers/t")}


def remembered(cluster: Cluster, since: int) -> list[State]:
    """As ``walk``, from an offset of the log on."""
    return [_state(change.after) for change in changes(cluster, PartitionChanged, since)]


def state_with(target: str) -> str:
    """foo-0's state znode as it is before anything happens, but for this target."""
    fields = '"version":1,"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":[1,2,3]'
    return f'{{{fields},"targetReplicas":{target}}}'


def joined(cluster: Cluster, *brokers: int) -> None:
    for broker in brokers:
        Operations(cluster).join_isr(FOO, broker)
