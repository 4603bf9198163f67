"""The clusters of one process: the one it was started with, and those made over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from mockbroker.control.feed import Feed
from mockbroker.control.routes import RefusedError
from mockbroker.errors import ClusterError
from mockbroker.mock_cluster import MockCluster

__all__ = ["FIRST", "Hosted", "Hosting"]

FIRST: Final = "1"
"""The cluster that somebody else starts and stops; routes without an id are about it."""
_MOST_CLUSTERS: Final = 64


@dataclass(slots=True)
class Hosted:
    """One cluster under its id."""

    id: str
    mock: MockCluster
    feed: Feed = field(init=False)

    def __post_init__(self) -> None:
        self.feed = Feed(self.mock)

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "bootstrap": self.mock.bootstrap,
            "brokers": {str(key): address for key, address in self.mock.addresses.items()},
            "profile": self.mock.profile.name,
            "dialect": self.mock.dialect.name,
            "clock": self.mock.clock,
        }


class Hosting:
    """Ids are numbers as text, and none is given twice."""

    def __init__(self, first: MockCluster) -> None:
        self._clusters = {FIRST: Hosted(FIRST, first)}
        self._last = int(FIRST)
        self._starting = 0

    def __iter__(self) -> Iterator[Hosted]:
        return iter(self._clusters.values())

    @property
    def first(self) -> Hosted:
        return self._clusters[FIRST]

    def find(self, cluster_id: str) -> Hosted:
        """Raises RefusedError (404)."""
        found = self._clusters.get(cluster_id)
        if found is None:
            known = ", ".join(self._clusters)
            raise RefusedError(404, f"no cluster {cluster_id!r:.80}; there are {known}")
        return found

    async def add(self, options: dict[str, Any], faults: Any = ()) -> Hosted:
        """Make a cluster of these arguments of ``MockCluster`` and start it. Raises what that
        raises, RefusedError (429) where there are too many."""
        if len(self._clusters) + self._starting >= _MOST_CLUSTERS:
            raise RefusedError(429, f"{_MOST_CLUSTERS} clusters are as many as one process has")
        self._starting += 1
        try:
            # On a thread: many brokers and topics take their time, a ZooKeeper may.
            mock = await asyncio.to_thread(MockCluster, **options)
            try:
                mock.load_faults(faults)
                await mock.start()
            except BaseException:
                await mock.stop()
                raise
        finally:
            self._starting -= 1
        self._last += 1
        hosted = self._clusters[str(self._last)] = Hosted(str(self._last), mock)
        return hosted

    async def remove(self, cluster_id: str) -> Hosted:
        """Stop one that was added."""
        hosted = self.find(cluster_id)
        if cluster_id == FIRST:
            raise ClusterError("cluster 1 ends with the process that serves it")
        del self._clusters[cluster_id]
        hosted.feed.close()
        await hosted.mock.stop()
        return hosted

    async def close(self) -> None:
        """Stop those that were added, and every stream."""
        for hosted in list(self._clusters.values()):
            hosted.feed.close()
            if hosted.id != FIRST:
                del self._clusters[hosted.id]
                await hosted.mock.stop()
