"""Which brokers are one cluster's, as Metadata and DescribeCluster answers tell.

An answer unites the broker that gave it with those that it lists, by address; in journals, where
brokers go by their ids, by those. A cluster's id is its name and no more: clusters that were copied
share one.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from wiredump.knowledge.heard import DESCRIBE_CLUSTER, Heard

__all__ = ["MOST_ADDRESSES", "Clusters", "United"]

MOST_ADDRESSES: Final = 100_000
"""Known; a broker beyond them stays alone."""

_METADATA: Final = 3


class United(NamedTuple):
    """What was known as two clusters is one, known as ``kept``."""

    kept: str
    gone: str


class Clusters:
    """``learn`` from exchanges; ``of`` gives what a broker's cluster is known as for now, ``name``
    what to call that."""

    def __init__(self, most: int = MOST_ADDRESSES) -> None:
        self._most = most
        self._above: dict[str, str] = {}
        self._ids: dict[str, str] = {}

    def of(self, broker: str) -> str:
        """A broker that nobody told of is a cluster of its own."""
        at = broker
        while self._above.get(at, at) != at:
            self._above[at] = self._above.get(self._above[at], self._above[at])
            at = self._above[at]
        return at

    def name(self, cluster: str) -> str:
        """The cluster's id, or the least address of a broker of it."""
        return self._ids.get(cluster, cluster)

    def learn(self, heard: Heard) -> list[United]:
        """Take in an exchange; what it unites."""
        body = heard.response
        if heard.api_key not in (_METADATA, DESCRIBE_CLUSTER) or body is None:
            return []
        united = []
        root = self.of(heard.broker)
        for address in _addresses(body, heard.broker):
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
    """As connections have them."""
    told = body.get("brokers") or ()
    if broker.startswith("broker "):
        return [f"broker {each.get('nodeId', each.get('brokerId'))}" for each in told]
    hosts = [(each.get("host", ""), each.get("port")) for each in told]
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in hosts]
