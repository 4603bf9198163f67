"""Which requests of browsers the control port serves: those of its own page and of a person.

``Host`` tells DNS rebinding, ``Origin`` the requests that scripts and forms of other sites send.
For an image, a style sheet or a link browsers send neither a foreign ``Host`` nor an ``Origin``,
but they send ``Sec-Fetch-Site``. Programs send none of the headers of the Fetch standard.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from mockbroker.control.page import HTML
from mockbroker.options.addresses import parse_endpoint
from mockbroker.serving.endpoints import is_loopback

__all__ = ["is_same_site"]

_OWN: Final = frozenset({"same-origin", "none"})
"""``none`` is a request of the person: an address that was typed, or a bookmark."""


def is_same_site(request: web.Request, *, on_loopback: bool) -> bool:
    """Whether the request comes from the port's own page, from a person, or from no browser.

    A page of another site may link to the port's page, which changes nothing and cannot be framed.
    Beyond loopback the host may have any name, and the token protects the port.
    """
    sites = request.headers.getall("Sec-Fetch-Site", [])
    if not _OWN.issuperset(sites) and not _opens_page(request):
        return False
    host = request.headers.get("Host", "")
    origin = request.headers.get("Origin")
    try:
        if origin is not None and urlsplit(origin).netloc != host:
            return False
        if not on_loopback:
            return True
        name, _ = parse_endpoint(host.lower())
    except ValueError:  # a ClusterError is one
        return False
    return is_loopback(name)


def _opens_page(request: web.Request) -> bool:
    """Whether a link on any site opens the port's page in a window of its own."""
    headers = request.headers
    return (
        (request.method, request.raw_path) == ("GET", "/")
        and HTML in headers.get("Accept", "")
        and headers.get("Sec-Fetch-Mode") == "navigate"
        and headers.get("Sec-Fetch-Dest") == "document"
    )
