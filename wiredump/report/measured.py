"""Compute what the page shows from a folder of tables. Lists are cut at a limit, and have the total
number."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from wiredump.report.answers import Asked, ask
from wiredump.report.network import Network, measure_network
from wiredump.report.requests import Requests, measure_requests
from wiredump.report.upgrade import Upgrade, measure_upgrade
from wiredump.rows.schema import TABLES
from wiredump.tables.reading import TableFolder

__all__ = ["Cut", "Measured", "Row", "measure"]

Row = dict[str, Any]

MOST_SHOWN: Final = 500
MOST_GROUPS: Final = 2000


class Cut(NamedTuple):
    """The first of ``total`` rows."""

    rows: list[Row]
    total: int


class Measured(NamedTuple):
    """``tables`` are those there are. ``offered``: by api key, the ranges that brokers offered.
    ``unsupported`` and ``anomaly_kinds`` are groups with their ``count``. ``answers`` has the
    answers to saved questions, by name."""

    tables: list[str]
    requests: Requests
    network: Network
    upgrade: Upgrade
    answers: dict[str, Asked]
    offered: dict[int, Counter[tuple[int, int]]]
    unsupported: Cut
    reassignments: Cut
    outcomes: Counter[str]
    elections: Cut
    anomaly_kinds: list[Row]
    anomalies: Cut
    account: dict[str, int]
    skipped: dict[str, int]
    lineage: list[Row]


def measure(folder: TableFolder) -> Measured:
    """Read all tables, each a few times. Raises InputError."""
    offered, unsupported = _negotiations(folder)
    outcomes: Counter[str] = Counter()
    for rows in folder.batches("reassignments", ["outcome"]):
        outcomes.update(rows["outcome"].to_pylist())
    kinds, anomalies = _anomalies(folder)
    return Measured(
        folder.names,
        measure_requests(folder),
        measure_network(folder),
        measure_upgrade(folder.path),
        ask(folder.path),
        offered,
        unsupported,
        _first(folder, "reassignments", lambda row: _started(row)),
        outcomes,
        _first(folder, "elections", lambda row: row["requested_ns"]),
        kinds,
        anomalies,
        _account(folder, "bytes"),
        dict(Counter(_account(folder, "packets")).most_common()),
        sorted(_rows(folder, "lineage"), key=lambda row: row["capture"]),
    )


def _account(folder: TableFolder, column: str) -> dict[str, int]:
    """One of the two counts, over all runs."""
    found: dict[str, int] = {}
    for row in _rows(folder, "account"):
        if row[column] is not None:
            found[row["what"]] = found.get(row["what"], 0) + row[column]
    return found


def _rows(folder: TableFolder, name: str, columns: Sequence[str] = ()) -> Iterator[Row]:
    columns = columns or [column.name for column in TABLES[name].columns]
    for rows in folder.batches(name, columns):
        yield from rows.to_pylist()


def _started(row: Row) -> int:
    """When a reassignment began, as far as that is known."""
    times = [row[name] for name in ("asked_ns", "first_listed_ns", "ended_ns")]
    return next((time for time in times if time is not None), 0)


def _first(folder: TableFolder, name: str, when: Any) -> Cut:
    """The earliest rows, of one time by what names them: in whichever order files have them. No
    more than those are held."""
    names = TABLES[name].order
    count = 0

    def counted() -> Iterator[tuple[int, tuple[Any, ...], int, Row]]:
        nonlocal count
        for row in _rows(folder, name):
            count += 1
            yield (when(row) or 0, _sortable(row, names), count, row)

    rows = [each[-1] for each in heapq.nsmallest(MOST_SHOWN, counted())]
    return Cut(rows, count)


def _sortable(row: Row, names: Iterable[str]) -> tuple[Any, ...]:
    """Null before anything."""
    return tuple((row[name] is not None, row[name] or 0) for name in names)


def _negotiations(folder: TableFolder) -> tuple[dict[int, Counter[tuple[int, int]]], Cut]:
    offered: dict[int, Counter[tuple[int, int]]] = {}
    groups: dict[tuple[Any, ...], Row] = {}
    count = 0
    keys = (
        "event", "api_key", "api_version", "lowest", "highest", "software_name",
        "software_version", "client_id",
    )  # fmt: skip
    for rows in folder.batches("negotiations", [*keys, "requested_ns"]):
        found = rows.group_by(list(keys), use_threads=False).aggregate(
            [([], "count_all"), ("requested_ns", "min")]
        )
        for row in found.to_pylist():
            number, first = row.pop("count_all"), row.pop("requested_ns_min")
            if row["event"] == "offered":
                ranges = offered.setdefault(row["api_key"], Counter())
                ranges[row["lowest"], row["highest"]] += number
                continue
            if row["event"] == "fell back" and row["api_version"] is None:
                continue  # what was offered beside it
            count += number
            key = tuple(row[name] for name in keys)
            if key in groups:
                groups[key]["count"] += number
                groups[key]["first_ns"] = min(groups[key]["first_ns"], first)
            elif len(groups) < MOST_GROUPS:
                groups[key] = {**row, "count": number, "first_ns": first}
    shown = sorted(groups.values(), key=lambda row: (row["first_ns"], _sortable(row, keys)))
    return offered, Cut(shown[:MOST_SHOWN], count)


def _anomalies(folder: TableFolder) -> tuple[list[Row], Cut]:
    kinds: dict[str, Row] = {}
    for rows in folder.batches("anomalies", ["kind", "bytes", "missing"]):
        found = rows.group_by("kind", use_threads=False).aggregate(
            [([], "count_all"), ("bytes", "sum"), ("missing", "sum")]
        )
        for row in found.to_pylist():
            kind = kinds.setdefault(row["kind"], {"count": 0, "bytes": 0, "missing": 0})
            kind["count"] += row["count_all"]
            kind["bytes"] += row["bytes_sum"] or 0
            kind["missing"] += row["missing_sum"] or 0
    by_kind = [{"kind": kind, **row} for kind, row in sorted(kinds.items())]
    return by_kind, _first(folder, "anomalies", lambda row: row["timestamp_ns"])
