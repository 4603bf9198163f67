"""What answers queries: ``Tables``, of which ``database`` has those in DuckDB and
``wiredump.spark.views`` those in Spark.

Both run the same SQL: saved questions, and the queries of the report. It keeps to what the two
dialects share, and to these functions, which each side defines or has:

=====================================  ======================================================
``moment(ns)``                         the timestamp of a time, a column that ends in ``_ns``
``ms(ns)``                             a duration in milliseconds, to three decimals
``part_of(ns, first, last, parts)``    in which of equal parts of a span a time is, from 0
``explode(list)``                      a row for each element of a list
``array_join(list, text)``             the elements of a list with a text between them
``array_size(list)``                   the number of elements of a list
``collect_set(value)``                 the different values of a group, as a list
``partition_errors(body)``             ``error/topic/partition`` of each error in a response's body
``partition_offsets(body)``            ``topic/partition/offset`` of each committed offset, and of
                                       each high watermark, in a body
=====================================  ======================================================

``twins`` has the connections that were captured twice (``wiredump.questions.twins``).

Nulls sort in front, and behind with DESC. An order names so many columns that only equal rows are
left in any order, and an aggregate does not depend on the order of rows, so that the answers of
both are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from kproto.errors import KprotoError

__all__ = ["Answer", "QueryError", "Tables", "answer"]


class QueryError(KprotoError):
    """A query is not valid, or fails on these tables. The message is the engine's."""


class Answer(NamedTuple):
    """``types`` are the columns' types, by DuckDB's names. Timestamps are in UTC, without a time
    zone."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def records(self) -> list[dict[str, Any]]:
        """Return the rows by the names of columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


class Tables(Protocol):
    """Tables that can be queried. A query finds those that are missing empty."""

    @property
    def names(self) -> Sequence[str]:
        """The tables that there are."""

    def require_schema(self) -> None:
        """Raise InputError for a table that cannot be read, or has another version of the tables'
        schema."""

    def answers(self, queries: Iterable[str]) -> Iterator[Answer]:
        """Yield what each query selects. Raises QueryError."""


def answer(tables: Tables, query: str) -> Answer:
    """Return what a query selects. Raises QueryError."""
    (found,) = tables.answers([query])
    return found
