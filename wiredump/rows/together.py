"""All tables of one stream of items, by one process: the rows of each item, those that take what
was said before, and those that are only known at the end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from kproto.dialects import Dialect
from wiredump.bodies import Bodies, read
from wiredump.knowledge.heard import HEARD, INSTRUCTIVE, Heard, heard_of
from wiredump.knowledge.order import InOrder
from wiredump.knowledge.reassignments import Reassignments
from wiredump.knowledge.sessions import Fetches
from wiredump.knowledge.topics import TopicNames, is_instructive
from wiredump.model import Connection, Exchange, Item
from wiredump.rows.connections import ConnectionCounts, account_rows, lineage_rows
from wiredump.rows.elections import ELECT_LEADERS, election_rows
from wiredump.rows.exchanges import Row, rows_of
from wiredump.rows.fields import CARRYING
from wiredump.rows.pieces import Rows
from wiredump.rows.schema import TABLES

if TYPE_CHECKING:
    from wiredump.rows.batches import BatchRows, NameOf

__all__ = ["Apart", "TableRows"]

_WITHOUT_BODIES: Final = frozenset({"lineage", "account", "frames", "packets"})
"""Tables that bodies add nothing to: even of anomalies some are found in them."""

_OF_EXCHANGES: Final = frozenset({"frames", "requests", "bodies", "negotiations"})
"""Tables with rows that take nothing but an exchange."""

_SAID: Final = frozenset({"requests", "bodies", "negotiations"})
"""Tables that every body is decoded for, to the last field."""

_BATCHES: Final = frozenset({"batches", "records", "anomalies"})
_ORDERED: Final = frozenset({"fetches", "reassignments"})

_WITHOUT_OTHERS: Final = frozenset(
    {"lineage", "account", "topics", "records", "fetches", "reassignments", "elections"}
)
"""Tables for which it takes records, and exchanges that are listened to (``_keys_of``)."""

_WITHOUT_EXCHANGES: Final = frozenset({"lineage", "account", "connections", "frames", "anomalies"})
"""Tables for which, where no body is read, it takes frames and counts but no exchange."""


class Apart(Protocol):
    """Who puts together later what takes more than the items at hand."""

    def heard(self, heard: Heard) -> None:
        """One that ``fetches`` and ``reassignments`` are made of."""

    def name(self, topic_id: str, at_ns: int) -> str | None:
        """A topic's name by then, if that is known already."""


