"""What the tests of KIP-236's newer revision write into znodes and read there."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kproto.znodes.plan_znodes import CANCEL_REASSIGNMENT_IN_PROGRESS as CANCEL
from kproto.znodes.plan_znodes import REASSIGN_PARTITIONS as PLAN
from kproto.znodes.plan_znodes import REASSIGN_PARTITIONS_QUEUE as QUEUE
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulation.reassignment.walks import FOO, cluster_of

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
    "submit",
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
    Operations(cluster).write_znode(PLAN, plan(*entries))


def queue(cluster: Cluster, *entries: Mapping[str, Any]) -> None:
    Operations(cluster).write_znode(QUEUE, plan(*entries))


def cancel(cluster: Cluster) -> None:
    Operations(cluster).write_znode(CANCEL, "")


def on_record(cluster: Cluster, path: str = PLAN) -> list[dict[str, Any]] | None:
    """What the plan says now, None where there is none."""
    found = cluster.znodes.read(path)
    if found is None:
        return None
    said = json.loads(found[0])
    assert said.pop("version") == 1
    (entries,) = said.values()
    return list(entries)
