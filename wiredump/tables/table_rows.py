"""All tables of one stream of items in one process: the rows of each item, those that depend on
earlier items, and those that are complete only at the end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Protocol

from kproto.dialects import Dialect
from kproto.journal import ClientSoftware
from wiredump.bodies import read
from wiredump.body_texts import BodyTexts, left_over, printers_of, texts_of
from wiredump.dialects import certain
from wiredump.knowledge.excerpts import (
    FETCH,
    INSTRUCTIVE,
    KEYS_OF,
    TABLE_OF,
    Excerpt,
    excerpt_of,
    excerpt_of_texts,
    fetch_of_text,
)
from wiredump.knowledge.following import FOLLOWED, Follower, follower_of
from wiredump.knowledge.order import InOrder
from wiredump.knowledge.sessions import is_alone, rows_alone
from wiredump.knowledge.topics import TopicNames, is_instructive
from wiredump.model import Connection, Exchange, Item
from wiredump.native import quick
from wiredump.rows.connections import ConnectionCounts, account_rows, lineage_rows
from wiredump.rows.elections import ELECT_LEADERS, election_rows
from wiredump.rows.exchange_filter import ExchangeFilter
from wiredump.rows.exchanges import API_VERSIONS, Row, error_names, negotiation_rows, rows_of
from wiredump.rows.fields import CARRYING
from wiredump.rows.pieces import Rows
from wiredump.rows.schema import TABLES

if TYPE_CHECKING:
    from wiredump.rows.batches import BatchRows, NameOf
    from wiredump.tables.work import Work

__all__ = ["Deferral", "TableRows"]

_WITHOUT_BODIES: Final = frozenset({"lineage", "account", "frames", "packets"})
"""Tables that do not depend on bodies. (``anomalies`` does: some are found in bodies.)"""

_OF_EXCHANGES: Final = frozenset({"frames", "requests", "bodies", "negotiations"})
"""Tables whose rows depend only on an exchange."""

_SAID: Final = frozenset({"requests", "bodies", "negotiations"})
"""Tables for which every body is decoded completely."""

_BATCHES: Final = frozenset({"batches", "records", "anomalies"})
_FOLLOWED: Final = frozenset(FOLLOWED)


class Deferral(Protocol):
    """Collects what depends on more than the items at hand, to be merged later."""

    def keep(self, excerpt: Excerpt) -> None:
        """Take an exchange for the tables of ``knowledge.following``."""

    def name(self, topic_id: str, at_ns: int) -> str | None:
        """Return a topic's name at that time, if it is already known."""


