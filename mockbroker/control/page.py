"""``GET /``: browsers get a page that shows the cluster and its traffic, other clients a list
of the routes. The page is one static file that requests nothing but the routes of this port."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any, Final

from aiohttp import web

from mockbroker.control.routes import Route

__all__ = ["HTML", "page_response", "requests_page", "routes_by_method"]

HTML: Final = "text/html"


def requests_page(request: web.Request) -> bool:
    """Whether a browser requests the page: only browsers accept HTML."""
    return (
        request.path == "/"
        and request.method == "GET"
        and HTML in request.headers.get("Accept", "")
    )


@cache
def _page() -> tuple[str, str]:
    """The page, and the Content-Security-Policy that allows only its own script and style."""
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


def page_response(*, wants_token: bool) -> web.Response:
    """The page; ``wants_token`` makes it prompt for the control token."""
    text, policy = _page()
    if wants_token:
        text = text.replace("<html ", "<html data-token ", 1)
    return web.Response(
        text=text,
        content_type=HTML,
        headers={
            "Content-Security-Policy": policy,
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "Vary": "Accept",
            "X-Content-Type-Options": "nosniff",
        },
    )


def routes_by_method(routes: Iterable[Route]) -> dict[str, Any]:
    """Paths by method; for POST with the members of the body."""
    index: dict[str, Any] = {"get": [], "post": {}, "delete": []}
    for route in routes:
        listed = index[route.method.lower()]
        if isinstance(listed, dict):
            members = route.body if isinstance(route.body, tuple) else ()
            listed[route.path] = [each.name for each in members]
        else:
            listed.append(route.path)
    return index
