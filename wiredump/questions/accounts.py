"""What a folder of tables says about the bytes that were read for it, in the form of an account
(``wiredump.skipped``)."""

from __future__ import annotations

from wiredump.questions.database import answers
from wiredump.skipped import read_requests
from wiredump.tables.reading import TableFolder

__all__ = ["account_of_tables"]

_BYTES = "SELECT what, sum(bytes)::BIGINT FROM account WHERE bytes IS NOT NULL GROUP BY what"
_REQUESTS = {
    "requests": "SELECT count(*) FROM requests WHERE api_key >= 0 AND api NOT LIKE 'api %'",
    "connections": "SELECT coalesce(sum(requests), 0)::BIGINT FROM connections",
}
"""The number of requests that were read, by the table that has it."""


def account_of_tables(folder: str) -> dict[str, int]:
    """Return the bytes of all runs by where they went, and the requests; without either, if the
    folder lacks their tables. Raises InputError and QueryError."""
    names = TableFolder(folder).names
    counting = next((query for name, query in _REQUESTS.items() if name in names), None)
    queries = [_BYTES, *([counting] if counting is not None else [])]
    sizes, *requests = answers(folder, queries)
    account: dict[str, int] = dict(sizes.rows)
    for each in requests:
        account |= read_requests(each.rows[0][0])
    return account
