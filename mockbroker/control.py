"""The HTTP control port: the steps of ``MockCluster`` from another process or language.

``GET /state /log /journal`` read; ``POST /join-isr`` and the like take a JSON object and answer
with the actions that followed. Every error is ``{"error": one line}``. No client of Kafka's talks
to this port, and nothing about Kafka's wire is known here.
"""

from __future__ import annotations

import hmac
import json
import re
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec
from aiohttp import web

from kproto.dialects import AutoDialect
from kproto.errors import KprotoError
from kproto.journal import Entry
from mockbroker.control_faults import FaultRoutes
from mockbroker.endpoints import dialable, is_loopback, show
from mockbroker.errors import ClusterError
from mockbroker.faults import Fault
from mockbroker.mock_cluster import MockCluster
from mockbroker.topic_spec import parse_milliseconds, parse_topic_partition

__all__ = ["COMMANDS", "ControlServer"]

_MAX_BODY: Final = 64 * 1024
_MAX_JOURNAL: Final = 10_000
_MAX_INTEGER: Final = 10**12 - 1
"""No id is larger, and no test moves the clock by more milliseconds at once."""

Step: TypeAlias = Callable[[MockCluster, Mapping[str, Any]], Awaitable[None]]


# ---- the steps: what each takes from its JSON object -------------------------------------------


def _broker(body: Mapping[str, Any]) -> int:
    return _integer(body, "broker")


