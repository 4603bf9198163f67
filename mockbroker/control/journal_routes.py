"""The journal over HTTP: entries with their bodies decoded, one frame field by field, and a stream
of what is being said."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from aiohttp import web

from kproto.annotate import (
    PartialFields,
    plain_value,
    request_fields_partly,
    response_fields_partly,
)
from kproto.dialects import AutoDialect, Dialect, dialect
from kproto.errors import KprotoError
from kproto.journal import Entry, Journal, select
from mockbroker.commands import text_of
from mockbroker.control.feed import Batch, Said, tell
from mockbroker.control.reading import resumed_after
from mockbroker.control.routes import (
    STREAM,
    TEXT,
    WHOLE,
    Asked,
    Member,
    RefusedError,
    Route,
    choice,
    query_integer,
)
from mockbroker.control.schemas import array_of, ref
from mockbroker.mock_cluster import MockCluster

__all__ = ["JOURNAL"]

_MOST: Final = 10_000
_MOST_AT_ONCE: Final = 100
_MOST_BYTES_AT_ONCE: Final = 1024 * 1024
"""Of frames, decoded and written to a stream before its reader has to have taken them."""
_DROPPED: Final = "Journal-Dropped"
_MOST_ANNOTATED: Final = 16 * 1024
"""Bytes of a frame that are told field by field: the codec that can do so is slow."""

# ---- entries -------------------------------------------------------------------------------------


def _codec(mock: MockCluster, entry: Entry) -> Dialect | None:
    """A listener that takes several dialects notes each request's own."""
    if not isinstance(mock.dialect, AutoDialect):
        return mock.dialect
    try:
        return dialect(entry.dialect)
    except KprotoError:
        return None


def _row(mock: MockCluster, entry: Entry, *, as_hex: bool = False) -> dict[str, Any]:
    """The entry as the journal's file has it, and what its bytes say."""
    row: dict[str, Any] = msgspec.to_builtins(entry)
    if as_hex and entry.raw:
        row["raw"] = entry.raw.hex()
    codec, key = _codec(mock, entry), entry.api_key
    if codec is not None and key is not None and key in codec.apis:
        row["api"] = codec.apis[key].request.MESSAGE_NAME.removesuffix("Request")
    decoded = entry.decode(codec)
    try:
        if decoded.body is not None and decoded.version is not None:
            row["body"] = decoded.body.to_json_value(decoded.version)
        elif decoded.error is not None:
            row["error"] = str(decoded.error)
    except KprotoError as error:  # read, and JSON has no word for it
        row["error"] = str(error)
    return row


def _filters(asked: Asked) -> dict[str, Any]:
    names = {
        "api": "api", "broker": "broker_id", "connection": "connection_id",
        "client_id": "client_id", "client_software": "client_software", "direction": "direction",
        "event": "event",
    }  # fmt: skip
    return {names[name]: value for name, value in asked.query.items() if name in names}


async def _entries(asked: Asked) -> web.StreamResponse:
    entries = asked.mock.journal.select(after=asked.query.get("after", 0), **_filters(asked))
    if "last" in asked.query:
        entries = entries[max(len(entries) - asked.query["last"], 0) :]
    entries = entries[: min(asked.query.get("limit", _MOST), _MOST)]
    as_hex = asked.query.get("raw") == "hex"
    rows: list[dict[str, Any]] = []
    for entry in entries:
        if len(rows) % _MOST_AT_ONCE == 0:
            await asyncio.sleep(0)  # brokers go on answering meanwhile
        rows.append(_row(asked.mock, entry, as_hex=as_hex))
    dropped = str(asked.mock.journal.dropped)
    return web.json_response(rows, headers={_DROPPED: dropped})


async def _stream(asked: Asked) -> web.StreamResponse:
    mock, journal, filters = asked.mock, asked.mock.journal, _filters(asked)
    as_hex = asked.query.get("raw") == "hex"

    def news(after: int) -> Batch:
        found = journal.newer(after)
        said = []
        if found and found[0].sequence > after + 1:
            said.append(Said("gap", None, {"after": after, "next": found[0].sequence}))
        some = _first(found)
        for entry in select(some, **filters):
            said.append(Said("entry", entry.sequence, _row(mock, entry, as_hex=as_hex)))
        return Batch(said, some[-1].sequence if some else after, len(found) > len(some))

    seen = resumed_after(asked.request)
    after = asked.query.get("after", 0) if seen is None else seen
    if after > journal.last_sequence:
        raise RefusedError(400, f"the journal is at {journal.last_sequence}, before {after}")
    return await tell(asked.request, asked.cluster.feed, news, after)