class TableRows:
    """``add`` each item, then ``end``: both return rows of ``tables``, one by one or in pieces.

    Nothing is decoded that those tables do not need. Without ``bodies`` nothing is: then
    ``requests`` has no errors, and tables that are not in ``UNDECODED`` have no rows. ``values``
    keeps the contents of records, ``secrets`` keeps passwords, tokens and keys. With ``deferral``
    the items are some of many, and the tables of ``knowledge.following`` have no rows. ``counts``
    are continued. ``only`` are the exchanges that get rows, of tables in ``FILTERED``. ``names``
    are the topic names in the items so far.
    """

    def __init__(
        self,
        codec: Dialect | None = None,
        *,
        tables: Collection[str] = tuple(TABLES),
        bodies: bool = True,
        values: bool = False,
        secrets: bool = False,
        deferral: Deferral | None = None,
        counts: ConnectionCounts | None = None,
        only: ExchangeFilter | None = None,
    ) -> None:
        self._deferral = deferral
        self._only = only
        self.order = InOrder()
        self._codec = codec
        self._tables = frozenset(tables)
        self._decodes = bodies and not self._tables <= _WITHOUT_BODIES
        self._secrets = secrets
        self.counts = counts if counts is not None else ConnectionCounts()
        self._values = values
        self.names = TopicNames()
        self._needed_keys = _keys_of(self._tables)
        self._other_keys = self._needed_keys - INSTRUCTIVE | _keys_of(
            self._tables & {"reassignments", "elections"}
        )
        self._batches: BatchRows | None = None
        self._followers: dict[str, Follower] = {}
        self._ask(self.names.name if deferral is None else deferral.name, deferral is not None)

    @classmethod
    def of(
        cls, work: Work, codec: Dialect, tables: Collection[str] | None = None,
        deferral: Deferral | None = None, counts: ConnectionCounts | None = None,
    ) -> TableRows:  # fmt: skip
        """Make the rows of ``tables``, or those that ``work`` names, with its options."""
        return cls(
            codec, tables=work.tables if tables is None else tables, bodies=work.bodies,
            values=work.values, secrets=work.secrets, deferral=deferral, counts=counts,
            only=work.only,
        )  # fmt: skip

    def _ask(self, name_of: NameOf, apart: bool) -> None:
        self._name_of = name_of
        counted = self._tables | {"anomalies"} if "connections" in self._tables else self._tables
        if counted & _BATCHES:
            from wiredump.rows.batches import BatchRows  # this imports kproto.records

            self._batches = BatchRows(
                name_of, self._codec, tables=counted, values=self._values, apart=apart
            )
        self._followers = {
            name: follower_of(name, name_of) for name in FOLLOWED if name in self._tables
        }
        self._makes_fetches = "fetches" in self._followers

    def name_later(self, name_of: NameOf) -> None:
        """Look up topics with ``name_of``, which may not know a name yet. Must be called before the
        first item. The caller names the remaining rows when ``names`` is complete."""
        self._ask(name_of, True)

    def add(self, item: Item) -> Iterator[Rows]:
        """Return the rows of an item."""
        self.counts.add(item)
        if not isinstance(item, Exchange):
            return self._wanted(iter(rows_of(item)))
        if not (self._only is None or self._only.passes(item) or self._listens(item)):
            return iter(())
        texts = None
        if self._decodes and (self._tables & _SAID or self._listens(item)):
            texts = texts_of(item, self._codec, values=self._values, secrets=self._secrets)
        others = self._wanted(self._others(item, texts)) if self._decodes else iter(())
        if not self._tables & _OF_EXCHANGES:
            return others
        rows = rows_of(item, self._codec, bodies=texts is not None, texts=texts)
        return chain([each for each in rows if each[0] in self._tables], others)

    @property
    def wants_names(self) -> bool:
        """Whether rows are made that may need a topic's name."""
        return self._decodes and bool(self._tables & (_BATCHES | {"fetches"}))

    def of_exchanges(
        self, held: Callable[[str], Any], full: Callable[[str], None],
        take: Callable[[Iterable[Rows]], None],
    ) -> Any:  # fmt: skip
        """Return what makes rows of usual exchanges in C (``ExchangeRows``); None without the
        extension. ``held`` returns the ``HeldRows`` of a table, or None if it is not wanted,
        ``full`` is called when these have enough rows, and ``take`` takes other rows."""
        module = quick()
        if module is None:
            return None
        using = certain(self._codec)
        gatherer = None
        items = followed = frozenset[int]()
        if self._decodes:
            items = self._needed_keys & {ELECT_LEADERS}
            followed = self._needed_keys - items
            if "negotiations" in self._tables:
                followed |= {API_VERSIONS}
            if self._batches is not None:
                gatherer = self._batches.gatherer(
                    held("batches"), full, lambda rows: take(self._wanted(iter(rows)))
                )
        bodies = held("bodies") if self._decodes else None
        made = module.ExchangeRows(
            held("frames"), held("requests"), bodies,
            self._decodes and bool(self._tables & _SAID),
            partial(printers_of, using, self._values, self._secrets), left_over, error_names,
            partial(self._take_exchange, using.name, take, held, full) if followed else None,
            tuple(followed), full, gatherer, using.name, tuple(items), tuple(CARRYING),
        )  # fmt: skip
        if self._only is not None:
            only = self._only
            made.only(only.api_keys, only.connections, only.since_ns, only.until_ns)
        return made

    def gathered(self) -> Iterator[Rows]:
        """Return the records collected from frames, if they fill a piece."""
        return iter(()) if self._batches is None else self._wanted(self._batches.pieces())

    def counted(
        self, connection: int, requests: int, request_bytes: int, response_bytes: int
    ) -> None:
        """Count exchanges that were not added."""
        self.counts.add_counts(connection, requests, request_bytes, response_bytes)

    def turn(self) -> Iterator[Rows]:
        """Start another source, whose times may be earlier."""
        return self._wanted(self._rest())

    def end(
        self,
        connections: Mapping[int, Connection],
        sources: Iterable[tuple[Any, ...]],
        account: Mapping[str, int],
    ) -> Iterator[Rows]:
        """Return the rows that are complete after the last item."""
        yield from self._wanted(self._last(connections))
        yield from self._wanted(lineage_rows(sources))
        yield from self._wanted(account_rows(account))

    def _wanted(self, rows: Iterator[Rows]) -> Iterator[Rows]:
        tables = self._tables
        for each in rows:
            name, row = each
            if name == "anomalies" and isinstance(row, tuple):
                self.counts.add_anomaly(row[0])
            if name in tables:
                yield each

    def _others(self, item: Exchange, texts: BodyTexts | None) -> Iterator[Rows]:
        """Return the rows that depend on more than the exchange, or on its records."""
        if texts is not None:
            yield from self._learnt(item, texts)
        if self._batches is not None and item.api_key in CARRYING:
            bodies = texts.decoded if texts is not None else None
            reading = partial(read, item, self._codec) if bodies is None else lambda: bodies
            yield from self._batches.add(item, reading)

    def _listens(self, item: Exchange) -> bool:
        if item.api_key not in self._needed_keys:
            return False
        # Only names are needed from these, and old versions do not have them.
        for_names = item.api_key not in self._other_keys and not self._tables & _OF_EXCHANGES
        return not for_names or is_instructive(item.api_key, item.api_version)

    def _learnt(self, item: Exchange, texts: BodyTexts) -> Iterator[Row]:
        if "elections" in self._tables:
            yield from election_rows(item, texts)
        excerpt = excerpt_of(item, texts)
        if excerpt is not None:
            self.names.learn(excerpt)
            yield from self._followed(excerpt)

    def _take_exchange(
        self, dialect: str, take: Callable[[Iterable[Rows]], None], held: Callable[[str], Any],
        full: Callable[[str], None], connection: Connection, id_: int, offset: int,
        requested_ns: int, responded_ns: int | None, client_id: str | None,
        software: ClientSoftware | None, key: int, version: int, request: str | None,
        response: str | None,
    ) -> None:  # fmt: skip
        """Take an exchange whose other rows were made in C."""
        if key == API_VERSIONS:
            rows = negotiation_rows(
                connection, id_, offset, requested_ns, client_id, software, key, version, response
            )
            _hold("negotiations", held, full, (row for _, row in rows))
            return
        if key == FETCH and self._makes_fetches:  # most exchanges may be these
            fetch = fetch_of_text(request)
            who = id_, offset, requested_ns, connection.broker, client_id
            completed_ns = requested_ns if responded_ns is None else responded_ns
            name_of = self.names.name if self._deferral is None else self._name_of
            naming = name_of, completed_ns
            fetches = None if fetch is None else rows_alone(version, fetch, who, *naming)
            if fetches is not None:
                _hold("fetches", held, full, fetches)
                return
        excerpt = excerpt_of_texts(
            dialect, connection, id_, offset, requested_ns, responded_ns, client_id, software, key,
            version, request, response,
        )  # fmt: skip
        if excerpt is None:
            return
        if key in INSTRUCTIVE:
            self.names.learn(excerpt)
        take(self._followed(excerpt))

    def _is_alone(self, excerpt: Excerpt) -> bool:
        """Whether the exchange does not wait for those that were requested earlier."""
        fetch = excerpt.fetch
        return self._makes_fetches and fetch is not None and is_alone(excerpt.api_version, fetch)

    def _followed(self, excerpt: Excerpt) -> Iterator[Row]:
        if self._is_alone(excerpt):
            yield from self._in_order(excerpt)
        elif self._deferral is not None:
            self._deferral.keep(excerpt)
        elif TABLE_OF.get(excerpt.api_key) in self._followers:
            for each in self.order.add(excerpt):
                yield from self._in_order(each)

    def _in_order(self, excerpt: Excerpt) -> Iterator[Row]:
        yield from self._followers[TABLE_OF[excerpt.api_key]].feed(excerpt)

    def _rest(self) -> Iterator[Row]:
        for excerpt in self.order.end():
            yield from self._in_order(excerpt)

    def _last(self, connections: Mapping[int, Connection]) -> Iterator[Rows]:
        if self._batches is not None:
            yield from self._batches.end()
        yield from self._rest()
        for follower in self._followers.values():
            yield from follower.end()
        yield from self.names.rows()
        yield from self.counts.rows(connections)


def _hold(
    table: str, held: Callable[[str], Any], full: Callable[[str], None],
    rows: Iterable[tuple[Any, ...]],
) -> None:  # fmt: skip
    """Add rows that need nothing more, without the way that others go."""
    add = held(table).add
    for row in rows:
        if add(row):
            full(table)


def _keys_of(tables: frozenset[str]) -> frozenset[int]:
    """Return the API keys whose messages ``tables`` need."""
    keys: frozenset[int] = frozenset()
    if tables & {*_BATCHES, "topics", "fetches"}:
        keys |= INSTRUCTIVE
    for name in tables & _FOLLOWED:
        keys |= KEYS_OF[name]
    if "elections" in tables:
        keys |= {ELECT_LEADERS}
    return keys
