"""No request that a browser sends for a page of another site is served, whatever its route."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
import pytest

from mockbroker import MockCluster
from mockbroker.control import ROUTES, ControlServer
from mockbroker.control.openapi import served_paths
from mockbroker.control.page import page_files
from mockbroker.control.proxy_port import PROXY_ROUTES, ProxyPort
from mockbroker.control.server import ControlPort
from mockbroker.proxy.kafka_proxy import KafkaProxy, ProxyOptions

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
SITES: Final = ("cross-site", "same-site", "a-value-of-tomorrow", "")
PURPOSES: Final = (
    ("no-cors", "image"),
    ("no-cors", "script"),
    ("cors", "empty"),  # fetch and EventSource
    ("navigate", "iframe"),
    ("navigate", "document"),
    ("websocket", "websocket"),
)
LINK: Final = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@asynccontextmanager
async def port_of(kind: str) -> AsyncIterator[tuple[ControlPort, aiohttp.ClientSession]]:
    async with MockCluster(2, topics=["foo:1:2"]) as mock:
        host, _, number = mock.addresses[1].rpartition(":")
        options = ProxyOptions(upstream=[(host, int(number))])
        async with KafkaProxy(options) as proxy:
            port = ControlServer(mock) if kind == "cluster" else ProxyPort(proxy)
            await port.start()
            try:
                async with aiohttp.ClientSession() as session:
                    yield port, session
            finally:
                await port.stop()


def paths_of(port: ControlPort) -> list[str]:
    """One path for every route that the port serves, which are more than those of the table."""
    resources = port.application().router.resources()
    return [re.sub(r"\{\w+\}", "1", each.canonical) for each in resources]


def headers_of_a_browser() -> Iterator[dict[str, str]]:
    for site in SITES:
        for mode, purpose in PURPOSES:
            yield {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": purpose}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cluster", "proxy"])
async def test_no_request_for_another_site_is_served(kind: str) -> None:
    async with port_of(kind) as (port, session):
        paths = paths_of(port)
        table = ROUTES if kind == "cluster" else PROXY_ROUTES
        assert len(set(paths)) >= len({path for route in table for path in served_paths(route)})
        for path in paths:
            for headers in headers_of_a_browser():
                async with session.get(port.url + path, headers=headers) as response:
                    assert response.status == 403, (path, headers)
                    assert list(await response.json()) == ["error"]
            for method in METHODS:
                headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
                async with session.request(method, port.url + path, headers=headers) as response:
                    assert response.status == 403, (method, path)


@pytest.mark.parametrize("kind", ["cluster", "proxy"])
async def test_a_link_of_another_site_opens_the_page_and_nothing_else(kind: str) -> None:
    async with port_of(kind) as (port, session):
        link = {**LINK, "Sec-Fetch-Site": "cross-site", "Accept": "text/html,*/*;q=0.8"}
        async with session.get(port.url + "/", headers=link) as response:
            assert (response.status, response.content_type) == (200, "text/html")
            assert response.headers["Cross-Origin-Opener-Policy"] == "same-origin"
            assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
        changed: tuple[tuple[str, str, dict[str, str]], ...] = (
            ("POST", "/", link),
            ("HEAD", "/", link),
            ("GET", "/?a=b", link),
            ("GET", "/journal", link),
            ("GET", "/", {**link, "Accept": "*/*"}),
            ("GET", "/", {**link, "Sec-Fetch-Mode": "no-cors"}),
            ("GET", "/", {**link, "Sec-Fetch-Dest": "iframe"}),
        )
        for method, path, headers in changed:
            async with session.request(method, port.url + path, headers=headers) as response:
                assert response.status == 403, (method, path, headers)


@pytest.mark.parametrize("kind", ["cluster", "proxy"])
async def test_the_page_a_person_and_programs_are_served(kind: str) -> None:
    async with port_of(kind) as (port, session):
        assets = list(page_files()) if kind == "cluster" else []
        for path in ("/", "/journal", "/openapi.json", *assets):
            for headers in ({}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
                async with session.get(port.url + path, headers=headers) as response:
                    assert response.status == 200, (path, headers)
        stream = {"Sec-Fetch-Site": "same-origin", "Accept": "text/event-stream"}
        async with session.get(port.url + "/journal/stream", headers=stream) as response:
            assert (response.status, response.content_type) == (200, "text/event-stream")


async def test_a_web_socket_of_another_site_is_refused() -> None:
    """A browser sends Origin with every handshake, also where it sends no Sec-Fetch-Site."""
    async with port_of("cluster") as (port, session):
        for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await session.ws_connect(port.url + "/journal/stream", headers=headers)
            assert refused.value.status == 403
