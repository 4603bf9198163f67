"""Rows that are complete only at the end: connections, and the lineage and account of the
tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import kproto
from wiredump.model import Connection, Exchange, Item
from wiredump.readers.round_trips import RoundTrips
from wiredump.readers.tally import COUNTS, Tally
from wiredump.rows.exchanges import Row
from wiredump.rows.schema import SCHEMA_VERSION
from wiredump.skipped import bytes_of, lost, lost_of, skipped_of, unread, unread_of

__all__ = ["ConnectionCounts", "account_rows", "lineage_rows"]


_NO_TALLY: Final = (None,) * (3 * len(COUNTS) + 7 + 2 * len(RoundTrips._fields))


class ConnectionCounts:
    """Counts the exchanges and anomalies of each connection."""

    def __init__(self) -> None:
        self._counts: dict[int, list[int]] = {}

    def add(self, item: Item) -> None:
        """Count one item."""
        if isinstance(item, Exchange):
            _count(item, self._of(item.connection.id))

    def add_counts(
        self, connection: int, requests: int, request_bytes: int, response_bytes: int
    ) -> None:
        """Add counts of exchanges that were not items."""
        counts = self._of(connection)
        for place, count in enumerate((requests, request_bytes, response_bytes)):
            counts[place] += count

    def add_anomaly(self, connection: int | None) -> None:
        """Count a row of ``anomalies``."""
        if connection is not None:
            self._of(connection)[3] += 1

    @property
    def anomalies(self) -> dict[int, int]:
        """The rows of ``anomalies`` of each connection that has any."""
        return {number: counts[3] for number, counts in self._counts.items() if counts[3]}

    def _of(self, connection: int) -> list[int]:
        return self._counts.setdefault(connection, [0, 0, 0, 0])

    def forget(self, connection: int) -> None:
        """Drop the counts of a connection whose row was written."""
        self._counts.pop(connection, None)

    def rows(self, connections: Mapping[int, Connection]) -> Iterator[Row]:
        """Yield a row for every connection, including those without items."""
        for each in sorted(connections.values(), key=lambda each: each.id):
            software = each.software
            yield (
                "connections",
                (
                    each.id, each.client, each.broker, each.opened_ns, each.closed_ns,
                    each.closed_by, each.closed_with, each.from_start, each.protocol,
                    each.client_id,
                    software.name if software else None,
                    software.version if software else None,
                    *self._counts.get(each.id, [0, 0, 0, 0]),
                    each.tunnel or None, each.proxied_client or None, each.proxied_broker or None,
                    *_tally(each.tally),
                ),
            )  # fmt: skip


def _tally(tally: Tally | None) -> tuple[int | None, ...]:
    if tally is None:
        return _NO_TALLY
    client, broker = tally.client, tally.broker
    return (
        *tally.counts, tally.handshake_ns, tally.syns, tally.syn_acks, tally.copies,
        *client.counts, *broker.counts, *client.round_trips, *broker.round_trips,
        tally.copy_delay_ns, client.first_sequence, broker.first_sequence,
    )  # fmt: skip


def _count(item: Exchange, counts: list[int]) -> None:
    if item.request is not None:
        counts[0] += not item.request.sasl
        counts[1] += item.request.size - item.request.missing
    if item.response is not None:
        counts[2] += item.response.size - item.response.missing


def lineage_rows(sources: Iterable[tuple[Any, ...]]) -> Iterator[Row]:
    """Yield rows of ``lineage`` from number, name, kind, bytes, first and last time of each
    source."""
    for source in sources:
        yield "lineage", (*source, SCHEMA_VERSION, f"kproto {kproto.__version__}")


def account_rows(account: Mapping[str, int]) -> Iterator[Row]:
    """Yield rows of ``account``: bytes by where they went, those that were not read, those of files
    that were lost, and packets without TCP (``skipped``)."""
    beside = unread(unread_of(account)) | lost(lost_of(account))
    for what, count in {**bytes_of(account), **beside}.items():
        yield "account", (what, count, None)
    for what, count in skipped_of(account).items():
        yield "account", (what, None, count)
