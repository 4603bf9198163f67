"""The control port of a proxy, by HTTP and by ``mockbroker ctl``."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner

from mockbroker import MockCluster
from mockbroker.cli import cli
from mockbroker.control.openapi import document
from mockbroker.control.proxy_port import PROXY_ROUTES, ProxyPort
from mockbroker.proxy.kafka_proxy import KafkaProxy
from mockbroker.simulation.operations import PROXY_OPERATIONS
from tests.mockbroker.proxy.conftest import dial
from tests.support.requests import request_of

Proxied = Callable[..., Any]


@asynccontextmanager
async def port_of(proxy: KafkaProxy, token: str | None = None) -> AsyncIterator[ProxyPort]:
    port = ProxyPort(proxy, token=token)
    await port.start()
    try:
        yield port
    finally:
        await port.stop()


async def ctl(port: ProxyPort, *words: str) -> tuple[int, str]:
    result = await asyncio.to_thread(CliRunner().invoke, cli, ["ctl", port.url, *words])
    return result.exit_code, result.output


@pytest.mark.requirement("DP-PROXY-33")
async def test_commands_rules_and_the_journal(proxied: Proxied) -> None:
    async with MockCluster(brokers=2) as mock:
        proxy = await proxied(mock)
        async with port_of(proxy) as port, dial(proxy, 2) as wire:
            await wire.ask("ApiVersions", 0)
            code, text = await ctl(port, "proxy")
            assert code == 0
            assert f"broker 2  {proxy.addresses[2]} -> {mock.addresses[2]}  1 connections" in text
            code, text = await ctl(port, "journal")
            assert code == 0
            assert "v0 ApiVersions" in text
            assert await ctl(port, "refuse-upstream", "2") == (0, "")
            assert await ctl(port, "drop-upstream", "2") == (0, "")
            assert await wire.closed() == b""
            code, text = await ctl(port, "proxy", "--json")
            assert [row["refused"] for row in json.loads(text)["listeners"]] == [False, False, True]
            code, text = await ctl(port, "fault", "add", "api=Metadata", "error=CORRUPT_MESSAGE")
            assert code == 0, text
            assert [rule.fault.api for rule in proxy.faults] == ["Metadata"]
            code, text = await ctl(port, "fault", "add", "api=3", 'steps_before=["failover 1"]')
            assert code == 1
            assert "failover is an operation on a mock cluster" in text
            code, text = await ctl(port, "drop-upstream", "7")
            assert (code, "named no broker 7 yet" in text) == (1, True)
            code, text = await ctl(port, "failover", "1")
            assert code == 1


async def test_each_command_has_a_route_and_is_described() -> None:
    posts = {route.path[1:] for route in PROXY_ROUTES if route.method == "POST"}
    assert posts == {*PROXY_OPERATIONS, "faults"}
    assert json.dumps(document(PROXY_ROUTES))


async def test_the_page_shows_listeners_rules_and_traffic(proxied: Proxied) -> None:
    async with MockCluster(brokers=1) as mock:
        proxy = await proxied(mock)
        async with port_of(proxy, token="secret") as port, dial(proxy) as wire:
            wire.send(wire.frame(request_of("ApiVersions"), 0, client_id="<script>"))
            await wire.receive()
            html = {"Accept": "text/html"}
            async with aiohttp.ClientSession() as session:
                async with session.get(port.url, headers=html) as refused:
                    assert refused.status == 401
                html["Authorization"] = "Bearer secret"
                async with session.get(port.url, headers=html) as answer:
                    text = await answer.text()
                    assert answer.status == 200
                    policy = answer.headers["Content-Security-Policy"]
                async with session.get(f"{port.url}/clusters/2/proxy", headers=html) as other:
                    assert other.status == 404
        assert proxy.bootstrap in text
        assert proxy.addresses[1] in text
        assert "&lt;script&gt;" in text
        assert "<script" not in text
        assert "default-src 'none'" in policy
