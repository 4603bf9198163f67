"""What a route of the control port is: its path, its input, its output and its handler.

The server and the OpenAPI document use the same description, so that they cannot diverge.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec
from aiohttp import web

from mockbroker.control import connection_limits
from mockbroker.control.errors import RefusedError
from mockbroker.control.hosting import ClusterHost, HostedCluster
from mockbroker.errors import ClusterError
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.serving.loop_turns import TaskTurn
from mockbroker.simulation.operations import DEFAULT_BODY_BYTES, MILLISECONDS
from mockbroker.simulation.state import option_types
from mockbroker.simulation.state.actions import Action

__all__ = [
    "BOOLEAN",
    "DURATION",
    "JSON",
    "PLAIN",
    "TEXT",
    "WAITS",
    "WAIT_TIMEOUT",
    "WHOLE",
    "ControlRequest",
    "Member",
    "Route",
    "Schema",
    "actions_response",
    "choice",
    "positive_integer",
    "query_boolean",
    "query_integer",
    "read_body",
    "read_query",
    "send_json_array",
    "wait_for_zookeeper",
    "wait_timeout_ms",
]

_WRITTEN_AT_ONCE: Final = 64 * 1024
"""Bytes of a long answer."""

T = TypeVar("T")
ValueT = TypeVar("ValueT")

OPERATION_SECONDS: Final = 10.0
"""The longest wait for an operation that needs ZooKeeper; it continues after that."""
WAITS: Final[Mapping[int, str]] = {
    503: "ZooKeeper does not answer in time; the operation continues in the background."
}

Schema: TypeAlias = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
BOOLEAN: Final[Schema] = {"type": "boolean"}
WHOLE: Final[Schema] = {"type": "integer", "minimum": 0}

JSON: Final = "application/json"
PLAIN: Final = "text/plain"


class Member(msgspec.Struct, frozen=True):
    """A member of a JSON body, or a query parameter. ``read`` converts a value (text in a query),
    given the member's name; it raises ClusterError."""

    name: str
    schema: Schema
    read: Callable[[str, Any], Any]
    text: str = ""
    required: bool = True


class ControlRequest(msgspec.Struct, frozen=True):
    """A request after its query and body have been read as its route describes them."""

    hosting: ClusterHost
    hosted: HostedCluster | None
    http: web.Request
    path: Mapping[str, str]
    query: Mapping[str, Any]
    body: Any
    wants_token: bool = False

    @property
    def cluster(self) -> HostedCluster:
        """The cluster of a route ``of_cluster``."""
        assert self.hosted is not None
        return self.hosted

    @property
    def mock(self) -> MockCluster:
        return self.cluster.mock


class Route(msgspec.Struct, frozen=True):
    """``answer`` returns the value that ``schema`` describes, or a complete response.

    ``body`` lists the members of a JSON object, of which no others are accepted, or is the schema
    of a document that ``answer`` reads. ``also`` are further media types of the answer. A route
    ``of_cluster`` is served at its path for the first cluster, and below ``/clusters/ID``.
    ``id`` names its operation in the OpenAPI document, ``body_name`` the schema of its body, if
    that has a name there, and ``details`` follows the summary. ``max_body`` is in bytes.
    ``open_to_all``: the control token is not required.
    """

    method: Literal["GET", "POST", "DELETE"]
    path: str
    id: str
    summary: str
    answer: Callable[[ControlRequest], Awaitable[Any]]
    schema: Schema
    query: tuple[Member, ...] = ()
    body: tuple[Member, ...] | Schema | None = None
    body_name: str = ""
    status: int = 200
    media: str = JSON
    also: Mapping[str, Schema] = msgspec.field(default_factory=dict)
    of_cluster: bool = True
    refusals: Mapping[int, str] = msgspec.field(default_factory=dict)
    max_body: int = DEFAULT_BODY_BYTES
    details: str = ""
    open_to_all: bool = False


# ---- values --------------------------------------------------------------------------------------


def query_integer(name: str, text: str) -> int:
    if re.fullmatch(r"[0-9]{1,18}", text) is None:
        raise ClusterError(f"{name}={text!r:.80} must be a non-negative integer")
    return int(text)


