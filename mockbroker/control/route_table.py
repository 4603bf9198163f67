"""Every route of the control port: ``server`` serves this list and ``openapi`` documents it."""

from __future__ import annotations

from typing import Final

from mockbroker.control.cluster_routes import CLUSTER_ROUTES
from mockbroker.control.data_routes import DATA_ROUTES
from mockbroker.control.fault_routes import FAULT_ROUTES
from mockbroker.control.journal_routes import JOURNAL_ROUTES
from mockbroker.control.oauth_routes import OAUTH_ROUTES
from mockbroker.control.operation_routes import OPERATION_ROUTES
from mockbroker.control.page import HTML, page_response, requests_page, routes_by_method
from mockbroker.control.routes import TEXT, ControlRequest, Route
from mockbroker.control.schemas import array_of, map_of, object_of, ref
from mockbroker.control.state_routes import STATE_ROUTES
from mockbroker.options.versions import versions

__all__ = ["ROUTES"]


async def _index(request: ControlRequest) -> object:
    if requests_page(request.http):
        return page_response(wants_token=request.wants_token)
    return routes_by_method(ROUTES)


async def _document(request: ControlRequest) -> object:
    from mockbroker.control.openapi import document

    return document(ROUTES, with_token=request.wants_token, server=_server(request))


async def _document_3_0(request: ControlRequest) -> object:
    from mockbroker.control.document_forms import OLDEST
    from mockbroker.control.openapi import document

    return document(ROUTES, version=OLDEST, with_token=request.wants_token, server=_server(request))


def _server(request: ControlRequest) -> str:
    return f"{request.http.scheme}://{request.http.host}"


async def _versions(_request: ControlRequest) -> object:
    return versions()


_INDEX: Final = Route(
    "GET",
    "/",
    "listRoutes",
    "The routes by method; for browsers, which accept text/html, the page.",
    _index,
    object_of(get=array_of(TEXT), post=map_of(array_of(TEXT)), delete=array_of(TEXT)),
    also={HTML: TEXT},
    of_cluster=False,
)

_DOCUMENT: Final = Route(
    "GET",
    "/openapi.json",
    "getOpenApi31",
    "This document.",
    _document,
    {"type": "object", "description": "OpenAPI 3.1"},
    of_cluster=False,
)

_DOCUMENT_3_0: Final = Route(
    "GET",
    "/openapi-3.0.json",
    "getOpenApi30",
    "This document, for generators that do not take OpenAPI 3.1.",
    _document_3_0,
    {"type": "object", "description": "OpenAPI 3.0"},
    of_cluster=False,
)

_VERSION: Final = Route(
    "GET",
    "/version",
    "getVersions",
    "The versions of this server.",
    _versions,
    ref("Versions"),
    of_cluster=False,
)

ROUTES: Final[tuple[Route, ...]] = (
    _INDEX,
    _VERSION,
    _DOCUMENT,
    _DOCUMENT_3_0,
    *STATE_ROUTES,
    *DATA_ROUTES,
    *JOURNAL_ROUTES,
    *FAULT_ROUTES,
    *OPERATION_ROUTES,
    *CLUSTER_ROUTES,
    *OAUTH_ROUTES,
)
