"""Compute what the page shows from a folder of tables, by queries. Lists are cut at a limit, and
have the total number."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, NamedTuple

from wiredump.questions.database import Answer, answers
from wiredump.report.answers import MOST_LISTED, Asked, ask, in_order
from wiredump.report.network import Network, measure_network
from wiredump.report.requests import Requests, measure_requests
from wiredump.report.upgrade import Upgrade, measure_upgrade
from wiredump.tables.reading import TableFolder

__all__ = ["Cut", "Measured", "Row", "measure"]

Row = dict[str, Any]

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
ORDER BY first_ns, {", ".join(f"{name} NULLS FIRST" for name in _NEGOTIATION)}
LIMIT {MOST_LISTED}"""
_OUTCOMES: Final = "SELECT outcome, count(*) FROM reassignments GROUP BY ALL"
_ACCOUNT: Final = "SELECT what, bytes, packets FROM account"
_REASSIGNMENTS: Final = f"""
SELECT * {in_order("reassignments", "asked_ns, first_listed_ns, ended_ns")} LIMIT {MOST_LISTED}"""
_ALL_REASSIGNMENTS: Final = "SELECT count(*) FROM reassignments"


class Cut(NamedTuple):
    """The first of ``total`` rows."""

    rows: list[Row]
    total: int


class Measured(NamedTuple):
    """``tables`` are those there are. ``offered``: by api key, the ranges that brokers offered.
    ``unsupported`` are groups with their ``count``. ``answers`` has the answers to saved questions,
    and lists, by name."""

    tables: list[str]
    requests: Requests
    network: Network
    upgrade: Upgrade
    answers: dict[str, Asked]
    offered: dict[int, Counter[tuple[int, int]]]
    unsupported: Cut
    reassignments: Cut
    outcomes: Counter[str]
    account: dict[str, int]
    skipped: dict[str, int]


def measure(folder: TableFolder) -> Measured:
    """Read all tables. Raises InputError and QueryError."""
    folder.require_schema()
    queries = (
        _OFFERED, _UNSUPPORTED, _OUTCOMES, _ACCOUNT, _REASSIGNMENTS, _ALL_REASSIGNMENTS,
    )  # fmt: skip
    offered, unsupported, outcomes, account, reassignments, total = answers(folder.path, queries)
    ranges: dict[int, Counter[tuple[int, int]]] = {}
    for key, lowest, highest, count in offered.rows:
        ranges.setdefault(key, Counter())[lowest, highest] = count
    groups = unsupported.records()
    return Measured(
        folder.names,
        measure_requests(folder),
        measure_network(folder),
        measure_upgrade(folder.path),
        ask(folder.path),
        ranges,
        Cut(groups, groups[0]["total"] if groups else 0),
        Cut(reassignments.records(), total.rows[0][0]),
        Counter(dict(outcomes.rows)),
        _account(account, "bytes"),
        dict(Counter(_account(account, "packets")).most_common()),
    )


def _account(account: Answer, column: str) -> dict[str, int]:
    """One of the two counts, over all runs."""
    found: dict[str, int] = {}
    for row in account.records():
        if row[column] is not None:
            found[row["what"]] = found.get(row["what"], 0) + row[column]
    return found
