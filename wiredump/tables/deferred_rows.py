"""What a single connection cannot determine, set aside by the tasks that read connections:
exchanges that say something about others, and rows whose topic has no name yet.

Both are files in the staging folder, like those of tables. ``excerpts`` has the exchanges that
``wiredump.knowledge`` needs, with the table that each is for, their key in it (``key_of``), and
their order. The unnamed tables are those of ``wiredump.rows``
with two more columns: when the exchange was complete, and the topic id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import msgspec
import pyarrow as pa

from wiredump.knowledge.excerpts import TABLE_OF, Excerpt
from wiredump.knowledge.following import FOLLOWED, key_of
from wiredump.rows.batches import NameOf
from wiredump.rows.exchanges import Row
from wiredump.rows.pieces import Piece, Rows
from wiredump.rows.schema import TABLES
from wiredump.tables.arrow import arrow_schema

__all__ = [
    "EXCERPTS", "EXCERPTS_SQL", "EXCERPT_ORDER", "NAMED", "UNNAMED", "DeferredRows",
    "decode_excerpt", "nameless", "schema_of", "taken_tables", "unnamed",
]  # fmt: skip

EXCERPTS: Final = "excerpts"
EXCERPTS_SQL: Final = (
    "table_name string, key string, part int, requested_ns long, connection long, "
    "request_offset long, excerpt binary"
)
EXCERPT_ORDER: Final = (
    "table_name", "key", "part", "requested_ns", "connection", "request_offset",
)  # fmt: skip
"""Sorted by these columns, exchanges are in the order that ``write_followed`` takes."""

_EXCERPTS_SCHEMA: Final = pa.schema(
    [
        ("table_name", pa.string()), ("key", pa.string()), ("part", pa.int32()),
        ("requested_ns", pa.int64()), ("connection", pa.int64()), ("request_offset", pa.int64()),
        ("excerpt", pa.binary()),
    ]
)  # fmt: skip

NAMED: Final = ("batches", "records", "anomalies", "fetches")
"""Tables that may need a topic's name."""


_UNNAMED: Final = "unnamed-"


def unnamed(table: str) -> str:
    """Return the kind under which rows without a topic name are kept."""
    return f"{_UNNAMED}{table}"


UNNAMED: Final = tuple(map(unnamed, NAMED))
_PLACES: Final = {
    name: tuple(
        [column.name for column in TABLES[name].columns].index(each)
        for each in ("topic", "topic_id")
    )
    for name in ("batches", "records", "fetches")
}
_KIND, _REASON = (
    [column.name for column in TABLES["anomalies"].columns].index(each)
    for each in ("kind", "reason")
)


def taken_tables(tables: Collection[str], bodies: bool) -> tuple[str, ...]:
    """Return the tables, with those that are needed to make them."""
    names = bodies and set(tables) & set(NAMED)
    return tuple({*tables, "topics"}) if names else tuple(tables)


def schema_of(name: str) -> pa.Schema:
    """Return the schema of the rows of any file that tasks write."""
    if name == EXCERPTS:
        return _EXCERPTS_SCHEMA
    if name.startswith(_UNNAMED):
        schema = arrow_schema(name.removeprefix(_UNNAMED))
        return schema.append(pa.field("wanted_ns", pa.int64())).append(
            pa.field("wanted_id", pa.string())
        )
    return arrow_schema(name)


class DeferredRows:
    """The ``wiredump.tables.table_rows.Deferral`` of one group of connections, or of all: ``rows``
    sorts the rows of an item, and adds the exchanges to keep. ``part`` is 0 for captures; every
    other source starts again in time behind them. ``known`` has topic names that were learnt
    before."""

    def __init__(self, tables: Iterable[str], part: int = 0, known: NameOf | None = None) -> None:
        self._part = part
        self._known = known
        tables = frozenset(tables)
        self._followed = frozenset(FOLLOWED) & tables
        self._excerpts: list[Row] = []
        # When each was asked for last: by the row that comes next.
        self._wanted: dict[str, int] = {}

    def keep(self, excerpt: Excerpt) -> None:
        table = TABLE_OF.get(excerpt.api_key)
        if table in self._followed:
            encoded = msgspec.msgpack.encode(excerpt)
            self._excerpts.append(
                (EXCERPTS, (table, key_of(excerpt), self._part, *excerpt.order, encoded))
            )

    def name(self, topic_id: str, at_ns: int) -> str | None:
        known = self._known(topic_id, at_ns) if self._known is not None else None
        if known is None:
            self._wanted[topic_id] = at_ns
        return known

    def rows(self, rows: Iterable[Rows]) -> Iterator[Rows]:
        """Yield all rows of an item, one by one: those without a topic name under another kind, and
        the exchanges to keep."""
        pending = self._wanted
        pending.clear()
        for each in rows:
            if not pending or isinstance(each[1], Piece):  # pieces are renamed whole: ``nameless``
                yield each
                continue
            name, row = each
            wanted = self._wanted_by(name, row)
            if wanted is None:
                yield each
            else:
                yield unnamed(name), (*row, pending[wanted], wanted)
        yield from self._excerpts
        self._excerpts = []

    def _wanted_by(self, name: str, row: tuple[Any, ...]) -> str | None:
        """Return the topic id whose name a row lacks; None if it lacks none."""
        if name in _PLACES:
            topic, topic_id = _PLACES[name]
            return row[topic_id] if row[topic] is None and row[topic_id] in self._wanted else None
        if name == "anomalies" and row[_KIND] == "undecodable-batch":
            # Its reason begins with the topic, or what stands for it, and the partition.
            name = row[_REASON].partition(": ")[0].rpartition("-")[0]
            return name if name in self._wanted else None
        return None


def nameless(piece: Piece) -> Piece | None:
    """Return a piece as one of the unnamed table; None if its rows need no name."""
    topic, topic_id = (piece.shared.get(name, [None])[0] for name in ("topic", "topic_id"))
    if topic is not None or topic_id is None:
        return None
    shared = {**piece.shared, "wanted_id": piece.shared["topic_id"]}
    return Piece(counts=piece.counts, shared=shared, own=piece.own)


def decode_excerpt(packed: bytes) -> Excerpt:
    """Decode a row of ``excerpts``."""
    return msgspec.msgpack.decode(packed, type=Excerpt)
