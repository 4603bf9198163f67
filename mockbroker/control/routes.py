"""What a route of the control port is: where, what it takes, what it answers, who answers.

The same description serves the route and documents it (``openapi``), so that the two cannot drift.
What any one route does is not known here.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from aiohttp import web

from mockbroker.commands import DEFAULT_BODY_BYTES
from mockbroker.control import connection_limits
from mockbroker.errors import ClusterError
from mockbroker.mock_cluster import MockCluster

if TYPE_CHECKING:
    from mockbroker.control.hosting import Hosted, Hosting

__all__ = [
    "BOOLEAN",
    "JSON",
    "STREAM",
    "TEXT",
    "WAITS",
    "WHOLE",
    "Asked",
    "Member",
    "RefusedError",
    "Route",
    "Schema",
    "choice",
    "query_integer",
    "read_body",
    "read_query",
    "within",
]

T = TypeVar("T")

STEP_SECONDS: Final = 10.0
"""After so long a step that waits for ZooKeeper is answered without its result."""
WAITS: Final[Mapping[int, str]] = {503: "ZooKeeper does not answer; the step goes on when it does."}

Schema: TypeAlias = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
BOOLEAN: Final[Schema] = {"type": "boolean"}
WHOLE: Final[Schema] = {"type": "integer", "minimum": 0}

JSON: Final = "application/json"
STREAM: Final = "text/event-stream"


class RefusedError(ClusterError):
    """A request that is answered with a status of its own."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Member:
    """One value of a body, a query or a path. ``read`` is given the name and the value and raises
    ClusterError; of a query and a path the value is text."""

    name: str
    schema: Schema
    read: Callable[[str, Any], Any]
    text: str = ""
    required: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as its route's description reads it. ``cluster`` is the one it is about."""

    hosting: Hosting
    cluster: Hosted
    request: web.Request
    path: Mapping[str, str]
    query: Mapping[str, Any]
    body: Any
    wants_token: bool = False

    @property
    def mock(self) -> MockCluster:
        return self.cluster.mock


@dataclass(frozen=True, slots=True)
class Route:
    """``answer`` returns what ``schema`` describes, or a whole response. ``body`` is the members
    of an object, no more and no fewer, or the schema of a document that ``answer`` reads.
    ``also``: other media it may answer with. A route ``of_cluster`` is served twice: as it is, for
    the first cluster, and below ``/clusters/ID``. ``max_body`` is in bytes. ``details`` adds to the
    summary in the OpenAPI document."""

    method: Literal["GET", "POST", "DELETE"]
    path: str
    summary: str
    answer: Callable[[Asked], Awaitable[Any]]
    schema: Schema
    query: tuple[Member, ...] = ()
    body: tuple[Member, ...] | Schema | None = None
    status: int = 200
    media: str = JSON
    also: Mapping[str, Schema] = field(default_factory=dict)
    of_cluster: bool = True
    refusals: Mapping[int, str] = field(default_factory=dict)
    max_body: int = DEFAULT_BODY_BYTES
    details: str = ""


# ---- values --------------------------------------------------------------------------------------


def query_integer(name: str, text: str) -> int:
    if re.fullmatch(r"[0-9]{1,18}", text) is None:
        raise ClusterError(f"{name}={text!r:.80} must be a whole number")
    return int(text)


def choice(*values: str) -> tuple[Schema, Callable[[str, Any], str]]:
    """Schema and reader of one of these texts."""

    def read(name: str, value: Any) -> str:
        if value not in values:
            raise ClusterError(f"{name} must be one of {', '.join(values)}, not {value!r:.80}")
        return str(value)

    return {"type": "string", "enum": list(values)}, read


# ---- requests ------------------------------------------------------------------------------------


def read_query(route: Route, request: web.Request) -> dict[str, Any]:
    """By name, those that were given. Raises ClusterError for one that the route does not take."""
    known = {each.name: each for each in route.query}
    found: dict[str, Any] = {}
    for name, text in request.query.items():
        if name not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise ClusterError(f"{request.path} knows no parameter {name!r:.80}; {takes}")
        if name in found:
            raise ClusterError(f"the parameter {name!r} is given twice")
        found[name] = known[name].read(name, text)
    return found


async def within(done: Awaitable[T]) -> T:
    """The result of a step, unless ZooKeeper keeps it waiting. It is not undone then."""
    try:
        async with asyncio.timeout(STEP_SECONDS):
            return await done
    except TimeoutError:
        raise RefusedError(
            503, f"ZooKeeper has not answered for {STEP_SECONDS:g} s; the step goes on when it does"
        ) from None


async def read_body(route: Route, request: web.Request) -> Any:
    """A page in a browser cannot send this content type to another site, so that no page can steer
    the cluster of whoever looks at it."""
    if route.body is None:
        return None
    if request.content_type != JSON:
        raise ClusterError("send JSON, with Content-Type: application/json")
    try:
        async with asyncio.timeout(connection_limits.BODY_SECONDS):
            sent = await _read(request, route.max_body)
    except TimeoutError:
        raise RefusedError(
            408, f"the body did not come in {connection_limits.BODY_SECONDS:g} s"
        ) from None
    try:
        body = json.loads(sent)
    except (ValueError, RecursionError) as error:
        raise ClusterError(f"the body is no JSON: {error}") from None
    if not isinstance(route.body, tuple):
        return body
    if not isinstance(body, dict):
        raise ClusterError("the body must be a JSON object")
    return _members(route.body, body)


async def _read(request: web.Request, most: int) -> bytes:
    """The whole body. aiohttp's own bound is that of the route that takes most."""
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
        wanted = ", ".join(f'"{name}"' for name in known) or "no member at all"
        unwanted = "".join(f"has an unknown member {name!r:.80}" for name in unknown[:1])
        problem = f"lacks {missing[0]!r}" if missing else unwanted
        raise ClusterError(f"the body {problem}; it takes {wanted}")
    return {name: known[name].read(name, value) for name, value in body.items()}
