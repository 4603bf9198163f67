"""Who asked what, at which versions, and what they had been offered: gathered out of rows of the
tables ``requests`` and ``negotiations``, wherever those come from.

A client is a client id and the software it said it is. What its connection said of the software at
any time holds for all of it: an ApiVersions that was refused tells nothing yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from kproto.journal import ClientSoftware
from kproto.schema.versions import Versions

__all__ = ["Asked", "Observed", "Seen"]


class Asked(NamedTuple):
    """An api at a version, in a dialect, by a client id."""

    client_id: str | None
    api_key: int
    api_version: int
    dialect: str


Named: TypeAlias = tuple[str | None, int]
"""A connection's run, where tables have one, and its id there."""


class Seen:
    """One client: how often it asked what, on which connections, and what it was offered there.
    ``offers`` has, for an api key and a version asked, the ranges it had to choose from."""

    def __init__(self, client_id: str | None, software: ClientSoftware | None) -> None:
        self.client_id = client_id
        self.software = software
        self.connections: set[Named] = set()
        self.negotiated: set[Named] = set()
        self.asked: Counter[tuple[int, int, str]] = Counter()
        self.offers: dict[tuple[int, int], set[Versions]] = {}


class _Connection:
    def __init__(self) -> None:
        self.software: ClientSoftware | None = None
        self.asked: Counter[Asked] = Counter()
        self.offered: dict[int, Versions] = {}


class Observed:
    """Feed it rows, by table and column names; order does not matter."""

    TABLES = ("requests", "negotiations")

    def __init__(self) -> None:
        self._connections: dict[Named, _Connection] = {}

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        named = row.get("run"), row["connection"]
        connection = self._connections.setdefault(named, _Connection())
        if row["software_name"]:
            software = ClientSoftware(row["software_name"], row["software_version"] or "")
            connection.software = software
        if table == "requests":
            if row["api_key"] is not None and row["api_version"] is not None:
                asked = Asked(row["client_id"], row["api_key"], row["api_version"], row["dialect"])
                connection.asked[asked] += 1
        elif row["event"] == "offered" and row["lowest"] is not None:
            connection.offered[row["api_key"]] = Versions(row["lowest"], row["highest"])

    def merge(self, other: Observed) -> None:
        """Take in what was observed of other connections."""
        self._connections.update(other._connections)

    def clients(self) -> list[Seen]:
        """By client id, then software."""
        found: dict[tuple[str | None, ClientSoftware | None], Seen] = {}
        for number, connection in self._connections.items():
            for (client_id, key, version, dialect), count in connection.asked.items():
                who = (client_id, connection.software)
                seen = found.setdefault(who, Seen(*who))
                seen.connections.add(number)
                seen.asked[key, version, dialect] += count
                if connection.offered:
                    seen.negotiated.add(number)
                if key in connection.offered:
                    seen.offers.setdefault((key, version), set()).add(connection.offered[key])
        return sorted(found.values(), key=lambda seen: (seen.client_id or "", str(seen.software)))
