"""The tables whose rows depend on earlier exchanges, and what makes each.

Exchanges with different keys do not affect each other's rows, so that they can be read apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from wiredump.knowledge.copies import Copies
from wiredump.knowledge.excerpts import KEYS_OF, TABLE_OF, Excerpt
from wiredump.knowledge.groups import Groups
from wiredump.knowledge.reassignments import Reassignments
from wiredump.knowledge.sessions import Fetches
from wiredump.knowledge.transactions import Transactions, transactional_id_of
from wiredump.rows.exchanges import Row
from wiredump.rows.fields import NameOf

__all__ = ["FOLLOWED", "Follower", "follower_of", "key_of"]

FOLLOWED: Final = tuple(KEYS_OF)
"""The names of these tables."""


class Follower(Protocol):
    """Makes the rows of a table. Takes the exchanges of its API keys, in the order of requests."""

    def feed(self, excerpt: Excerpt) -> Iterator[Row]:
        """Return the rows that this exchange completes."""

    def end(self) -> Iterator[Row]:
        """Return the rows that are complete after the last exchange."""


class _WithoutCopies:
    """Gives a follower the exchanges that are not copies."""

    def __init__(self, follower: Follower) -> None:
        self._follower, self._copies = follower, Copies()

    def feed(self, excerpt: Excerpt) -> Iterator[Row]:
        if not self._copies.has(excerpt):
            yield from self._follower.feed(excerpt)

    def end(self) -> Iterator[Row]:
        yield from self._follower.end()


def follower_of(table: str, name_of: NameOf) -> Follower:
    """Return what makes the rows of a table. A fetch has a row of its own, also where it is a copy,
    like any row of one exchange."""
    match table:
        case "fetches":
            return Fetches(name_of)
        case "reassignments":
            return _WithoutCopies(Reassignments())
        case "groups":
            return _WithoutCopies(Groups())
        case "transactions":
            return _WithoutCopies(Transactions())
    raise KeyError(table)


def key_of(excerpt: Excerpt) -> str:
    """Return the key of an exchange. Sessions and groups belong to a broker. Clusters, to which
    reassignments belong, are known only after reading."""
    match TABLE_OF.get(excerpt.api_key):
        case "fetches" | "groups":
            return excerpt.broker
        case "transactions":
            return transactional_id_of(excerpt) or ""
    return ""
