"""Clusters with elections to hold, and a short way to ask for them. No assertions."""

from collections.abc import Sequence

from mockbroker.profiles import profile
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.elections.queue import StartedElection
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import ElectionEnqueued, ElectionProcessed
from tests.mockbroker.simulated import simulated_cluster

__all__ = [
    "FLAGGED",
    "MACHINES",
    "PREFERRED",
    "QUEUED",
    "electable",
    "pending",
    "queue_log",
    "start",
]

PREFERRED = 0
FLAGGED = "kip-183"
QUEUED = ("kip-183", "kafka-2.2", "kafka-2.6")
MACHINES = ("kip-455-new", "zookeeper-0.10", "zookeeper")


def electable(
    profile_name: str = FLAGGED, *, reassignment: str = "kraft", busy_fails: bool = False
) -> Cluster:
    """foo-0 and bar-0 on [1, 2, 3]; broker 1 is back and in sync, and does not lead. Broker 3 is
    the controller."""
    found = profile(profile_name)
    cluster = simulated_cluster(
        3, topics=["foo=1,2,3", "bar=1,2,3"], reassignment=reassignment,
        elections=found.elections, release=found.software, busy_elections_fail=busy_fails,
    )  # fmt: skip
    Operations(cluster).stop_broker(1)
    Operations(cluster).start_broker(1)
    for name in ("foo", "bar"):
        Operations(cluster).join_isr((name, 0), 1)
    Operations(cluster).failover(3)
    return cluster


def start(
    cluster: Cluster, *names: str, timeout_ms: int = 1000, broker_id: int | None = None
) -> StartedElection:
    """The preferred replicas of partition 0 of these topics; of all, if none is named."""
    wanted: Sequence[tuple[str, Sequence[int]]] | None = [(name, [0]) for name in names] or None
    return cluster.elections.start(PREFERRED, wanted, broker_id=broker_id, timeout_ms=timeout_ms)


def pending(started: StartedElection) -> bool:
    """Whether its caller still waits."""
    return started.result is None


def queue_log(cluster: Cluster) -> list[str]:
    """``+1`` is enqueued, ``-1`` is processed, ``x1`` is preempted."""
    marks = []
    for action in cluster.log:
        if isinstance(action.change, ElectionEnqueued):
            marks.append(f"+{action.change.election}")
        if isinstance(action.change, ElectionProcessed):
            marks.append(f"{'x' if action.change.preempted else '-'}{action.change.election}")
    return marks
