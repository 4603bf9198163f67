"""The routes of the journal: entries with decoded bodies, one frame field by field, and a stream of
entries."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterable
from functools import partial
from itertools import islice
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
from kproto.journal import Entry, Journal, body_value, select
from mockbroker.control.errors import RefusedError
from mockbroker.control.event_streams import STREAM, Batch, ServerSentEvent, stream_events
from mockbroker.control.routes import (
    PLAIN,
    TEXT,
    WAIT_TIMEOUT,
    WHOLE,
    ControlRequest,
    Member,
    Route,
    choice,
    positive_integer,
    query_integer,
    send_json_array,
    wait_timeout_ms,
)
from mockbroker.control.schemas import array_of, ref
from mockbroker.control.state_routes import last_event_id
from mockbroker.running.journal_lines import journal_lines
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.running.recorded_requests import api_keys
from mockbroker.serving.loop_turns import TaskTurn
from mockbroker.simulation.state.option_types import text_of

__all__ = ["JOURNAL_ROUTES"]

_MOST: Final = 10_000
_MOST_AT_ONCE: Final = 100
_MOST_BYTES_AT_ONCE: Final = 1024 * 1024
"""The most frame bytes decoded for one write to a stream."""
_DROPPED: Final = "Journal-Dropped"
_MOST_ANNOTATED: Final = 16 * 1024
"""The most bytes of a frame that are annotated: the annotating codec is slow."""

# ---- entries -------------------------------------------------------------------------------------


def _codec(mock: MockCluster, entry: Entry) -> Dialect | None:
    """The dialect of an entry: a listener with several dialects records each request's."""
    if not isinstance(mock.dialect, AutoDialect):
        return mock.dialect
    try:
        return dialect(entry.dialect)
    except KprotoError:
        return None


def _row(mock: MockCluster, entry: Entry, *, as_hex: bool = False) -> dict[str, Any]:
    """The entry as in the journal's file, with its decoded body."""
    row: dict[str, Any] = msgspec.to_builtins(entry)
    if as_hex and entry.raw:
        row["raw"] = entry.raw.hex()
    codec, key = _codec(mock, entry), entry.api_key
    if codec is not None and key is not None and key in codec.apis:
        row["api"] = codec.apis[key].request.MESSAGE_NAME.removesuffix("Request")
    decoded = entry.decode(codec)
    try:
        if decoded.body is not None and decoded.version is not None:
            row["body"] = body_value(decoded.body, decoded.version)
        elif decoded.error is not None:
            row["error"] = str(decoded.error)
    except KprotoError as error:  # decoded, but not representable as JSON
        row["error"] = str(error)
    return row


def _filters(request: ControlRequest) -> dict[str, Any]:
    names = {
        "api": "api", "broker": "broker_id", "connection": "connection_id",
        "client_id": "client_id", "client_software": "client_software", "direction": "direction",
        "event": "event", "listener": "listener",
    }  # fmt: skip
    api = request.query.get("api")
    if isinstance(api, str):
        api_keys(api, request.mock.dialect)
    return {names[name]: value for name, value in request.query.items() if name in names}


async def _entries(request: ControlRequest) -> web.StreamResponse:
    mock, filters = request.mock, _filters(request)
    as_hex = request.query.get("raw") == "hex"
    entries = mock.journal.newer(request.query.get("after", 0))
    dropped = str(mock.journal.dropped)
    turn, found = TaskTurn(), deque[Entry](maxlen=request.query.get("last"))
    limit = min(request.query.get("limit", _MOST), _MOST)
    for at in range(0, len(entries), _MOST_AT_ONCE):
        if found.maxlen is None and len(found) >= limit:
            break
        found.extend(select(entries[at : at + _MOST_AT_ONCE], **filters))
        await turn.pause()
    if PLAIN in request.http.headers.get("Accept", ""):
        return await _text(request, islice(found, limit), dropped)

    def encoded(entry: Entry) -> bytes:
        return json.dumps(_row(mock, entry, as_hex=as_hex)).encode()

    return await send_json_array(request.http, islice(found, limit), encoded, {_DROPPED: dropped})


async def _text(request: ControlRequest, entries: Iterable[Entry], dropped: str) -> web.Response:
    """The entries as lines, as far as the turn has time for them."""
    mock, turn, lines = request.mock, TaskTurn(), list[str]()
    listed = list(entries)
    since = listed[0].timestamp_ns if listed else 0
    for line in journal_lines(listed, partial(_codec, mock), since_ns=since):
        lines.append(line + "\n")
        await turn.pause()
    return web.Response(
        text="".join(lines) or "no traffic\n", content_type=PLAIN, headers={_DROPPED: dropped}
    )


async def _wait(request: ControlRequest) -> web.StreamResponse:
    """The feed wakes with each entry, and when the cluster is removed."""
    mock, filters = request.mock, {"direction": "request", **_filters(request)}
    as_hex, count = request.query.get("raw") == "hex", request.query.get("count", 1)
    timeout_ms, feed = wait_timeout_ms(request), request.cluster.feed
    found, seen, turn = list[Entry](), request.query.get("after", 0), TaskTurn()
    with feed.listening() as changed:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while True:
                    changed.clear()
                    for entry in mock.journal.newer(seen, _MOST_AT_ONCE):
                        seen = entry.sequence
                        found += select([entry], **filters)
                    if len(found) >= count:
                        break
                    if feed.closed:
                        raise RefusedError(404, "the cluster was removed while a request waited")
                    if seen == mock.journal.last_sequence:
                        await changed.wait()
                    await turn.pause()
        except TimeoutError:
            raise RefusedError(408, _too_few(request, len(found), count, timeout_ms)) from None

    def encoded(entry: Entry) -> bytes:
        return json.dumps(_row(mock, entry, as_hex=as_hex)).encode()

    return await send_json_array(request.http, found[:count], encoded)


