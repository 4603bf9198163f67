"""What can be read of a cluster: its state, its log, its znodes."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from mockbroker.control.errors import RefusedError
from mockbroker.control.event_streams import STREAM, Batch, ServerSentEvent, stream_events
from mockbroker.control.routes import (
    TEXT,
    WAITS,
    WHOLE,
    ControlRequest,
    Member,
    Route,
    query_integer,
    send_json_array,
    wait_for_zookeeper,
)
from mockbroker.control.schemas import array_of, ref
from mockbroker.serving.loop_turns import TaskTurn
from mockbroker.simulation.state.actions import Action
from mockbroker.simulation.state.option_types import text_of

__all__ = ["LAST_EVENT_ID", "STATE_ROUTES", "last_event_id"]

LAST_EVENT_ID: Final = "Last-Event-ID"
_MOST_AT_ONCE: Final = 500


def last_event_id(request: web.Request) -> int | None:
    """What a client that comes back to a stream says it has seen last."""
    given = request.headers.get(LAST_EVENT_ID)
    return None if given is None else query_integer(LAST_EVENT_ID, given)


async def _state(request: ControlRequest) -> dict[str, Any]:
    request.mock.follow_clock()
    return request.mock.cluster.describe()


async def _log(request: ControlRequest) -> web.StreamResponse:
    found = request.mock.cluster.log.since(request.query.get("since", 0))
    if "last" in request.query:
        found = found[max(len(found) - request.query["last"], 0) :]
    return await send_json_array(request.http, found, Action.to_json)


async def _log_stream(request: ControlRequest) -> web.StreamResponse:
    log = request.mock.cluster.log

    def news(since: int, turn: TaskTurn) -> Batch:
        events = []
        since = min(since, len(log))  # `reset` makes the log shorter
        for action in log[since : since + _MOST_AT_ONCE]:
            events.append(ServerSentEvent("action", action.offset, action.to_dict()))
            since = action.offset + 1
            if turn.over():
                break
        return Batch(events, since, since < len(log))

    seen = last_event_id(request.http)
    since = request.query.get("since", 0) if seen is None else seen + 1
    if since > len(log):
        raise RefusedError(400, f"the log has no offset {since} yet; {len(log)} comes next")
    return await stream_events(request.http, request.cluster.feed, news, since)


async def _znode(request: ControlRequest) -> dict[str, Any]:
    """Kafka's are JSON, but a znode may hold any bytes: U+FFFD replaces those outside UTF-8."""
    path = request.query.get("path", "/")
    found = await wait_for_zookeeper(request.mock.take(request.mock.read_znode, path))
    if found is None:
        raise RefusedError(404, f"no znode {path}")
    text = found[0].encode(errors="surrogateescape").decode(errors="replace")
    children = await wait_for_zookeeper(
        request.mock.take(request.mock.cluster.znodes.children, path)
    )
    return {"path": path, "text": text, "stat": found[1]._asdict(), "children": children}


_SINCE: Final = Member(
    "since", {**WHOLE, "default": 0}, query_integer, "Leave out the actions before this offset."
)

STATE_ROUTES: Final = (
    Route("GET", "/state", "getState", "Controller, brokers and partitions.", _state, ref("State")),
    Route(
        "GET",
        "/log",
        "listActions",
        "Everything that happened to the cluster, in order.",
        _log,
        array_of(ref("Action")),
        query=(_SINCE, Member("last", WHOLE, query_integer, "The newest so many.")),
    ),
    Route(
        "GET",
        "/log/stream",
        "streamActions",
        "The same, and what is to come: events `action`, whose id is the offset.",
        _log_stream,
        TEXT,
        query=(_SINCE,),
        media=STREAM,
        refusals={503: "Too many listen."},
    ),
    Route(
        "GET",
        "/znode",
        "getZnode",
        "A znode with its stat, and the names below it.",
        _znode,
        ref("Znode"),
        query=(Member("path", {**TEXT, "default": "/"}, text_of),),
        refusals={**WAITS, 404: "There is no cluster of this id, or no znode at this path."},
    ),
)
