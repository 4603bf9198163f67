"""The clusters of one process: the one it started with, and those created over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from mockbroker.control.errors import RefusedError
from mockbroker.control.event_streams import Feed
from mockbroker.errors import ClusterError
from mockbroker.faults import Fault
from mockbroker.options import ClusterOptions
from mockbroker.running.mock_cluster import MockCluster

__all__ = ["FIRST", "ClusterHost", "HostedCluster", "Scenario"]

FIRST: Final = "1"
"""The id of the cluster that the process started with. Routes without an id refer to it."""
_MOST_CLUSTERS: Final = 64


@dataclass(slots=True)
class HostedCluster:
    """A cluster with its id and its event streams."""

    id: str
    mock: MockCluster
    feed: Feed = field(init=False)

    def __post_init__(self) -> None:
        self.feed = Feed(self.mock.journal, self.mock.cluster)

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "bootstrap": self.mock.bootstrap,
            "brokers": {str(key): address for key, address in self.mock.addresses.items()},
            "profile": self.mock.profile.name,
            "dialect": self.mock.dialect.name,
            "clock": self.mock.clock,
            "now_ms": self.mock.cluster.timers.now_ms,
        }


class Scenario(Protocol):
    """A scenario of ``mockbroker.scenarios``, which starts its own clusters."""

    def to_dict(self) -> Mapping[str, Any]:
        """A ``Scenario`` of the OpenAPI document."""

    async def report(self) -> Mapping[str, Any]:
        """Run the scenario; the result is a ``ScenarioRun``."""


class ClusterHost:
    """Clusters by id, and scenarios by name. Ids are numbers as text and are never reused."""

    def __init__(self, first: MockCluster, scenarios: Mapping[str, Scenario]) -> None:
        self.scenarios = scenarios
        self._clusters = {FIRST: HostedCluster(FIRST, first)}
        self._last = int(FIRST)
        self._starting = 0

    def __iter__(self) -> Iterator[HostedCluster]:
        return iter(self._clusters.values())

    @property
    def first(self) -> HostedCluster:
        return self._clusters[FIRST]

    def find(self, cluster_id: str) -> HostedCluster:
        """Raises RefusedError (404)."""
        found = self._clusters.get(cluster_id)
        if found is None:
            known = ", ".join(self._clusters)
            raise RefusedError(404, f"no cluster {cluster_id!r:.80}; the clusters are {known}")
        return found

    async def add(self, options: ClusterOptions, faults: Sequence[Fault] = ()) -> HostedCluster:
        """Create and start a cluster. Raises the errors of ``MockCluster``, and RefusedError (429)
        if there are too many clusters."""
        if len(self._clusters) + self._starting >= _MOST_CLUSTERS:
            raise RefusedError(429, f"one process can host {_MOST_CLUSTERS} clusters at most")
        self._starting += 1
        try:
            # On a thread: many topics, or a ZooKeeper server, may take long.
            mock = await asyncio.to_thread(MockCluster.from_options, options)
            try:
                mock.load_faults(faults)
                await mock.start()
            except BaseException:
                await mock.stop()
                raise
        finally:
            self._starting -= 1
        self._last += 1
        hosted = self._clusters[str(self._last)] = HostedCluster(str(self._last), mock)
        return hosted

    async def remove(self, cluster_id: str) -> HostedCluster:
        """Stop a cluster that ``add`` created."""
        hosted = self.find(cluster_id)
        if cluster_id == FIRST:
            raise ClusterError("cluster 1 cannot be removed: it ends with its process")
        del self._clusters[cluster_id]
        hosted.feed.close()
        await hosted.mock.stop()
        return hosted

    async def close(self) -> None:
        """Stop the clusters that ``add`` created, and every event stream."""
        for hosted in list(self._clusters.values()):
            hosted.feed.close()
            if hosted.id != FIRST:
                del self._clusters[hosted.id]
                await hosted.mock.stop()
