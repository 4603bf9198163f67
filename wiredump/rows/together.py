"""All tables of one stream of items, by one process: the rows of each item, those that take what
was said before, and those that are only known at the end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

from kproto.dialects import Dialect
from wiredump.bodies import Bodies, read
from wiredump.knowledge.heard import Heard, heard_of
from wiredump.knowledge.order import InOrder
from wiredump.knowledge.reassignments import Reassignments
from wiredump.knowledge.sessions import Fetches
from wiredump.knowledge.topics import TopicNames
from wiredump.model import Connection, Exchange, Item
from wiredump.rows.batches import batch_rows
from wiredump.rows.connections import ConnectionCounts, account_rows, lineage_rows
from wiredump.rows.elections import election_rows
from wiredump.rows.exchanges import Row, rows_of
from wiredump.rows.schema import TABLES

__all__ = ["Apart", "TableRows"]

_WITHOUT_BODIES: Final = frozenset({"lineage", "account", "frames"})
"""Tables that bodies add nothing to: even of anomalies some are found in them."""


class Apart(Protocol):
    """Who puts together later what takes more than the items at hand."""

    def heard(self, heard: Heard) -> None:
        """One that ``fetches`` and ``reassignments`` are made of."""

    def name(self, topic_id: str, at_ns: int) -> str | None:
        """A topic's name by then, if that is known already."""


class TableRows:
    """``add`` each item, then ``end``: both give rows of ``tables``.

    No more is decoded than those take, and without ``bodies`` nothing is: then ``requests`` has no
    errors, and the tables that are not in ``UNDECODED`` have no rows. ``values`` keeps the values
    of records, ``secrets`` what bodies hold of them. With ``apart`` the items are some of many, and
    ``fetches`` and ``reassignments`` have no rows. ``counts`` goes on from what it is given.
    """

    def __init__(
        self,
        codec: Dialect | None = None,
        *,
        tables: Collection[str] = tuple(TABLES),
        bodies: bool = True,
        values: bool = False,
        secrets: bool = False,
        apart: Apart | None = None,
        counts: ConnectionCounts | None = None,
    ) -> None:
        self._apart = apart
        self.order = InOrder()
        self._codec = codec
        self._tables = frozenset(tables)
        self._decodes = bodies and not self._tables <= _WITHOUT_BODIES
        self._batches = bool(self._tables & {"batches", "records", "anomalies", "connections"})
        self._values = values
        self._secrets = secrets
        self.counts = counts if counts is not None else ConnectionCounts()
        self._names = TopicNames()
        self._fetches = Fetches(self._names.name)
        self._reassignments = Reassignments()

    def add(self, item: Item) -> Iterator[Row]:
        """The rows that an item gives."""
        self.counts.add(item)
        return self._wanted(self._rows(item))

    def turn(self) -> Iterator[Row]:
        """Another source follows, whose times may be earlier."""
        return self._wanted(self._rest())

    def end(
        self,
        connections: Mapping[int, Connection],
        sources: Iterable[tuple[Any, ...]],
        account: Mapping[str, int],
    ) -> Iterator[Row]:
        """The rows of what is known when the last item was added."""
        yield from self._wanted(self._last(connections))
        yield from self._wanted(lineage_rows(sources))
        yield from self._wanted(account_rows(account))

    def _wanted(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            if row[0] == "anomalies":
                self.counts.add_anomaly(row[1][0])
            if row[0] in self._tables:
                yield row

    def _rows(self, item: Item) -> Iterator[Row]:
        said = read(item, self._codec) if self._decodes and isinstance(item, Exchange) else None
        yield from rows_of(item, bodies=said is not None, secrets=self._secrets, said=said)
        if said is not None and isinstance(item, Exchange):
            yield from self._told(item, said)

    def _told(self, item: Exchange, said: Bodies) -> Iterator[Row]:
        yield from election_rows(item, said)
        heard = heard_of(item, said)
        if heard is not None:
            self._names.learn(heard)
            if self._apart is not None:
                self._apart.heard(heard)
            else:
                for each in self.order.add(heard):
                    yield from self._in_order(each)
        if self._batches:
            name_of = self._names.name if self._apart is None else self._apart.name
            yield from batch_rows(item, said, name_of, values=self._values)

    def _in_order(self, heard: Heard) -> Iterator[Row]:
        if "fetches" in self._tables:
            yield from self._fetches.feed(heard)
        if "reassignments" in self._tables:
            yield from self._reassignments.feed(heard)

    def _rest(self) -> Iterator[Row]:
        for heard in self.order.end():
            yield from self._in_order(heard)

    def _last(self, connections: Mapping[int, Connection]) -> Iterator[Row]:
        yield from self._rest()
        yield from self._reassignments.end()
        yield from self._names.rows()
        yield from self.counts.rows(connections)
