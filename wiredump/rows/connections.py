"""What is only known at the end: the rows of connections, and where the tables come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import kproto
from wiredump.model import Anomaly, Connection, Exchange, Item
from wiredump.rows.exchanges import Row
from wiredump.rows.schema import SCHEMA_VERSION

__all__ = ["ConnectionCounts", "lineage_rows"]


class ConnectionCounts:
    """Counts the items of each connection as they pass."""

    def __init__(self) -> None:
        self._counts: dict[int, list[int]] = {}

    def add(self, item: Item) -> None:
        """Take in one item."""
        if item.connection is None:
            return
        counts = self._counts.setdefault(item.connection.number, [0, 0, 0, 0])
        if isinstance(item, Anomaly):
            counts[3] += 1
        else:
            _count(item, counts)

    def rows(self, connections: Mapping[int, Connection]) -> Iterator[Row]:
        """A row for every connection, one without items too."""
        for number, each in sorted(connections.items()):
            software = each.software
            yield (
                "connections",
                (
                    number, each.client, each.broker, each.opened_ns, each.closed_ns,
                    each.from_start, each.protocol, each.client_id,
                    software.name if software else None,
                    software.version if software else None,
                    *self._counts.get(number, [0, 0, 0, 0]),
                ),
            )  # fmt: skip


def _count(item: Exchange, counts: list[int]) -> None:
    if item.request is not None:
        counts[0] += not item.request.sasl
        counts[1] += item.request.size - item.request.missing
    if item.response is not None:
        counts[2] += item.response.size - item.response.missing


def lineage_rows(sources: Iterable[tuple[Any, ...]]) -> Iterator[Row]:
    """``sources``: number, name, kind, bytes, first and last time of each."""
    for source in sources:
        yield "lineage", (*source, SCHEMA_VERSION, f"kproto {kproto.__version__}")
