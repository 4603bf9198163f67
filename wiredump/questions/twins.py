"""Connections that were captured twice, with other addresses: before and after a translation of
addresses (NAT).

A translation changes addresses and ports, and keeps the numbers of TCP and the content. A twin is
a connection that began at most 50 ms after one with the same two random numbers of 32 bits, the
same client id, and as many requests and bytes. Its exchanges are those of the earlier connection,
so the views of tables that count exchanges leave them out; those of what was on the wire
(``connections``, ``frames``, ``anomalies``, ``packets``) have both.

Programs that write captures do not draw numbers: they begin at a small one, or give the same to
every connection. Such connections are not twins.
"""

from __future__ import annotations

from typing import Final

from wiredump.knowledge.copies import LONGEST_HOP_NS, MOST_POINTS
from wiredump.rows.schema import TABLES

__all__ = ["FOLDED", "TWINS", "TWINS_TABLE"]

TWINS: Final = "twins"
"""The view with a row for each twin: ``run``, ``connection`` and ``twin_of``."""

_SMALLEST_DRAWN: Final = 1 << 16
"""One of 65,536 random numbers is below it."""

TWINS_TABLE: Final = f"""
WITH drawn AS (
  SELECT *, count(*) OVER (PARTITION BY run, client_sequence, broker_sequence) AS points
  FROM connections
  WHERE client_sequence >= {_SMALLEST_DRAWN} AND broker_sequence >= {_SMALLEST_DRAWN}
)
SELECT later.run, later.connection, min(earlier.connection) AS twin_of
FROM drawn later
JOIN drawn earlier
  ON earlier.run = later.run
  AND earlier.client_sequence = later.client_sequence
  AND earlier.broker_sequence = later.broker_sequence
  AND earlier.requests = later.requests
  AND earlier.request_bytes = later.request_bytes
  AND earlier.response_bytes = later.response_bytes
WHERE (earlier.opened_ns < later.opened_ns
    OR (earlier.opened_ns = later.opened_ns AND earlier.connection < later.connection))
  AND later.points <= {MOST_POINTS}
  AND later.opened_ns - earlier.opened_ns <= {LONGEST_HOP_NS}
  AND (earlier.client <> later.client OR earlier.broker <> later.broker)
  AND earlier.client <> later.broker
  AND coalesce(earlier.client_id, '') = coalesce(later.client_id, '')
GROUP BY later.run, later.connection
"""
"""A translation replaces the client, the broker or both."""

_OF_THE_WIRE: Final = frozenset({"connections", "frames", "anomalies", "packets"})

FOLDED: Final = frozenset(
    name
    for name, table in TABLES.items()
    if name not in _OF_THE_WIRE and any(each.name == "connection" for each in table.columns)
)
"""The tables whose views leave out the rows of twins."""
