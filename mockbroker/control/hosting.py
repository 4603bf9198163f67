"""The clusters of one process: the one it may have started with, and those created over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Protocol

from mockbroker.control.errors import RefusedError
from mockbroker.control.event_streams import Feed
from mockbroker.faults import Fault
from mockbroker.options import ClusterOptions
from mockbroker.running.mock_cluster import MockCluster

__all__ = ["FIRST", "ClusterHost", "HostedCluster", "Scenario"]

FIRST: Final = "1"
"""The id of the first cluster of a process. Routes without an id refer to it."""
_MOST_CLUSTERS: Final = 64


@dataclass(slots=True)
class HostedCluster:
    """A cluster with its id, its labels and its event streams."""

    id: str
    mock: MockCluster
    labels: Mapping[str, str] = field(default_factory=dict)
    feed: Feed = field(init=False)

    def __post_init__(self) -> None:
        self.feed = Feed(self.mock.journal, self.mock.cluster)

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "bootstrap": self.mock.bootstrap,
            "brokers": {str(key): address for key, address in self.mock.addresses.items()},
            "listeners": {str(key): each for key, each in self.mock.listeners.items()},
            "profile": self.mock.profile.name,
            "dialect": self.mock.dialect.name,
            "clock": self.mock.clock,
            "now_ms": self.mock.cluster.timers.now_ms,
            "labels": dict(self.labels),
        }


class Scenario(Protocol):
    """A scenario of ``mockbroker.scenarios``, which starts its own clusters."""

    def to_dict(self) -> Mapping[str, Any]:
        """A ``Scenario`` of the OpenAPI document."""

    async def report(self) -> Mapping[str, Any]:
        """Run the scenario; the result is a ``ScenarioRun``."""


class ClusterHost:
    """Clusters by id, and scenarios by name. Ids are numbers as text and are never reused."""

    def __init__(self, first: MockCluster | None, scenarios: Mapping[str, Scenario]) -> None:
        self.scenarios = scenarios
        self._clusters: dict[str, HostedCluster] = {}
        self._last = 0
        self._free = asyncio.Semaphore(_MOST_CLUSTERS - (first is not None))
        """How many clusters can still be created. Those who wait are served in their order."""
        if first is not None:
            self._last = int(FIRST)
            self._clusters[FIRST] = HostedCluster(FIRST, first)
        self._given = first

    def __iter__(self) -> Iterator[HostedCluster]:
        return iter(self._clusters.values())

    def find(self, cluster_id: str) -> HostedCluster:
        """Raises RefusedError (404)."""
        found = self._clusters.get(cluster_id)
        if found is None:
            known = ", ".join(self._clusters)
            exist = f"the clusters are {known}" if known else "POST /clusters creates one"
            raise RefusedError(404, f"no cluster {cluster_id!r:.80}; {exist}")
        return found

    async def add(
        self,
        options: ClusterOptions,
        faults: Sequence[Fault] = (),
        labels: Mapping[str, str] = MappingProxyType({}),
        *,
        timeout_ms: int = 0,
    ) -> HostedCluster:
        """Create and start a cluster. If there are too many, wait until one is removed. Raises the
        errors of ``MockCluster``, and RefusedError (429) after the time-out."""
        await self._take_place(timeout_ms)
        try:
            # On a thread: many topics, or a ZooKeeper server, may take long.
            mock = await asyncio.to_thread(MockCluster.from_options, options)
            try:
                mock.load_faults(faults)
                await mock.start()
            except BaseException:
                await mock.stop()
                raise
        except BaseException:
            self._free.release()
            raise
        self._last += 1
        hosted = HostedCluster(str(self._last), mock, labels)
        self._clusters[hosted.id] = hosted
        return hosted

    async def _take_place(self, timeout_ms: int) -> None:
        try:
            async with asyncio.timeout(timeout_ms / 1000 if self._free.locked() else None):
                await self._free.acquire()
        except TimeoutError:
            raise RefusedError(
                429,
                f"one process can host {_MOST_CLUSTERS} clusters at most, and none was removed "
                f"within {timeout_ms} ms; DELETE /clusters/ID removes one",
            ) from None

    async def remove(self, cluster_id: str) -> HostedCluster:
        """Stop a cluster."""
        hosted = self.find(cluster_id)
        del self._clusters[cluster_id]
        hosted.feed.close()
        try:
            await hosted.mock.stop()
        finally:
            self._free.release()
        return hosted

    async def close(self) -> None:
        """Stop the clusters that ``add`` created, and every event stream."""
        for hosted in list(self._clusters.values()):
            hosted.feed.close()
            if hosted.mock is not self._given:
                await self.remove(hosted.id)
