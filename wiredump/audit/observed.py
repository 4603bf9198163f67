"""Collect the APIs and versions that each client requested, and those it was offered, from rows of
the tables ``requests`` and ``negotiations``, wherever those come from.

A client is a client id with its software. The software that a connection names at any time applies
to the whole connection: an ApiVersions request that was refused does not name it yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from kproto.journal import ClientSoftware
from kproto.schema.versions import Versions

__all__ = ["ApiUse", "Observed", "Seen"]


class ApiUse(NamedTuple):
    """An API at a version, in a dialect, requested with a client id."""

    client_id: str | None
    api_key: int
    api_version: int
    dialect: str


Named: TypeAlias = tuple[str | None, int]
"""The run of a connection, if tables have runs, and its id there."""


class Seen:
    """One client: the number of its requests by API and version, their connections, and the
    versions it was offered. ``offers`` has, for an API key and a requested version, the ranges that
    were available."""

    def __init__(self, client_id: str | None, software: ClientSoftware | None) -> None:
        self.client_id = client_id
        self.software = software
        self.connections: set[Named] = set()
        self.negotiated: set[Named] = set()
        self.uses: Counter[tuple[int, int, str]] = Counter()
        self.offers: dict[tuple[int, int], set[Versions]] = {}


class _Connection:
    def __init__(self) -> None:
        self.software: ClientSoftware | None = None
        self.uses: Counter[ApiUse] = Counter()
        self.offered: dict[int, Versions] = {}


class Observed:
    """Takes rows, by table and column names, in any order."""

    TABLES = ("requests", "negotiations")

    def __init__(self) -> None:
        self._connections: dict[Named, _Connection] = {}

    def add(self, table: str, row: Mapping[str, Any], count: int = 1) -> None:
        """Take a row of a table, or ``count`` rows that are alike."""
        named = row.get("run"), row["connection"]
        connection = self._connections.setdefault(named, _Connection())
        if row["software_name"]:
            software = ClientSoftware(row["software_name"], row["software_version"] or "")
            connection.software = software
        if table == "requests":
            if row["api_key"] is not None and row["api_version"] is not None:
                use = ApiUse(row["client_id"], row["api_key"], row["api_version"], row["dialect"])
                connection.uses[use] += count
        elif row["event"] == "offered" and row["lowest"] is not None:
            connection.offered[row["api_key"]] = Versions(row["lowest"], row["highest"])

    def clients(self) -> list[Seen]:
        """Return the clients, sorted by client id and software."""
        found: dict[tuple[str | None, ClientSoftware | None], Seen] = {}
        for number, connection in self._connections.items():
            for (client_id, key, version, dialect), count in connection.uses.items():
                who = (client_id, connection.software)
                seen = found.setdefault(who, Seen(*who))
                seen.connections.add(number)
                seen.uses[key, version, dialect] += count
                if connection.offered:
                    seen.negotiated.add(number)
                if key in connection.offered:
                    seen.offers.setdefault((key, version), set()).add(connection.offered[key])
        return sorted(found.values(), key=lambda seen: (seen.client_id or "", str(seen.software)))
