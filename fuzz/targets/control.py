"""Any bodies, paths and queries sent to the control port, several to one process.

**Holds:** each request is answered as its route documents, or with a status from 400 to 499 and
``{"error": one line}``, but never with 500, which is our defect. The answer is JSON if the route's
media type says so. Afterwards the cluster still returns its state, log and journal, unless a
request has removed it.

**Accepted:** nothing. Requests whose path is not a URL are skipped, as an HTTP parser rejects them.

No socket is opened: brokers' listeners, ZooKeeper and the controller's own connections are removed.
Streams, ``wait`` and scenarios are left out, as they wait or open sockets.

The input: requests of a route (1 byte), two length bytes, and a body. For a route without a body,
the body is appended to the path, as a query or a longer path.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple
from unittest import mock

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from fuzz.mutations import Mutate, with_words
from mockbroker import ClusterOptions, MockCluster
from mockbroker.control import ROUTES, ControlServer
from mockbroker.control.event_streams import STREAM
from mockbroker.control.hosting import FIRST, ClusterHost
from mockbroker.control.options import CLUSTER_OPTIONS
from mockbroker.control.routes import JSON, Route
from mockbroker.errors import ClusterError
from mockbroker.serving.listeners import BrokerListener

__all__ = ["check", "mutate", "seeds"]

MOST_REQUESTS: Final = 8
_LEFT_OUT: Final = ("/scenarios", "/wait")
_ROUTES: Final = tuple(
    route
    for route in ROUTES
    if route.media != STREAM and not any(each in route.path for each in _LEFT_OUT)
)
_HEADERS: Final = {"Host": "127.0.0.1:1", "Content-Type": JSON}
_NOBODY: Final = mock.MagicMock()
"""The peer of every request, shared, as making one takes longer than most answers."""

_WORDS: Final = (
    *(json.dumps(each.name).encode() + b":" for route in ROUTES
      if isinstance(route.body, tuple) for each in route.body),
    *(f"{each.name}=".encode() for route in ROUTES for each in route.query), b'"foo-0"',
    b'"foo:1:1"', b'"foo=1,2"', b"1", b"-1", b"4", b"null", b"true", b"{}", b"[]", b'""',
    b'"500ms"', b'"kafka-2.4"', b'"kip-455"', b'"4=0-2"', b'"off"',
    b'"/admin/reassign_partitions"', b'"manual"', b"1e400", b"1000000000000", b'"\\ud800"',
    b'"\\u0000"', b"[" * 1500, b'"127.0.0.1:1"', b'"[::1]:9"', b'"User:a"', b'"PLAIN:a:b"', b"?",
    b"&", b"/", b"%00", b"%ff", b"%", b"..", b'"cluster"', b'"\\n"',
    b'{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[2,3]}]}',
    b'"{\\"version\\":1,\\"partitions\\":[]}"', b'"/"', b'"//"', b'"/brokers/topics/foo"',
)  # fmt: skip


def check(data: bytes) -> None:
    asyncio.run(_ask(list(_requests(data))[:MOST_REQUESTS]))


async def _ask(requests: list[tuple[Route, bytes]]) -> None:
    with _without_sockets():
        mock_cluster = MockCluster(
            brokers=4, topics=["foo=1,2,3"], clock="manual", profile="kafka-2.4"
        )
        await mock_cluster.start()
        server, app = _served()
        hosting = ClusterHost(mock_cluster, {})
        server._mock, server._hosting = mock_cluster, hosting
        try:
            for route, body in requests:
                await _one(app, route, body)
            for path in ("/state", "/log", "/journal"):
                answer = await _answer(app, "GET", path, b"")
                assert answer is not None
                expected = 200 if any(each.id == FIRST for each in hosting) else 404
                assert answer.status == expected, (path, answer.text)
        finally:
            await server.stop()
            await mock_cluster.stop()


@cache
def _served() -> tuple[ControlServer, web.Application]:
    """The routes, made once; each check gives the server a new cluster."""
    server = ControlServer(MockCluster(brokers=1, clock="manual"))
    app = server.application()
    app.freeze()
    return server, app


async def _one(app: web.Application, route: Route, body: bytes) -> None:
    path = re.sub(r"\{\w+\}", "1", route.path)
    if route.body is None:
        path += body.decode("ascii", "replace")
        body = b""
    answer = await _answer(app, route.method, path, body)
    if answer is None:
        return
    if answer.status == route.status or 200 <= answer.status < 300:
        if answer.content_type == JSON:
            json.loads(answer.text)
        return
    assert 400 <= answer.status < 500, (route.method, path, answer.status, answer.text)
    document = json.loads(answer.text)
    assert list(document) == ["error"]
    assert "\n" not in document["error"]


class _Answer(NamedTuple):
    status: int
    content_type: str
    text: str


class _Writer(AbstractStreamWriter):
    """The body of a response that a route writes itself."""

    def __init__(self) -> None:
        self.body = bytearray()

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        self.body += chunk

    async def write_eof(self, chunk: bytes = b"") -> None:
        self.body += chunk

    async def drain(self) -> None:
        pass

    def enable_compression(self, encoding: str = "deflate", strategy: int | None = None) -> None:
        pass

    def enable_chunking(self) -> None:
        pass

    async def write_headers(self, status_line: str, headers: CIMultiDict[str]) -> None:
        pass


async def _answer(app: web.Application, method: str, path: str, body: bytes) -> _Answer | None:
    writer = _Writer()
    try:
        request = make_mocked_request(
            method, path, _HEADERS, app=app, writer=writer, protocol=_NOBODY, transport=_NOBODY
        )
    except ValueError:
        return None
    request._read_bytes = body
    answer = await app._handle(request)
    text = (answer.text or "") if isinstance(answer, web.Response) else writer.body.decode()
    return _Answer(answer.status, answer.content_type, text)


@contextlib.contextmanager
def _without_sockets() -> Iterator[None]:
    async def opens(_listener: object) -> None:
        return None

    async def at_once(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        return call(*arguments, **options)

    def stores(_cluster: object, options: ClusterOptions) -> None:
        if options.zookeeper is not None:
            raise ClusterError("ZooKeeper is not available here")

    with (
        mock.patch.object(BrokerListener, "open", opens),
        mock.patch.object(MockCluster, "_znode_store", stores),
        mock.patch("mockbroker.running.mock_cluster.inter_broker_network", return_value=None),
        mock.patch("mockbroker.control.hosting.asyncio.to_thread", at_once),
    ):
        yield


def _requests(data: bytes) -> Iterator[tuple[Route, bytes]]:
    at = 0
    while at + 3 <= len(data):
        size = int.from_bytes(data[at + 1 : at + 3], "big")
        yield _ROUTES[data[at] % len(_ROUTES)], data[at + 3 : at + 3 + size]
        at += 3 + size


def _joined(requests: list[tuple[Route, bytes]]) -> bytes:
    return b"".join(
        bytes((_ROUTES.index(route),)) + len(body[:65535]).to_bytes(2, "big") + body[:65535]
        for route, body in requests
    )


def _sample(schema: Mapping[str, Any]) -> Any:
    """A value that a schema allows: of those it names, or the least of its type."""
    named = [*schema.get("enum", ()), *schema.get("examples", ())]
    if named:
        return named[0]
    return schema.get("minimum", 1) if schema.get("type") == "integer" else "x"


def seeds() -> Iterator[bytes]:
    """Yield every route once, with a valid body if it takes one."""
    values = {
        "partition": "foo-0", "broker": 2, "level": "4=0-2", "duration": "500ms",
        "path": "/admin/reassign_partitions", "text": "{}", "topic": "foo:1:1",
        "address": "127.0.0.1:1",
    }  # fmt: skip
    for route in _ROUTES:
        body: Any = {"api": 46, "error": 41}
        if isinstance(route.body, tuple):
            body = {
                each.name: values.get(each.name, _sample(each.schema))
                for each in route.body
                if each.required
            }
        yield _joined([(route, b"" if route.body is None else json.dumps(body).encode())])
    clusters = next(each for each in _ROUTES if each.body is CLUSTER_OPTIONS)
    options = {
        "brokers": 2, "topics": ["a:1:1"], "profile": "kafka-2.4", "apis": {"45": "off"},
        "broker_levels": {"2": "3=0-5"}, "faults": [{"api": 46, "error": 41}],
        "sasl": ["PLAIN:a:b"], "authorizer": {"super_users": ["User:a"]},
        "external_brokers": {"7": "127.0.0.1:1"},
    }  # fmt: skip
    for name, value in options.items():
        yield _joined([(clusters, json.dumps({"brokers": 1, name: value}).encode())])


def mutate(data: bytes, max_size: int, rng: random.Random, plainly: Mutate) -> bytes:
    """Insert a word into a body, change its route, or add or remove a request."""
    requests = list(_requests(data))
    if not requests:
        return _joined([(rng.choice(_ROUTES), b"{}")])
    at = rng.randrange(len(requests))
    route, body = requests[at]
    match rng.randrange(6):
        case 0:
            requests[at] = rng.choice(_ROUTES), body
        case 1:
            requests.insert(at, rng.choice(requests))
        case 2:
            del requests[at]
        case _:
            requests[at] = route, with_words(body, _WORDS, rng)
    return _joined(requests)
