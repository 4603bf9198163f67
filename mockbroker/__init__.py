"""A mock Kafka cluster that real clients connect to, negotiate with and reassign partitions on.

``MockCluster`` runs one inside a process, ``mockbroker serve`` from a shell. ``Cluster`` simulates
one without sockets. ``ClusterOptions`` describes a ``MockCluster``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mockbroker.cluster import Cluster
    from mockbroker.cluster_options import ClusterOptions
    from mockbroker.mock_cluster import MockCluster
    from mockbroker.state.model import Broker

__all__ = ["Broker", "Cluster", "ClusterOptions", "MockCluster"]


_MODULES = {
    "Broker": "mockbroker.state.model",
    "Cluster": "mockbroker.cluster",
    "ClusterOptions": "mockbroker.cluster_options",
    "MockCluster": "mockbroker.mock_cluster",
}


def __getattr__(name: str) -> Any:
    # Lazy: `mockbroker ctl` and `--help` import none of the codecs.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
