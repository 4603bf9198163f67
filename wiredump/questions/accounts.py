"""What tables say about the bytes that were read for them, in the form of an account
(``wiredump.skipped``)."""

from __future__ import annotations

from wiredump.questions.answers import Tables
from wiredump.skipped import read_requests

__all__ = ["account_of_tables"]

_BYTES = "SELECT what, sum(bytes) FROM account WHERE bytes IS NOT NULL GROUP BY what"
_REQUESTS = {
    "requests": "SELECT count(*) FROM requests WHERE api_key >= 0 AND api NOT LIKE 'api %'",
    "connections": "SELECT coalesce(sum(requests), 0) FROM connections",
}
"""The number of requests that were read, by the table that has it."""


def account_of_tables(tables: Tables) -> dict[str, int]:
    """Return the bytes of all runs by where they went, and the requests; without either, if their
    tables are missing. Raises QueryError."""
    counting = next((query for name, query in _REQUESTS.items() if name in tables.names), None)
    queries = [_BYTES, *([counting] if counting is not None else [])]
    sizes, *requests = tables.answers(queries)
    account: dict[str, int] = dict(sizes.rows)
    for each in requests:
        account |= read_requests(each.rows[0][0])
    return account
