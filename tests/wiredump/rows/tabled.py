"""Items to rows as dictionaries, by table; and exchanges made of bodies, to have some."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import kproto
from kproto.journal import ClientSoftware
from wiredump.model import Connection, Exchange, Frame, Item, Place
from wiredump.rows.pieces import Piece, Rows
from wiredump.rows.schema import TABLES
from wiredump.tables.table_rows import TableRows

KAFKA = kproto.dialect("kafka")
Tables = dict[str, list[dict[str, Any]]]

__all__ = ["KAFKA", "Tables", "connection", "connections_of", "exchange", "named", "tables_of"]


def named(rows: Iterable[Rows]) -> Tables:
    """Rows as dictionaries, in the order that names them."""
    tables: Tables = defaultdict(list)
    for name, row in rows:
        columns = [column.name for column in TABLES[name].columns]
        for each in row.rows(columns) if isinstance(row, Piece) else [row]:
            tables[name].append(dict(zip(columns, each, strict=True)))
    for name, found in tables.items():
        order = TABLES[name].order
        found.sort(
            key=lambda row: [
                (row[each] is None, 0 if row[each] is None else row[each]) for each in order
            ]
        )
    return tables


def tables_of(items: Iterable[Item], **options: Any) -> Tables:
    rows = TableRows(**options)
    items = list(items)
    found = [row for item in items for row in rows.add(item)]
    return named([*found, *rows.end(connections_of(items), [], {})])


def connections_of(items: Iterable[Item]) -> dict[int, Connection]:
    found = [item.connection for item in items if item.connection is not None]
    return {each.number: each for each in found}


def connection(number: int = 0, broker: str = "10.0.0.2:9092") -> Connection:
    return Connection(number, f"10.0.0.1:{50000 + number}", broker, 0, from_start=True)


def exchange(
    request: Any,
    response: Any,
    version: int,
    *,
    at: int,
    took: int = 1,
    on: Connection | None = None,
    codec: kproto.dialects.Dialect = KAFKA,
    client_id: str = "c",
) -> Exchange:
    """Asked at second ``at``, answered ``took`` seconds later; ``response`` None: not answered."""
    frames: list[Frame | None] = [None, None]
    raw = codec.encode_request(request, api_version=version, correlation_id=at, client_id=client_id)
    second = 10**9
    frames[0] = Frame(
        "request", at * 1000, len(raw), raw, 0, at * second, at * second, Place(0, at)
    )
    if response is not None:
        raw = codec.encode_response(response, api_version=version, correlation_id=at)
        then = (at + took) * second
        frames[1] = Frame("response", at * 1000, len(raw), raw, 0, then, then, Place(0, at))
    return Exchange(
        on or connection(),
        request=frames[0],
        response=frames[1],
        api_key=request.API_KEY,
        api_version=version,
        correlation_id=at,
        client_id=client_id,
        software=ClientSoftware("acc", "1.0"),
        dialect=codec.name,
        response_version=version if response is not None else None,
    )
