"""The control port of a proxy: the journal, the fault rules and the proxy's own operations.

The routes of the journal and of rules are those of a mock cluster, which see the proxy in its
place. Browsers get a page that shows the listeners and the latest traffic, and has no script.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol, cast

import msgspec
from aiohttp import web

from kproto.dialects import Dialect
from kproto.journal import Journal, describe
from mockbroker.control.errors import RefusedError
from mockbroker.control.event_streams import Feed
from mockbroker.control.fault_routes import FAULT_ROUTES
from mockbroker.control.hosting import FIRST, ClusterHost, HostedCluster
from mockbroker.control.journal_routes import JOURNAL_ROUTES
from mockbroker.control.operation_routes import operation_id, operation_members
from mockbroker.control.page import HTML, PAGE_HEADERS, requests_page, routes_by_method
from mockbroker.control.routes import TEXT, ControlRequest, Route
from mockbroker.control.schemas import array_of, map_of, object_of, ref
from mockbroker.control.server import ControlPort
from mockbroker.faults.matching import ActiveFault
from mockbroker.simulation.operations import PROXY_OPERATIONS, Operation, OperationCall

__all__ = ["PROXY_ROUTES", "ControlledProxy", "ProxyPort"]

_MOST_LINES: Final = 100


class ControlledProxy(Protocol):
    """A ``mockbroker.proxy.kafka_proxy.KafkaProxy``, as far as these routes use it. Those of the
    journal and of rules use what it has in common with a ``MockCluster``."""

    journal: Journal
    dialect: Dialect

    @property
    def faults(self) -> Sequence[ActiveFault]: ...
    def run_call(self, call: OperationCall) -> None:
        """Carry out an operation. Raises ClusterError."""

    def to_dict(self) -> dict[str, Any]:
        """The listeners and the settings as JSON values."""


class _HostedProxy(msgspec.Struct):
    """What routes see in the place of a cluster."""

    mock: ControlledProxy
    feed: Feed


def _proxy(request: ControlRequest) -> ControlledProxy:
    return cast(ControlledProxy, request.mock)


async def _index(request: ControlRequest) -> object:
    if requests_page(request.http):
        return _page(_proxy(request))
    return routes_by_method(PROXY_ROUTES)


async def _document(request: ControlRequest) -> object:
    from mockbroker.control.openapi import document

    return document(PROXY_ROUTES, with_token=request.wants_token)


async def _state(request: ControlRequest) -> object:
    return _proxy(request).to_dict()


def _operation_route(operation: Operation) -> Route:
    async def answer(request: ControlRequest) -> dict[str, Any]:
        _proxy(request).run_call(OperationCall(operation, request.body))
        return {"actions": []}

    return Route(
        "POST",
        f"/{operation.name}",
        operation_id(operation),
        operation.help,
        answer,
        ref("Actions"),
        body=operation_members(operation),
        details=operation.details,
    )


PROXY_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        "GET",
        "/",
        "listRoutes",
        "The routes by method; for browsers, a page.",
        _index,
        object_of(get=array_of(TEXT), post=map_of(array_of(TEXT)), delete=array_of(TEXT)),
        also={HTML: TEXT},
        of_cluster=False,
    ),
    Route(
        "GET",
        "/openapi.json",
        "getOpenApi31",
        "This document.",
        _document,
        {"type": "object", "description": "OpenAPI 3.1"},
        of_cluster=False,
    ),
    Route(
        "GET",
        "/proxy",
        "getProxy",
        "The listeners, what stands behind each, and the settings.",
        _state,
        {"type": "object", "description": "The state of the proxy."},
    ),
    *JOURNAL_ROUTES,
    *FAULT_ROUTES,
    *map(_operation_route, PROXY_OPERATIONS.values()),
)


class ProxyPort(ControlPort):
    """Serves the routes for ``proxy``."""

    def __init__(
        self,
        proxy: ControlledProxy,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
    ) -> None:
        # The page has data in it, so it needs the token like everything else.
        super().__init__(PROXY_ROUTES, host, port, token, open_page=False)
        self._hosted = _HostedProxy(proxy, Feed(proxy.journal, None))

    def _cluster(self, cluster_id: str | None) -> HostedCluster | None:
        if cluster_id not in (None, FIRST):
            raise RefusedError(404, f"no cluster {cluster_id!r:.80}; a proxy has cluster 1 alone")
        return cast(HostedCluster, self._hosted)

    @property
    def _host_of_clusters(self) -> ClusterHost:
        return cast(ClusterHost, None)

    @property
    def _journal(self) -> Journal:
        return self._hosted.mock.journal

    async def _close(self) -> None:
        self._hosted.feed.close()


# ---- the page ------------------------------------------------------------------------------------


def _page(proxy: ControlledProxy) -> web.Response:
    state = proxy.to_dict()
    columns = ("name", "address", "upstream", "connections", "refused")
    listeners = [
        [", ".join(row[name]) if name == "upstream" else str(row[name]) for name in columns]
        for row in state["listeners"]
    ]
    rules = [
        [rule.name, str(rule.hits), "yes" if rule.live else "no", rule.fault.describe()]
        for rule in proxy.faults
    ]
    newest = proxy.journal.newer(max(proxy.journal.last_sequence - _MOST_LINES, 0))
    since = newest[0].timestamp_ns if newest else 0
    lines = "\n".join(describe(entry, since_ns=since, using=proxy.dialect) for entry in newest)
    text = (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8"><title>mockbroker proxy</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,"></head><body>'
        f"<h1>Proxy at {html.escape(state['bootstrap'])}</h1>"
        f"{_table(columns, listeners)}"
        f"<h2>Fault rules</h2>{_table(('name', 'hits', 'live', 'rule'), rules)}"
        f"<h2>The latest traffic</h2><pre>{html.escape(lines)}</pre>"
        "</body></html>\n"
    )
    return web.Response(
        text=text, content_type=HTML, charset="utf-8", headers={**PAGE_HEADERS, "Vary": "Accept"}
    )


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    def line(cells: Iterable[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(each)}</{tag}>" for each in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table>{line(heads, 'th')}{body}</table>"
