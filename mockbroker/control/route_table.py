"""Every route of the control port: ``server`` serves this list and ``openapi`` documents it."""

from __future__ import annotations

from typing import Final

from mockbroker.control.cluster_routes import CLUSTER_ROUTES
from mockbroker.control.command_routes import COMMAND_ROUTES
from mockbroker.control.fault_routes import FAULT_ROUTES
from mockbroker.control.journal_routes import JOURNAL_ROUTES
from mockbroker.control.page import PAGE_ROUTE
from mockbroker.control.routes import ControlRequest, Route
from mockbroker.control.state_routes import STATE_ROUTES

__all__ = ["ROUTES"]


async def _document(request: ControlRequest) -> object:
    from mockbroker.control.openapi import document

    return document(ROUTES, with_token=request.wants_token)


_DOCUMENT: Final = Route(
    "GET",
    "/openapi.json",
    "This document.",
    _document,
    {"type": "object", "description": "OpenAPI 3.1"},
    of_cluster=False,
)

ROUTES: Final[tuple[Route, ...]] = (
    PAGE_ROUTE,
    _DOCUMENT,
    *STATE_ROUTES,
    *JOURNAL_ROUTES,
    *FAULT_ROUTES,
    *COMMAND_ROUTES,
    *CLUSTER_ROUTES,
)
