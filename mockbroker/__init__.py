"""A mock Kafka cluster that real clients connect to, negotiate with and reassign partitions on.

``MockCluster`` runs one inside a process, ``mockbroker serve`` from a shell. ``Cluster`` simulates
one without sockets, and ``Operations`` are what a tester does to that. ``ClusterOptions`` describes
a ``MockCluster``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mockbroker.options import ClusterOptions
    from mockbroker.running.mock_cluster import MockCluster
    from mockbroker.simulation.cluster import Cluster
    from mockbroker.simulation.operations.simulated import Operations
    from mockbroker.simulation.state.cluster_parts import Broker

__all__ = ["Broker", "Cluster", "ClusterOptions", "MockCluster", "Operations"]


_MODULES = {
    "Broker": "mockbroker.simulation.state.cluster_parts",
    "Cluster": "mockbroker.simulation.cluster",
    "ClusterOptions": "mockbroker.options",
    "MockCluster": "mockbroker.running.mock_cluster",
    "Operations": "mockbroker.simulation.operations.simulated",
}


def __getattr__(name: str) -> Any:
    # Lazy: `mockbroker ctl` and `--help` import none of the codecs.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
