"""Compute what the page shows from a folder of tables, by queries. Lists are cut at a limit, and
have the total number."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, NamedTuple

from wiredump.questions.database import Answer, answers
from wiredump.report.answers import Asked, ask
from wiredump.report.network import Network, measure_network
from wiredump.report.requests import Requests, measure_requests
from wiredump.report.upgrade import Upgrade, measure_upgrade
from wiredump.rows.schema import TABLES
from wiredump.tables.reading import TableFolder

__all__ = ["Cut", "Measured", "Row", "measure"]

Row = dict[str, Any]

MOST_SHOWN: Final = 500

_NEGOTIATION: Final = (
    "event", "api_key", "api_version", "lowest", "highest", "software_name", "software_version",
    "client_id",
)  # fmt: skip

_OFFERED: Final = """
SELECT api_key, lowest, highest, count(*) FROM negotiations WHERE event = 'offered' GROUP BY ALL"""
# Where a broker fell back, rows without a version are what it offered beside.
_UNSUPPORTED: Final = f"""
SELECT {", ".join(_NEGOTIATION)}, count(*) AS count, min(requested_ns) AS first_ns,
  (sum(count(*)) OVER ())::BIGINT AS total
FROM negotiations
WHERE event <> 'offered' AND NOT (event = 'fell back' AND api_version IS NULL)
GROUP BY ALL
ORDER BY first_ns, {", ".join(f"{name} NULLS FIRST" for name in _NEGOTIATION)} LIMIT {MOST_SHOWN}"""
_OUTCOMES: Final = "SELECT outcome, count(*) FROM reassignments GROUP BY ALL"
_KINDS: Final = """
SELECT kind, count(*) AS count, coalesce(sum(bytes), 0) AS bytes,
  coalesce(sum(missing), 0) AS missing
FROM anomalies GROUP BY kind ORDER BY kind"""
_ACCOUNT: Final = "SELECT what, bytes, packets FROM account"
_LINEAGE: Final = "SELECT * FROM lineage ORDER BY capture"

_STARTED: Final = {
    "reassignments": "coalesce(asked_ns, first_listed_ns, ended_ns, 0)",
    "elections": "coalesce(requested_ns, 0)",
    "anomalies": "coalesce(timestamp_ns, 0)",
}
"""When the rows of a table began, as far as that is known."""


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
    """Read all tables. Raises InputError and QueryError."""
    folder.require_schema()
    queries = [_OFFERED, _UNSUPPORTED, _OUTCOMES, _KINDS, _ACCOUNT, _LINEAGE]
    for name in _STARTED:
        queries += [_first(name), f"SELECT count(*) FROM {name}"]
    offered, unsupported, outcomes, kinds, account, lineage, *firsts = answers(folder.path, queries)
    ranges: dict[int, Counter[tuple[int, int]]] = {}
    for key, lowest, highest, count in offered.rows:
        ranges.setdefault(key, Counter())[lowest, highest] = count
    groups = unsupported.records()
    reassignments, elections, anomalies = (
        Cut(rows.records(), total.rows[0][0])
        for rows, total in zip(firsts[::2], firsts[1::2], strict=True)
    )
    return Measured(
        folder.names,
        measure_requests(folder),
        measure_network(folder),
        measure_upgrade(folder.path),
        ask(folder.path),
        ranges,
        Cut(groups, groups[0]["total"] if groups else 0),
        reassignments,
        Counter(dict(outcomes.rows)),
        elections,
        kinds.records(),
        anomalies,
        _account(account, "bytes"),
        dict(Counter(_account(account, "packets")).most_common()),
        lineage.records(),
    )


def _first(name: str) -> str:
    """Return the query for the earliest rows, of one time by what names them: in whichever order
    files have them."""
    names = ", ".join(f'"{column}" NULLS FIRST' for column in TABLES[name].order)
    return f"SELECT * FROM {name} ORDER BY {_STARTED[name]}, {names} LIMIT {MOST_SHOWN}"


def _account(account: Answer, column: str) -> dict[str, int]:
    """One of the two counts, over all runs."""
    found: dict[str, int] = {}
    for row in account.records():
        if row[column] is not None:
            found[row["what"]] = found.get(row["what"], 0) + row[column]
    return found
