"""What can be read of a cluster: its state, its log, its znodes."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from mockbroker.commands import text_of
from mockbroker.control.feed import Batch, Said, tell
from mockbroker.control.routes import (
    STREAM,
    TEXT,
    WAITS,
    WHOLE,
    Asked,
    Member,
    RefusedError,
    Route,
    query_integer,
    within,
)
from mockbroker.control.schemas import array_of, ref

__all__ = ["LAST_EVENT_ID", "READING", "resumed_after"]

LAST_EVENT_ID: Final = "Last-Event-ID"
_MOST_AT_ONCE: Final = 500


def resumed_after(request: web.Request) -> int | None:
    """What a client that comes back to a stream says it has seen last."""
    given = request.headers.get(LAST_EVENT_ID)
    return None if given is None else query_integer(LAST_EVENT_ID, given)


async def _state(asked: Asked) -> dict[str, Any]:
    asked.mock.follow_clock()
    return asked.mock.cluster.state()


async def _log(asked: Asked) -> list[dict[str, Any]]:
    found = asked.mock.cluster.log.since(asked.query.get("since", 0))
    if "last" in asked.query:
        found = found[max(len(found) - asked.query["last"], 0) :]
    return [action.to_dict() for action in found]


async def _log_stream(asked: Asked) -> web.StreamResponse:
    log = asked.mock.cluster.log

    def news(since: int) -> Batch:
        found = log[since : since + _MOST_AT_ONCE]
        said = [Said("action", action.offset, action.to_dict()) for action in found]
        upto = found[-1].offset + 1 if found else since
        return Batch(said, upto, upto < len(log))

    seen = resumed_after(asked.request)
    since = asked.query.get("since", 0) if seen is None else seen + 1
    if since > len(log):
        raise RefusedError(400, f"the log has no offset {since} yet; {len(log)} comes next")
    return await tell(asked.request, asked.cluster.feed, news, since)


async def _znode(asked: Asked) -> dict[str, Any]:
    """Kafka's are JSON, but any bytes may lie there: what is no UTF-8 is shown as U+FFFD."""
    path = asked.query.get("path", "/")
    found = await within(asked.mock.take(asked.mock.read_znode, path))
    if found is None:
        raise RefusedError(404, f"no znode {path}")
    text = found[0].encode(errors="surrogateescape").decode(errors="replace")
    children = await within(asked.mock.take(asked.mock.cluster.znode_children, path))
    return {"path": path, "text": text, "stat": found[1]._asdict(), "children": children}


_SINCE: Final = Member(
    "since", {**WHOLE, "default": 0}, query_integer, "Leave out the actions before this offset."
)

READING: Final = (
    Route("GET", "/state", "Controller, brokers and partitions.", _state, ref("State")),
    Route(
        "GET",
        "/log",
        "Everything that happened to the cluster, in order.",
        _log,
        array_of(ref("Action")),
        query=(_SINCE, Member("last", WHOLE, query_integer, "The newest so many.")),
    ),
    Route(
        "GET",
        "/log/stream",
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
        "A znode with its stat, and the names below it.",
        _znode,
        ref("Znode"),
        query=(Member("path", {**TEXT, "default": "/"}, text_of),),
        refusals={**WAITS, 404: "There is no cluster of this id, or no znode at this path."},
    ),
)
