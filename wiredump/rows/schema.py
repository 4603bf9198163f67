"""The tables: their columns, with documentation, and the key of a row.

All writers share this description: Parquet files of one process, Spark, the documentation. A change
that readers of the tables would notice increases ``SCHEMA_VERSION``.

Times, whose names end in ``_ns``, are int64: nanoseconds since the Unix epoch, which neither
Spark's timestamps nor Python's can represent. Files have a timestamp in microseconds beside each
(``Table.timestamps``). ``connection`` is the id in ``connections``.
``capture`` and ``packet`` identify a packet: the source's number in ``lineage``, and the byte at
which its record begins (in a journal: the entry's sequence).
"""

from __future__ import annotations

from typing import Final

from wiredump.rows.columns import Column, Table, TypeName
from wiredump.rows.schema_groups import GROUPS, TRANSACTIONS
from wiredump.rows.schema_topics import BATCHES, ELECTIONS, FETCHES, REASSIGNMENTS, RECORDS, TOPICS
from wiredump.rows.schema_traffic import (
    ACCOUNT,
    ANOMALIES,
    BODIES,
    CONNECTIONS,
    FRAMES,
    LINEAGE,
    NEGOTIATIONS,
    PACKETS,
    REQUESTS,
)

__all__ = ["ON_REQUEST", "SCHEMA_VERSION", "TABLES", "UNDECODED", "Column", "Table", "TypeName"]

SCHEMA_VERSION: Final = 6

TABLES: Final = {
    table.name: table
    for table in (
        LINEAGE, ACCOUNT, CONNECTIONS, FRAMES, REQUESTS, BODIES, NEGOTIATIONS, ANOMALIES,
        TOPICS, BATCHES, RECORDS, FETCHES, REASSIGNMENTS, ELECTIONS, GROUPS, TRANSACTIONS, PACKETS,
    )
}  # fmt: skip

UNDECODED: Final = (
    "lineage", "account", "connections", "frames", "requests", "anomalies", "packets",
)  # fmt: skip
"""Tables that have rows even if no body is decoded."""

ON_REQUEST: Final = frozenset({"packets"})
"""Tables that are written only if they are named, since they have as many rows as there are
packets."""
