"""``GET /``: for browsers a page that shows the cluster and what is being said, for others a list
of the routes. The page is one file, asks for nothing but this port's routes, and holds no data."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any, Final

from aiohttp import web

from mockbroker.control.routes import TEXT, Asked, Route
from mockbroker.control.schemas import array_of, map_of, object_of

__all__ = ["PAGE", "opens_page"]

_HTML: Final = "text/html"


def opens_page(request: web.Request) -> bool:
    """Browsers say that they take HTML; nobody else does."""
    return (
        request.path == "/"
        and request.method == "GET"
        and _HTML in request.headers.get("Accept", "")
    )


@cache
def _page() -> tuple[str, str]:
    """The page, and the policy under which its own script and style are all that runs."""
    text = resources.files("mockbroker.control").joinpath("page.html").read_text("utf-8")
    policy = [
        "default-src 'none'",
        f"script-src {_hash_of('script', text)}",
        f"style-src {_hash_of('style', text)}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
    return text, "; ".join(policy)


def _hash_of(element: str, text: str) -> str:
    found = re.search(rf"<{element}>(.*?)</{element}>", text, re.S)
    assert found is not None
    digest = base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
    return f"'sha256-{digest}'"


async def _index(asked: Asked) -> object:
    if not opens_page(asked.request):
        from mockbroker.control.table import ROUTES

        return _listed(ROUTES)
    text, policy = _page()
    if asked.wants_token:
        text = text.replace("<html ", "<html data-token ", 1)
    return web.Response(
        text=text,
        content_type=_HTML,
        headers={
            "Content-Security-Policy": policy,
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "Vary": "Accept",
            "X-Content-Type-Options": "nosniff",
        },
    )


def _listed(routes: Iterable[Route]) -> dict[str, Any]:
    """Paths by method; those that take a body with its members."""
    index: dict[str, Any] = {"get": [], "post": {}, "delete": []}
    for route in routes:
        listed = index[route.method.lower()]
        if isinstance(listed, dict):
            members = route.body if isinstance(route.body, tuple) else ()
            listed[route.path] = [each.name for each in members]
        else:
            listed.append(route.path)
    return index


PAGE: Final = Route(
    "GET",
    "/",
    "The routes by method; for browsers, which take text/html, the page.",
    _index,
    object_of(get=array_of(TEXT), post=map_of(array_of(TEXT)), delete=array_of(TEXT)),
    also={_HTML: TEXT},
    of_cluster=False,
)