def query_boolean(name: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise ClusterError(f"{name}={text!r:.80} must be true or false")
    return text == "true"


def _query_milliseconds(name: str, text: str) -> int:
    """A query has only text, so that a number stands for the JSON number that a body would have."""
    return query_integer(name, text) if text.isdecimal() else MILLISECONDS.from_text(text)


DURATION: Final[Schema] = {"$ref": "#/components/schemas/Duration"}
WAIT_TIMEOUT: Final = Member(
    "timeout", DURATION, _query_milliseconds, "At most a minute. Default: 10s."
)
_USUAL_WAIT_MS: Final = 10_000
_LONGEST_WAIT_MS: Final = 60_000


def wait_timeout_ms(request: ControlRequest) -> int:
    """The value of ``WAIT_TIMEOUT`` in a request, in milliseconds."""
    given: int = request.query.get(WAIT_TIMEOUT.name, _USUAL_WAIT_MS)
    return min(given, _LONGEST_WAIT_MS)


def positive_integer(name: str, text: str) -> int:
    number = query_integer(name, text)
    if number == 0:
        raise ClusterError(f"{name} must be at least 1")
    return number


def choice(*values: str) -> tuple[Schema, Callable[[str, Any], str]]:
    """The schema and the reader of a value that is one of these texts."""

    kind = option_types.choice(*values)
    return dict(kind.schema), kind.from_json


def actions_response(actions: Iterable[Action], form: bytes = b"%s") -> web.Response:
    """A list of actions, put into ``form``."""
    listed = b"[" + b", ".join(action.to_json() for action in actions) + b"]"
    return web.Response(body=form % listed, content_type=JSON, charset="utf-8")


async def send_json_array(
    request: web.Request,
    values: Iterable[ValueT],
    encode: Callable[[ValueT], bytes],
    headers: Mapping[str, str] | None = None,
) -> web.StreamResponse:
    """Answer with a JSON array of these values, which is encoded and written in turns."""
    turn, parts = TaskTurn(), [b"["]
    for value in values:
        parts += (encode(value), b", ")
        await turn.pause()
    parts[max(len(parts) - 1, 1) :] = [b"]"]
    response = web.StreamResponse(headers=headers)
    response.content_type, response.charset = JSON, "utf-8"
    response.content_length = sum(map(len, parts))
    try:
        await response.prepare(request)
        await _write_in_turns(response, parts)
        await response.write_eof()
    except (ConnectionError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
    return response


async def _write_in_turns(response: web.StreamResponse, parts: Iterable[bytes]) -> None:
    """Raises TimeoutError if the client takes nothing for as long as it may be quiet."""
    turn = TaskTurn()
    some: list[bytes] = []
    size = 0
    for part in (*parts, b""):
        some.append(part)
        size += len(part)
        if size >= _WRITTEN_AT_ONCE or not part:
            async with asyncio.timeout(connection_limits.QUIET_SECONDS):
                await response.write(b"".join(some))
            some, size = [], 0
            await turn.pause()


# ---- requests ------------------------------------------------------------------------------------


def read_query(route: Route, request: web.Request) -> dict[str, Any]:
    """The given parameters by name. Raises ClusterError for a parameter that the route lacks."""
    known = {each.name: each for each in route.query}
    found: dict[str, Any] = {}
    for name, text in request.query.items():
        if name not in known:
            accepted = f"it accepts {', '.join(known)}" if known else "it accepts none"
            raise ClusterError(f"{request.path} has no parameter {name!r:.80}; {accepted}")
        if name in found:
            raise ClusterError(f"parameter {name!r} is given twice")
        found[name] = known[name].read(name, text)
    return found


async def wait_for_zookeeper(done: Awaitable[T]) -> T:
    """The result of an operation. Raises RefusedError (503) if ZooKeeper takes too long; then the
    operation continues."""
    try:
        async with asyncio.timeout(OPERATION_SECONDS):
            return await done
    except TimeoutError:
        raise RefusedError(
            503,
            f"ZooKeeper has not answered within {OPERATION_SECONDS:g} s; the operation continues",
        ) from None


async def read_body(route: Route, request: web.Request) -> Any:
    """The JSON body. Its content type is required: a page of another site cannot send it, and so
    cannot control the cluster of the person who opens the page."""
    if route.body is None:
        return None
    if request.content_type != JSON:
        raise ClusterError("the body must be JSON, with Content-Type: application/json")
    try:
        async with asyncio.timeout(connection_limits.BODY_SECONDS):
            sent = await _read(request, route.max_body)
    except TimeoutError:
        raise RefusedError(
            408, f"the body did not arrive within {connection_limits.BODY_SECONDS:g} s"
        ) from None
    try:
        body = json.loads(sent)
    except (ValueError, RecursionError) as error:
        raise ClusterError(f"the body is not JSON: {error}") from None
    if not isinstance(route.body, tuple):
        return body
    if not isinstance(body, dict):
        raise ClusterError("the body must be a JSON object")
    return _members(route.body, body)


async def _read(request: web.Request, most: int) -> bytes:
    """The whole body. aiohttp's own limit is the largest of all routes."""
    size = request.content_length or 0
    if size <= most:
        sent = await request.read()
        size = len(sent)
        if size <= most:
            return sent
    raise web.HTTPRequestEntityTooLarge(max_size=most, actual_size=size)


def _members(members: tuple[Member, ...], body: dict[str, Any]) -> dict[str, Any]:
    known = {each.name: each for each in members}
    missing = [each.name for each in members if each.required and each.name not in body]
    unknown = [name for name in body if name not in known]
    if missing or unknown:
        names = ", ".join(f'"{name}"' for name in known) or "no members"
        unwanted = "".join(f"has an unknown member {name!r:.80}" for name in unknown[:1])
        problem = f"lacks {missing[0]!r}" if missing else unwanted
        raise ClusterError(f"the body {problem}; it accepts {names}")
    return {name: known[name].read(name, value) for name, value in body.items()}
