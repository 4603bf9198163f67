"""One partition as ``mockbroker ctl URL state`` shows it."""

from __future__ import annotations

from typing import Any

from mockbroker.simulation.reassignment.kip_236_new.plans import PendingPartition
from mockbroker.simulation.reassignment.kip_236_old.requested_partitions import RequestedPartition
from mockbroker.simulation.state.cluster_parts import Partition

__all__ = ["partition_state"]


def partition_state(partition: Partition) -> dict[str, Any]:
    """Return the partition as a JSON object.

    Under the drafts of KIP-236 it has ``original``, the replicas before the reassignment, or null
    if the controller does not know them.
    """
    state: dict[str, Any] = {
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "adding": list(partition.adding),
        "removing": list(partition.removing),
        "target": None if partition.target is None else list(partition.target),
    }
    if isinstance(partition, PendingPartition | RequestedPartition):
        original = partition.original_replicas
        state["original"] = None if original is None else list(original)
    return state
