"""Compute what the page shows from tables, by queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from wiredump.questions.answers import Answer, Tables
from wiredump.report.answers import MOST_LISTED, Answered, ask, in_order
from wiredump.report.network import Network, measure_network
from wiredump.report.requests import Requests, measure_requests
from wiredump.report.upgrade import Upgrade, measure_upgrade

__all__ = ["Measured", "Row", "measure"]

Row = dict[str, Any]

_OFFERED: Final = """
SELECT api_key, lowest, highest, count(*) FROM negotiations WHERE event = 'offered' GROUP BY ALL"""
_OUTCOMES: Final = "SELECT outcome, count(*) FROM reassignments GROUP BY ALL"
_ACCOUNT: Final = "SELECT what, bytes, packets FROM account"
_REASSIGNMENTS: Final = f"""
SELECT * {in_order("reassignments", "asked_ns, first_listed_ns, ended_ns")} LIMIT {MOST_LISTED}"""


class Measured(NamedTuple):
    """``tables`` are those there are. ``offered``: by api key, the ranges that brokers offered.
    ``reassignments`` are the first. ``answers`` has the answers to saved questions, and lists, by
    name."""

    tables: Sequence[str]
    requests: Requests
    network: Network
    upgrade: Upgrade
    answers: dict[str, Answered]
    offered: dict[int, Counter[tuple[int, int]]]
    reassignments: list[Row]
    outcomes: Counter[str]
    account: dict[str, int]
    skipped: dict[str, int]


def measure(tables: Tables) -> Measured:
    """Read all tables. Raises InputError and QueryError."""
    tables.require_schema()
    queries = (_OFFERED, _OUTCOMES, _ACCOUNT, _REASSIGNMENTS)
    offered, outcomes, account, reassignments = tables.answers(queries)
    ranges: dict[int, Counter[tuple[int, int]]] = {}
    for key, lowest, highest, count in offered.rows:
        ranges.setdefault(key, Counter())[lowest, highest] = count
    return Measured(
        tables.names,
        measure_requests(tables),
        measure_network(tables),
        measure_upgrade(tables),
        ask(tables),
        ranges,
        reassignments.records(),
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
