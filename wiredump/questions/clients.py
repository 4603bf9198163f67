"""The requests of each client in tables, as an audit takes them."""

from __future__ import annotations

from typing import Final

from wiredump.audit import Observed
from wiredump.questions.answers import Tables

__all__ = ["observed_in"]

_JUDGED: Final = """
WITH judged AS (SELECT DISTINCT run, connection FROM requests ORDER BY run, connection {limit})
"""
_QUERIES: Final = {
    "requests": """
        SELECT run, connection, client_id, software_name, software_version, api_key, api_version,
          dialect, count(*) AS number
        FROM requests JOIN judged USING (run, connection) GROUP BY ALL ORDER BY ALL""",
    "negotiations": """
        SELECT DISTINCT run, connection, client_id, software_name, software_version, event, api_key,
          lowest, highest, 1 AS number
        FROM negotiations JOIN judged USING (run, connection) ORDER BY ALL""",
}
_CONNECTIONS: Final = "SELECT count(DISTINCT (run, connection)) FROM requests"


def observed_in(tables: Tables, most: int | None = None) -> tuple[Observed, int]:
    """Return what was observed on at most ``most`` connections, and how many others there are.
    Raises QueryError."""
    judged = _JUDGED.format(limit="" if most is None else f"LIMIT {most}")
    queries = [judged + query for query in _QUERIES.values()]
    *found, connections = tables.answers([*queries, _CONNECTIONS])
    observed = Observed()
    for table, rows in zip(_QUERIES, found, strict=True):
        for row in rows.records():
            observed.add(table, row, row["number"])
    return observed, 0 if most is None else max(0, connections.rows[0][0] - most)
