"""Every route of the control port: the one table that is served, and documented."""

from __future__ import annotations

from typing import Final

from mockbroker.control.cluster_routes import CLUSTERS
from mockbroker.control.command_routes import COMMAND_ROUTES
from mockbroker.control.fault_routes import FAULTS
from mockbroker.control.journal_routes import JOURNAL
from mockbroker.control.page import PAGE
from mockbroker.control.reading import READING
from mockbroker.control.routes import Asked, Route

__all__ = ["ROUTES"]


async def _document(asked: Asked) -> object:
    from mockbroker.control.openapi import document

    return document(ROUTES, with_token=asked.wants_token)


_DOCUMENT: Final = Route(
    "GET",
    "/openapi.json",
    "This document.",
    _document,
    {"type": "object", "description": "OpenAPI 3.1"},
    of_cluster=False,
)

ROUTES: Final[tuple[Route, ...]] = (
    PAGE,
    _DOCUMENT,
    *READING,
    *JOURNAL,
    *FAULTS,
    *COMMAND_ROUTES,
    *CLUSTERS,
)
