"""The tables whose rows depend on earlier exchanges, and what makes each.

Exchanges with different keys do not affect each other's rows, so that they can be read apart.
"""

from __future__ import annotations

from typing import Final

from wiredump.knowledge.copies import Follower, WithoutCopies
from wiredump.knowledge.excerpts import KEYS_OF, TABLE_OF, Excerpt
from wiredump.knowledge.groups import Groups
from wiredump.knowledge.reassignments import Reassignments
from wiredump.knowledge.sessions import Fetches
from wiredump.knowledge.transactions import Transactions, transactional_id_of
from wiredump.rows.fields import NameOf

__all__ = ["FOLLOWED", "Follower", "follower_of", "key_of"]

FOLLOWED: Final = tuple(KEYS_OF)
"""The names of these tables."""


def follower_of(table: str, name_of: NameOf) -> Follower:
    """Return what makes the rows of a table. A fetch has a row of its own, also where it is a copy,
    like any row of one exchange."""
    match table:
        case "fetches":
            return Fetches(name_of)
        case "reassignments":
            return WithoutCopies(Reassignments())
        case "groups":
            return WithoutCopies(Groups())
        case "transactions":
            return WithoutCopies(Transactions())
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