def _first(entries: list[Entry]) -> list[Entry]:
    """As many as are told at once; one at least."""
    size = 0
    for count, entry in enumerate(entries[:_MOST_AT_ONCE]):
        size += len(entry.raw)
        if count and size > _MOST_BYTES_AT_ONCE:
            return entries[:count]
    return entries[:_MOST_AT_ONCE]


# ---- one frame -----------------------------------------------------------------------------------


def _found(journal: Journal, sequence: int) -> Entry:
    entry = next(iter(journal.newer(sequence - 1)), None)
    if entry is None or entry.sequence != sequence:
        raise RefusedError(
            404,
            f"the journal has no entry {sequence}; it is at {journal.last_sequence}, "
            f"and has dropped {journal.dropped}",
        )
    return entry


def _fields(mock: MockCluster, entry: Entry) -> PartialFields:
    codec = _codec(mock, entry)
    raw = entry.raw[:_MOST_ANNOTATED]
    if codec is None or entry.api_key is None or entry.api_version is None or not raw:
        return PartialFields([], 0, None)
    if entry.direction == "response":
        return response_fields_partly(
            codec, raw, api_key=entry.api_key, api_version=entry.api_version
        )
    return request_fields_partly(codec, raw)


async def _frame(asked: Asked) -> dict[str, Any]:
    mock = asked.mock
    entry = _found(mock.journal, query_integer("sequence", asked.path["sequence"]))
    fields = _fields(mock, entry)
    answer: dict[str, Any] = {
        "entry": _row(mock, entry),
        "hex": entry.raw.hex(),
        "fields": [{**row._asdict(), "value": plain_value(row.value)} for row in fields.rows],
        "end": fields.end,
    }
    if len(entry.raw) > _MOST_ANNOTATED:
        answer["problem"] = f"of {len(entry.raw)} bytes the first {_MOST_ANNOTATED} are annotated"
    elif fields.error is not None:
        answer["problem"] = str(fields.error)
    return answer


# ---- routes --------------------------------------------------------------------------------------


def _api(_name: str, text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


_DIRECTION = choice("request", "response", "event")
_RAW = choice("base64", "hex")

_WHICH: Final = (
    Member("api", TEXT, _api, "A key, or a name such as Metadata."),
    Member("broker", WHOLE, query_integer, "The broker's id."),
    Member("connection", WHOLE, query_integer, "The connection's number, as entries have it."),
    Member("client_id", TEXT, text_of),
    Member("client_software", TEXT, text_of, "A name, as in kafka-python, or that and a version."),
    Member("direction", *_DIRECTION),
    Member("event", TEXT, text_of, "What the entry is marked as, as in unsupported."),
    Member("after", {**WHOLE, "default": 0}, query_integer, "Leave out sequences up to this one."),
    Member("raw", {**_RAW[0], "default": "base64"}, _RAW[1], "How frames are written."),
)

JOURNAL: Final = (
    Route(
        "GET",
        "/journal",
        "What was said on the wire, with bodies decoded.",
        _entries,
        array_of(ref("JournalEntry")),
        query=(
            *_WHICH,
            Member("limit", {**WHOLE, "default": _MOST}, query_integer, "The first so many."),
            Member("last", WHOLE, query_integer, "The newest so many."),
        ),
    ),
    Route(
        "GET",
        "/journal/stream",
        "The same, and what is to come: events `entry`, whose id is the sequence. `gap` tells "
        "that the journal has dropped entries that nobody read, `end` that the cluster is gone.",
        _stream,
        TEXT,
        query=_WHICH,
        media=STREAM,
        refusals={503: "Too many listen."},
    ),
    Route(
        "GET",
        "/journal/{sequence}",
        "One frame, and which of its bytes are which field.",
        _frame,
        ref("Frame"),
        refusals={404: "The journal has no such entry."},
    ),
)