class TableRows:
    """``add`` each item, then ``end``: both give rows of ``tables``, one by one or in pieces.

    No more is decoded than those take, and without ``bodies`` nothing is: then ``requests`` has no
    errors, and the tables that are not in ``UNDECODED`` have no rows. ``values`` keeps what records
    say, ``secrets`` passwords, tokens and keys. With ``apart`` the items are some of many, and
    ``fetches`` and ``reassignments`` have no rows. ``counts`` goes on from what it is given.
    ``names`` are those that items told so far.
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
        self._secrets = secrets
        self.counts = counts if counts is not None else ConnectionCounts()
        self._values = values
        self.names = TopicNames()
        self._heard_keys = _keys_of(self._tables)
        self._other_keys = _keys_of(self._tables & {*_ORDERED, "elections"})
        self._batches: BatchRows | None = None
        self._reassignments = Reassignments()
        self._ask(self.names.name if apart is None else apart.name, apart is not None)

    def _ask(self, name_of: NameOf, apart: bool) -> None:
        counted = self._tables | {"anomalies"} if "connections" in self._tables else self._tables
        if counted & _BATCHES:
            from wiredump.rows.batches import BatchRows  # and with it kproto.records

            self._batches = BatchRows(
                name_of, self._codec, tables=counted, values=self._values, apart=apart
            )
        self._fetches = Fetches(name_of)

    def name_later(self, name_of: NameOf) -> None:
        """Before the first item: have ``name_of`` asked for topics, which may know none. Whoever it
        is has the rows that were made without to name, when ``names`` has all of them."""
        self._ask(name_of, True)

    def add(self, item: Item) -> Iterator[Rows]:
        """The rows that an item gives."""
        self.counts.add(item)
        return self._wanted(self._rows(item))

    @property
    def wants_names(self) -> bool:
        """Whether rows are made in which the name of a topic may be wanted."""
        return self._decodes and bool(self._tables & (_BATCHES | {"fetches"}))

    @property
    def takes_frames_only(self) -> bool:
        """Whether exchanges that were counted (``counted``), and whose frames were written, need
        not be added."""
        return not self._decodes and self._tables <= _WITHOUT_EXCHANGES

    @property
    def takes_records_only(self) -> bool:
        """Whether of an exchange that may have records the frame is enough that may have them
        (``carried``), and of most others nothing is wanted; both are counted all the same."""
        batches = self._batches
        others = self._tables - _WITHOUT_OTHERS
        return self._decodes and batches is not None and not batches.checks and not others

    @property
    def carried(self) -> tuple[tuple[int, ...], tuple[int, ...], Callable[..., bool]]:
        """Api keys whose exchanges have to be added, those whose frames may have records, and who
        takes such a frame."""
        assert self._batches is not None
        carrying = CARRYING - self._heard_keys
        return tuple(sorted(self._heard_keys)), tuple(sorted(carrying)), self._batches.gatherer

    def gathered(self) -> Iterator[Rows]:
        """Rows that frames gave, as far as they are enough for a piece."""
        assert self._batches is not None
        return self._wanted(self._batches.pieces())

    def counted(
        self, connection: int, requests: int, request_bytes: int, response_bytes: int
    ) -> None:
        """Exchanges that were not added."""
        self.counts.add_counts(connection, requests, request_bytes, response_bytes)

    def turn(self) -> Iterator[Rows]:
        """Another source follows, whose times may be earlier."""
        return self._wanted(self._rest())

    def end(
        self,
        connections: Mapping[int, Connection],
        sources: Iterable[tuple[Any, ...]],
        account: Mapping[str, int],
    ) -> Iterator[Rows]:
        """The rows of what is known when the last item was added."""
        yield from self._wanted(self._last(connections))
        yield from self._wanted(lineage_rows(sources))
        yield from self._wanted(account_rows(account))

    def _wanted(self, rows: Iterator[Rows]) -> Iterator[Rows]:
        for name, row in rows:
            if name == "anomalies" and isinstance(row, tuple):
                self.counts.add_anomaly(row[0])
            if name in self._tables:
                yield name, row  # type: ignore[misc]  # as it came

    def _rows(self, item: Item) -> Iterator[Rows]:
        if not isinstance(item, Exchange):
            yield from rows_of(item)
            return
        said = None
        if self._decodes and (self._tables & _SAID or self._listens(item)):
            said = read(item, self._codec)
        if self._tables & _OF_EXCHANGES:
            yield from rows_of(
                item, self._codec, bodies=said is not None, values=self._values,
                secrets=self._secrets, said=said,
            )  # fmt: skip
        if said is not None:
            yield from self._told(item, said)
        if self._decodes and self._batches is not None:
            reading = partial(read, item, self._codec) if said is None else lambda: said
            yield from self._batches.add(item, reading)

    def _listens(self, item: Exchange) -> bool:
        if item.api_key not in self._heard_keys:
            return False
        # Names alone are wanted of these, and of old versions there are none.
        for_names = item.api_key not in self._other_keys and not self._tables & _OF_EXCHANGES
        return not for_names or is_instructive(item.api_key, item.api_version)

    def _told(self, item: Exchange, said: Bodies) -> Iterator[Row]:
        if "elections" in self._tables:
            yield from election_rows(item, said)
        heard = heard_of(item, said)
        if heard is not None:
            self.names.learn(heard)
            if self._apart is not None:
                self._apart.heard(heard)
            elif self._tables & _ORDERED:
                for each in self.order.add(heard):
                    yield from self._in_order(each)

    def _in_order(self, heard: Heard) -> Iterator[Row]:
        if "fetches" in self._tables:
            yield from self._fetches.feed(heard)
        if "reassignments" in self._tables:
            yield from self._reassignments.feed(heard)

    def _rest(self) -> Iterator[Row]:
        for heard in self.order.end():
            yield from self._in_order(heard)

    def _last(self, connections: Mapping[int, Connection]) -> Iterator[Rows]:
        if self._batches is not None:
            yield from self._batches.end()
        yield from self._rest()
        yield from self._reassignments.end()
        yield from self.names.rows()
        yield from self.counts.rows(connections)


def _keys_of(tables: frozenset[str]) -> frozenset[int]:
    """Of the api keys, those whose messages are listened to for the sake of ``tables``."""
    keys: frozenset[int] = frozenset()
    if tables & {*_BATCHES, "topics"}:
        keys |= INSTRUCTIVE
    if tables & _ORDERED:
        keys |= HEARD
    if "elections" in tables:
        keys |= {ELECT_LEADERS}
    return keys
