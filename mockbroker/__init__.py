"""A mock Kafka cluster that real clients connect to, negotiate with and reassign partitions on.

``MockCluster`` runs one inside a process, ``mockbroker serve`` from a shell; ``Cluster`` is its
state without any socket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mockbroker.cluster import Cluster
    from mockbroker.mock_cluster import MockCluster
    from mockbroker.state.model import Broker

__all__ = ["Broker", "Cluster", "MockCluster"]


def __getattr__(name: str) -> Any:
    # Lazy, so that `mockbroker ctl` and `--help` do not pay for codecs they never use.
    if name == "Broker":
        from mockbroker.state.model import Broker

        return Broker
    if name == "Cluster":
        from mockbroker.cluster import Cluster

        return Cluster
    if name == "MockCluster":
        from mockbroker.mock_cluster import MockCluster

        return MockCluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