def _too_few(request: ControlRequest, found: int, count: int, timeout_ms: int) -> str:
    which = ", ".join(
        f"{name}={value}"
        for name, value in request.query.items()
        if name not in ("count", "raw", WAIT_TIMEOUT.name)
    )
    kind = request.query.get("direction", "request")
    return f"{found} of {count} {kind} entries ({which or 'any'}) within {timeout_ms} ms"


async def _stream(request: ControlRequest) -> web.StreamResponse:
    mock, journal, filters = request.mock, request.mock.journal, _filters(request)
    as_hex = request.query.get("raw") == "hex"
    latest = request.query.get("latest", journal.max_entries)

    def news(after: int, turn: TaskTurn) -> Batch:
        begin = max(after, journal.last_sequence - latest)
        found = _first(journal.newer(begin, _MOST_AT_ONCE))
        events: list[ServerSentEvent] = []
        if found and found[0].sequence > after + 1:
            events.append(ServerSentEvent("gap", None, {"after": after, "next": found[0].sequence}))
        for entry in found:
            after = entry.sequence
            if any(select([entry], **filters)):
                row = _row(mock, entry, as_hex=as_hex)
                events.append(ServerSentEvent("entry", after, row))
            if turn.over():
                break
        return Batch(events, after, after < journal.last_sequence)

    seen = last_event_id(request.http)
    after = request.query.get("after", 0) if seen is None else seen
    if after > journal.last_sequence:
        raise RefusedError(400, f"the journal ends at {journal.last_sequence}, before {after}")
    return await stream_events(request.http, request.cluster.feed, news, after)


def _first(entries: list[Entry]) -> list[Entry]:
    """The entries of one write to a stream; at least one."""
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
            f"the journal has no entry {sequence}; its last entry is {journal.last_sequence}, "
            f"and it has dropped {journal.dropped}",
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


async def _frame(request: ControlRequest) -> dict[str, Any]:
    mock = request.mock
    entry = _found(mock.journal, query_integer("sequence", request.path["sequence"]))
    fields = _fields(mock, entry)
    answer: dict[str, Any] = {
        "entry": _row(mock, entry),
        "hex": entry.raw.hex(),
        "fields": [{**row._asdict(), "value": plain_value(row.value)} for row in fields.rows],
        "end": fields.end,
    }
    if len(entry.raw) > _MOST_ANNOTATED:
        answer["problem"] = (
            f"only the first {_MOST_ANNOTATED} of {len(entry.raw)} bytes are annotated"
        )
    elif fields.error is not None:
        answer["problem"] = str(fields.error)
    return answer


# ---- routes --------------------------------------------------------------------------------------


def _api(_name: str, text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


_DIRECTION = choice("request", "response", "event")
_RAW = choice("base64", "hex")

_WHICH: Final = (
    Member("api", TEXT, _api, "An API key, or a name such as Metadata."),
    Member("broker", WHOLE, query_integer, "The broker's id."),
    Member("connection", WHOLE, query_integer, "The connection's number, as in the entries."),
    Member("client_id", TEXT, text_of, "The client id of the request."),
    Member("client_software", TEXT, text_of, "Such as kafka-python, with or without a version."),
    Member("direction", *_DIRECTION, "What the entries are."),
    Member("listener", TEXT, text_of, "The name of a broker's listener, such as EXTERNAL."),
    Member("event", TEXT, text_of, "The event of an entry, such as unsupported."),
    Member(
        "after",
        {**WHOLE, "default": 0},
        query_integer,
        "The sequence number before the first entry.",
    ),
    Member("raw", {**_RAW[0], "default": "base64"}, _RAW[1], "The encoding of frames."),
)

JOURNAL_ROUTES: Final = (
    Route(
        "GET",
        "/journal",
        "listEntries",
        "The recorded traffic, with decoded bodies.",
        _entries,
        array_of(ref("JournalEntry")),
        query=(
            *_WHICH,
            Member(
                "limit",
                {**WHOLE, "default": _MOST},
                query_integer,
                "The number of entries to return.",
            ),
            Member("last", WHOLE, query_integer, "The number of newest entries to return."),
        ),
        also={PLAIN: TEXT},
        details="As text/plain, if the request accepts that: one line a frame, for the output of a "
        "failed test. Connections, ApiVersions and Metadata are counted there.",
    ),
    Route(
        "GET",
        "/journal/wait",
        "waitForRequest",
        "Wait until this many entries were recorded, past ones included, and return them.",
        _wait,
        array_of(ref("JournalEntry")),
        query=(
            *_WHICH,
            Member(
                "count",
                {**WHOLE, "minimum": 1, "default": 1},
                positive_integer,
                "The number of entries.",
            ),
            WAIT_TIMEOUT,
        ),
        refusals={408: "The time-out has passed.", 503: "Too many streams are open."},
        details="The entries are requests, unless `direction` says otherwise.",
    ),
    Route(
        "GET",
        "/journal/stream",
        "streamEntries",
        "The traffic as a stream of events `entry`, whose id is the sequence number. `gap` means "
        "that entries were dropped or skipped before they were sent, `end` that the cluster has "
        "stopped.",
        _stream,
        TEXT,
        query=(
            *_WHICH,
            Member(
                "latest",
                {**WHOLE, "minimum": 1},
                positive_integer,
                "Skip older entries, with a `gap`, when more than this many are pending.",
            ),
        ),
        media=STREAM,
        refusals={503: "Too many streams are open."},
    ),
    Route(
        "GET",
        "/journal/{sequence}",
        "getFrame",
        "One frame, with the bytes of each field.",
        _frame,
        ref("Frame"),
        refusals={404: "The journal has no such entry."},
    ),
)