def _integer(body: Mapping[str, Any], name: str) -> int:
    value = body[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise ClusterError(f'"{name}" must be a whole number, not {value!r:.80}')
    if abs(value) > _MAX_INTEGER:
        raise ClusterError(f'"{name}" is too large: {_MAX_INTEGER} at most')
    return value


def _partition(body: Mapping[str, Any]) -> tuple[str, int]:
    value = body["partition"]
    if not isinstance(value, str):
        raise ClusterError(f'"partition" must be text such as "foo-0", not {value!r:.80}')
    return parse_topic_partition(value)


async def _join_isr(mock: MockCluster, body: Mapping[str, Any]) -> None:
    mock.join_isr(_partition(body), _broker(body))


async def _leave_isr(mock: MockCluster, body: Mapping[str, Any]) -> None:
    mock.leave_isr(_partition(body), _broker(body))


async def _failover(mock: MockCluster, body: Mapping[str, Any]) -> None:
    mock.failover(_broker(body))


async def _stop_broker(mock: MockCluster, body: Mapping[str, Any]) -> None:
    await mock.stop_broker(_broker(body))


async def _start_broker(mock: MockCluster, body: Mapping[str, Any]) -> None:
    await mock.start_broker(_broker(body))


async def _hold_metadata(mock: MockCluster, body: Mapping[str, Any]) -> None:
    mock.hold_metadata(_broker(body))


async def _release_metadata(mock: MockCluster, body: Mapping[str, Any]) -> None:
    mock.release_metadata(_broker(body))


async def _advance(mock: MockCluster, body: Mapping[str, Any]) -> None:
    mock.advance(_milliseconds(body))


def _milliseconds(body: Mapping[str, Any]) -> int:
    """As text with a unit, or a number of them."""
    value = body["duration"]
    return parse_milliseconds(value) if isinstance(value, str) else _integer(body, "duration")


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body[name]
    if not isinstance(value, str):
        raise ClusterError(f'"{name}" must be text, not {value!r:.80}')
    return value


async def _write_znode(mock: MockCluster, body: Mapping[str, Any]) -> None:
    mock.write_znode(_text(body, "path"), None if body["text"] is None else _text(body, "text"))


async def _append_znode(mock: MockCluster, body: Mapping[str, Any]) -> None:
    mock.append_znode(_text(body, "path"), _text(body, "text"))


async def _kill_controller_after(mock: MockCluster, body: Mapping[str, Any]) -> None:
    mock.kill_controller_after(_integer(body, "changes"))


async def _propagation(mock: MockCluster, body: Mapping[str, Any]) -> None:
    mock.set_propagation(_milliseconds(body))


async def _hold_elections(mock: MockCluster, body: Mapping[str, Any]) -> None:
    mock.hold_elections()


async def _release_elections(mock: MockCluster, body: Mapping[str, Any]) -> None:
    mock.release_elections()


async def _set_level(mock: MockCluster, body: Mapping[str, Any]) -> None:
    level = body["level"]
    if not isinstance(level, str):
        raise ClusterError(f'"level" must be text such as "4=0-2", not {level!r:.80}')
    await mock.set_level(_broker(body), level)


COMMANDS: Final[dict[str, tuple[Step, tuple[str, ...]]]] = {
    "join-isr": (_join_isr, ("partition", "broker")),
    "leave-isr": (_leave_isr, ("partition", "broker")),
    "failover": (_failover, ("broker",)),
    "stop-broker": (_stop_broker, ("broker",)),
    "start-broker": (_start_broker, ("broker",)),
    "set-level": (_set_level, ("broker", "level")),
    "hold-metadata": (_hold_metadata, ("broker",)),
    "release-metadata": (_release_metadata, ("broker",)),
    "advance": (_advance, ("duration",)),
    "propagation": (_propagation, ("duration",)),
    "hold-elections": (_hold_elections, ()),
    "release-elections": (_release_elections, ()),
    "write-znode": (_write_znode, ("path", "text")),
    "append-znode": (_append_znode, ("path", "text")),
    "kill-controller-after": (_kill_controller_after, ("changes",)),
}
"""Command -> what it does, and the members its JSON object must have: no more and no fewer."""


# ---- the server ----------------------------------------------------------------------------------


class ControlServer:
    """``start`` raises ClusterError for an address that others can reach without a ``token``,
    OSError for one that cannot be had."""

    def __init__(
        self, mock: MockCluster, *, host: str = "127.0.0.1", port: int = 0, token: str | None = None
    ) -> None:
        self._mock = mock
        self._host = host
        self._port = port
        self._token = token
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://{show(dialable(self._host), self._port)}"

    async def start(self) -> None:
        if self._token is None and not is_loopback(self._host):
            raise ClusterError(
                f"a control port on {self._host} is open to other machines: give a control token"
            )
        app = web.Application(client_max_size=_MAX_BODY, middlewares=[self._guard])
        app.router.add_get("/", self._index)
        app.router.add_get("/state", self._state)
        app.router.add_get("/log", self._log)
        app.router.add_get("/journal", self._journal)
        app.router.add_get("/znode", self._znode)
        FaultRoutes(self._mock).add_to(app.router)
        app.router.add_post("/{command}", self._step)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port)
        try:
            await site.start()
        except OSError as error:
            await self.stop()
            if isinstance(error, socket.gaierror):
                raise OSError(f"cannot listen on {self._host!r}: {error.strerror}") from None
            raise
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    @web.middleware
    async def _guard(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        """Who may ask, and one form for every error."""
        if not self._may(request):
            return _error(401, "this control port wants its token: Authorization: Bearer TOKEN")
        try:
            return await handler(request)
        except web.HTTPException as error:
            return _error(error.status, f"{request.method} {request.path}: {error.reason}")
        except (KprotoError, OSError) as error:
            return _error(400, str(error))

    def _may(self, request: web.Request) -> bool:
        if self._token is None:
            return True
        given = request.headers.get("Authorization", "")
        return hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode())

    # ---- reading -----------------------------------------------------------------------------

    async def _index(self, _request: web.Request) -> web.Response:
        return web.json_response(
            {
                "get": ["/state", "/log", "/journal", "/znode", "/faults", "/faults/NAME/wait"],
                "post": {
                    **{f"/{name}": list(fields) for name, (_, fields) in COMMANDS.items()},
                    "/faults": list(Fault.__struct_fields__),
                },
                "delete": ["/faults", "/faults/NAME"],
            }
        )

    async def _state(self, _request: web.Request) -> web.Response:
        self._mock.follow_clock()
        return web.json_response(self._mock.cluster.state())

    async def _log(self, request: web.Request) -> web.Response:
        since = _query_integer(request, "since", 0)
        return web.json_response(
            [action.to_dict() for action in self._mock.cluster.log.since(since)]
        )

    async def _journal(self, request: web.Request) -> web.Response:
        filters: dict[str, Any] = {
            name: request.query[name]
            for name in ("direction", "event", "client_id", "client_software")
            if name in request.query
        }
        api = request.query.get("api")
        if api is not None:
            filters["api"] = int(api) if _is_number(api) else api
        if "broker" in request.query:
            filters["broker_id"] = _query_integer(request, "broker", 0)
        filters["after"] = _query_integer(request, "after", 0)
        limit = min(_query_integer(request, "limit", _MAX_JOURNAL), _MAX_JOURNAL)
        entries = self._mock.journal.select(**filters)[:limit]
        return web.json_response([self._entry(entry) for entry in entries])

    async def _znode(self, request: web.Request) -> web.Response:
        """One znode with its stat, and the names below it; text and stat null where there is none.
        Kafka's are JSON, but any bytes may lie there: what is no UTF-8 is shown as U+FFFD."""
        path = request.query.get("path", "/")
        found = self._mock.read_znode(path)
        text, stat = (None, None) if found is None else (found[0], found[1]._asdict())
        if text is not None:
            text = text.encode(errors="surrogateescape").decode(errors="replace")
        children = self._mock.cluster.znode_children(path)
        return web.json_response({"path": path, "text": text, "stat": stat, "children": children})

    def _entry(self, entry: Entry) -> dict[str, Any]:
        """The entry as the journal's file has it, and its body decoded where it can be."""
        row: dict[str, Any] = msgspec.to_builtins(entry)
        # A listener that takes several dialects notes each request's own.
        several = isinstance(self._mock.dialect, AutoDialect)
        decoded = entry.decode(None if several else self._mock.dialect)
        if decoded.body is not None and decoded.version is not None:
            row["body"] = decoded.body.to_json_value(decoded.version)
        elif decoded.error is not None:
            row["error"] = str(decoded.error)
        return row

    # ---- steps -------------------------------------------------------------------------------

    async def _step(self, request: web.Request) -> web.Response:
        name = request.match_info["command"]
        if name not in COMMANDS:
            return _error(404, f"no command {name!r}; there are {', '.join(COMMANDS)}")
        step, fields = COMMANDS[name]
        body = await _json_object(request, fields)
        offset = len(self._mock.cluster.log)
        await step(self._mock, body)
        actions = [action.to_dict() for action in self._mock.cluster.log.since(offset)]
        return web.json_response({"actions": actions})


def _error(status: int, text: str) -> web.Response:
    return web.json_response({"error": text}, status=status)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,18}", text) is not None


def _query_integer(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name)
    if text is None:
        return default
    if not _is_number(text):
        raise ClusterError(f"{name}={text!r:.80} must be a whole number")
    return int(text)


async def _json_object(request: web.Request, fields: tuple[str, ...]) -> dict[str, Any]:
    """The body, with exactly these members. A page in a browser cannot send this content type to
    another site, so that no page can steer the cluster of whoever looks at it."""
    if request.content_type != "application/json":
        raise ClusterError("send JSON, with Content-Type: application/json")
    try:
        body = json.loads(await request.read())
    except (ValueError, RecursionError) as error:
        raise ClusterError(f"the body is no JSON: {error}") from None
    if not isinstance(body, dict):
        raise ClusterError("the body must be a JSON object")
    missing = [name for name in fields if name not in body]
    unknown = [name for name in body if name not in fields]
    if missing or unknown:
        wanted = ", ".join(f'"{name}"' for name in fields)
        problem = f"lacks {missing[0]!r}" if missing else f"has an unknown member {unknown[0]!r}"
        raise ClusterError(f"the body {problem}; it takes {wanted}")
    return body
