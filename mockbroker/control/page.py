"""``GET /``: browsers get a page that shows the cluster and acts on it, other clients a list of the
routes.

The folder ``templates`` holds the page and a template for each panel, ``web`` the style sheet and a
module for each panel. The forms of operations are rendered from ``OPERATIONS``, so that a new one
is on the page without a change here. The page requests nothing but this port's routes and its own
files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from aiohttp import web

from kproto.dialects import dialect
from kproto.error_codes import ErrorCode
from kproto.pages import Pages
from mockbroker.control.routes import Route
from mockbroker.faults.descriptions import MEMBERS as RULE_MEMBERS
from mockbroker.simulation.operations import OPERATIONS
from mockbroker.simulation.state.cluster_parts import INTERNAL_TOPICS

__all__ = [
    "HTML",
    "PAGE_HEADERS",
    "file_response",
    "page_files",
    "page_response",
    "page_templates",
    "requests_page",
    "routes_by_method",
]

HTML: Final = "text/html"

_GROUPS: Final = (
    ("cluster", "partitions", "logs", "groups"),
    ("journal", "changes"),
    ("faults", "operations", "scenarios"),
)
"""The panels in their order; a wide page shows the second group beside the others. A panel is
``templates/panels/NAME.html`` and ``web/panels/NAME.js``."""

_FILES: Final = "/page/"
_MEDIA_TYPES: Final[Mapping[str, str]] = {".css": "text/css", ".js": "text/javascript"}

PAGE_HEADERS: Final[Mapping[str, str]] = {
    # No inline script or style, no other host, no frame; and no script may assign markup.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "Cache-Control": "no-store",
    # A page that opens this one in a window gets no handle on the window.
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def requests_page(request: web.Request) -> bool:
    """Whether a browser requests the page or one of its files: only browsers accept HTML."""
    if request.method != "GET":
        return False
    if request.path == "/":
        return HTML in request.headers.get("Accept", "")
    return request.path in page_files()


@cache
def page_files() -> Mapping[str, tuple[bytes, str]]:
    """The content and the media type of each script and style sheet, by its path on this port."""
    found: dict[str, tuple[bytes, str]] = {}
    folder = resources.files("mockbroker.control") / "web"
    for where, prefix in ((folder, _FILES), (folder / "panels", f"{_FILES}panels/")):
        for file in where.iterdir():
            for suffix, media_type in _MEDIA_TYPES.items():
                if file.name.endswith(suffix):
                    found[prefix + file.name] = (file.read_bytes(), media_type)
    return found


async def file_response(request: web.Request) -> web.Response:
    """One of ``page_files``."""
    content, media_type = page_files()[request.path]
    return web.Response(
        body=content, content_type=media_type, charset="utf-8", headers=PAGE_HEADERS
    )


@cache
def page_templates() -> Pages:
    return Pages("mockbroker.control")


@cache
def _page(*, wants_token: bool) -> str:
    return page_templates().render(
        "page.html",
        groups=_GROUPS,
        files=_FILES,
        operations=list(OPERATIONS.values()),
        broker_operations=[
            name
            for name, each in OPERATIONS.items()
            if [it.name for it in each.arguments] == ["broker"]
        ],
        error_names={code.value: code.name for code in ErrorCode},
        internal_topics=sorted(INTERNAL_TOPICS),
        api_names=sorted(
            name.removesuffix("Request") for name in dialect("kafka").apis.requests.values()
        ),
        rule_members=RULE_MEMBERS,
        wants_token=wants_token,
    )


def page_response(*, wants_token: bool) -> web.Response:
    """The page; ``wants_token`` makes it prompt for the control token."""
    return web.Response(
        text=_page(wants_token=wants_token),
        content_type=HTML,
        headers={**PAGE_HEADERS, "Vary": "Accept"},
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
