"""Group brokers into clusters, by Metadata and DescribeCluster responses.

A response unites the broker that sent it with those that it lists, by address or, in journals, by
broker id. A cluster id is only a name: copied clusters share one.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from wiredump.knowledge.excerpts import DESCRIBE_CLUSTER, Excerpt

__all__ = ["MOST_ADDRESSES", "Clusters", "United"]

MOST_ADDRESSES: Final = 100_000
"""The most addresses remembered; a broker beyond them stays on its own."""

_METADATA: Final = 3


class United(NamedTuple):
    """Two clusters turned out to be one, known as ``kept``."""

    kept: str
    gone: str


class Clusters:
    """``learn`` from exchanges; ``of`` returns the current key of a broker's cluster, and ``name``
    its name."""

    def __init__(self, most: int = MOST_ADDRESSES) -> None:
        self._most = most
        self._above: dict[str, str] = {}
        self._ids: dict[str, str] = {}

    def of(self, broker: str) -> str:
        """Return the cluster of a broker; an unknown broker is a cluster of its own."""
        at = broker
        while self._above.get(at, at) != at:
            self._above[at] = self._above.get(self._above[at], self._above[at])
            at = self._above[at]
        return at

    def name(self, cluster: str) -> str:
        """Return the cluster's id, or the lowest address of its brokers."""
        return self._ids.get(cluster, cluster)

    def learn(self, excerpt: Excerpt) -> list[United]:
        """Take an exchange; returns the clusters that it unites."""
        body = excerpt.response
        if excerpt.api_key not in (_METADATA, DESCRIBE_CLUSTER) or body is None:
            return []
        united = []
        root = self.of(excerpt.broker)
        for address in _addresses(body, excerpt.broker):
            other = self.of(address)
            if address not in self._above:
                if len(self._above) >= self._most:
                    continue
                self._above[address] = address
            if other != root:
                kept, gone = min(root, other), max(root, other)
                self._above[gone] = kept
                self._above.setdefault(kept, kept)
                if gone in self._ids:
                    self._ids.setdefault(kept, self._ids.pop(gone))
                united.append(United(kept, gone))
                root = kept
        if body.get("clusterId"):
            self._ids.setdefault(root, body["clusterId"])
        return united


def _addresses(body: dict[str, Any], broker: str) -> list[str]:
    """Return the addresses in the form that connections have."""
    brokers = body.get("brokers") or ()
    if broker.startswith("broker "):
        return [f"broker {each.get('nodeId', each.get('brokerId'))}" for each in brokers]
    hosts = [(each.get("host", ""), each.get("port")) for each in brokers]
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in hosts]
