"""What the tests of KIP-236's older revision write into znodes and read there."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kproto.znodes.request_znodes import (
    REASSIGN_CANCEL,
    REASSIGN_PARTITIONS_EXTRA,
    REASSIGNMENT_REQUESTS,
    REASSIGNMENTS,
    REQUEST_PREFIX,
)
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import ReplicasMoved
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.reassignment.walks import FOO, changes

__all__ = [
    "CANCEL",
    "CHILD",
    "EXTRA",
    "LEGACY",
    "LITERAL",
    "REQUESTS",
    "child",
    "children",
    "in_flight",
    "legacy",
    "moves",
    "old_cluster",
    "plan",
    "plan_text",
    "request_text",
    "submit",
]

MACHINE, LITERAL = "kip-236-old", "kip-236-old-literal"
REQUESTS, CANCEL = REASSIGNMENT_REQUESTS, REASSIGN_CANCEL
LEGACY, EXTRA = "/admin/reassign_partitions", REASSIGN_PARTITIONS_EXTRA
CHILD = f"{REASSIGNMENTS}/foo/0"

Tp = tuple[str, int]


def old_cluster(*topics: str, **options: Any) -> Cluster:
    """Six brokers, foo-0 on the first three unless told otherwise."""
    settings = {"reassignment": MACHINE, **options}
    return simulated_cluster(6, topics=topics or ["foo=1,2,3"], **settings)


def request_text(assignments: Mapping[Tp, Sequence[int]], **others: object) -> str:
    topics: dict[str, dict[str, list[int]]] = {}
    for (topic, index), replicas in assignments.items():
        topics.setdefault(topic, {})[str(index)] = list(replicas)
    return json.dumps({"version": 1, "assignments": topics, **others})


def submit(cluster: Cluster, replicas: Sequence[int], tp: Tp = FOO, **others: object) -> str:
    """As a client of ZooKeeper; the request's path."""
    return Operations(cluster).append_znode(REQUEST_PREFIX, request_text({tp: replicas}, **others))


def plan_text(assignments: Mapping[Tp, Sequence[int]], **originals: Sequence[int]) -> str:
    """The tool's JSON; ``originals`` are by topic."""
    entries: list[dict[str, object]] = []
    for (topic, index), replicas in assignments.items():
        entry: dict[str, object] = {"topic": topic, "partition": index, "replicas": list(replicas)}
        if topic in originals:
            entry["original_replicas"] = list(originals[topic])
        entries.append(entry)
    return json.dumps({"version": 1, "partitions": entries})


def legacy(cluster: Cluster, replicas: Sequence[int], tp: Tp = FOO) -> None:
    """A plan for this one partition in /admin/reassign_partitions, whatever was there."""
    Operations(cluster).write_znode(LEGACY, plan_text({tp: replicas}))


def plan(cluster: Cluster, path: str = LEGACY) -> dict[Tp, tuple[list[int], list[int] | None]]:
    """Replicas and original replicas by partition, as they are on record now."""
    found = cluster.znodes.read(path)
    entries = [] if found is None else json.loads(found[0])["partitions"]
    return {
        (each["topic"], each["partition"]): (each["replicas"], each.get("original_replicas"))
        for each in entries
    }


def child(cluster: Cluster, tp: Tp = FOO) -> Any:
    """What the reassignment's own znode holds; None where there is none."""
    found = cluster.znodes.read(f"{REASSIGNMENTS}/{tp[0]}/{tp[1]}")
    return None if found is None else json.loads(found[0])


def children(cluster: Cluster) -> set[Tp]:
    """The partitions that have a znode under /admin/reassignments."""
    return {
        (topic, int(index))
        for topic in cluster.znodes.children(REASSIGNMENTS)
        for index in cluster.znodes.children(f"{REASSIGNMENTS}/{topic}")
    }


def in_flight(cluster: Cluster) -> set[Tp]:
    """What the controller remembers."""
    return {
        (name, each.index)
        for name, topic in cluster.topics.items()
        for each in topic.partitions
        if each.reassigning
    }


def moves(cluster: Cluster, since: int = 0) -> list[tuple[tuple[int, ...], str]]:
    """Replicas, and the state of the replica state machine that they entered."""
    return [(each.replicas, each.state) for each in changes(cluster, ReplicasMoved, since)]
