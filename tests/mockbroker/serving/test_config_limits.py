"""Broker configs that limit connections. 4.4.0 answers, waits and closes in the same way."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from mockbroker import MockCluster
from tests.mockbroker.serving.test_limits import noted
from tests.mockbroker.wire import Wire, connect
from tests.support.requests import request_of

ASKED = request_of("ApiVersions")
BROKER = 4


async def opened(stack: AsyncExitStack, mock: MockCluster, count: int) -> list[Wire]:
    return [await stack.enter_async_context(connect(mock)) for _ in range(count)]


def set_config(mock: MockCluster, name: str, value: str) -> None:
    change = [(BROKER, "1", [(name, 0, value)])]
    (result,) = mock.cluster.config_changes.alter_incrementally(change)
    assert result.error_code == 0, result.error_message


async def test_a_connection_past_max_connections_waits_until_another_one_ends() -> None:
    async with (
        MockCluster(1, broker_configs={"max.connections": "2"}) as mock,
        AsyncExitStack() as s,
    ):
        first, second, third, fourth = await opened(s, mock, 4)
        for served in (first, second):
            await served.ask(ASKED, 0)
        for waiting in (third, fourth):
            waiting.send(waiting.frame(ASKED, 0))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await third.reader.readexactly(4)
        first.writer.close()
        await third.receive()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await fourth.reader.readexactly(4)
        set_config(mock, "max.connections", "3")
        second.writer.close()
        await fourth.receive()


@pytest.mark.parametrize(
    "configs",
    [
        {"max.connections.per.ip": "1"},
        {"max.connections.per.ip": "9", "max.connections.per.ip.overrides": "127.0.0.1:1,h:2"},
        {"max.connections.per.ip.overrides": "localhost:1"},
    ],
)
async def test_a_connection_past_the_limit_of_its_address_is_closed(configs) -> None:
    async with MockCluster(1, broker_configs=configs) as mock, AsyncExitStack() as stack:
        (first,) = await opened(stack, mock, 1)
        await first.ask(ASKED, 0)
        (second,) = await opened(stack, mock, 1)
        assert await second.closed() == b""
        (note,) = await noted(mock, "over-limit")
        assert note == "127.0.0.1 has 1 connections; the broker accepts 1"
        first.writer.close()
        await noted(mock, "disconnected", 2)
        (third,) = await opened(stack, mock, 1)
        await third.ask(ASKED, 0)


async def test_a_running_broker_follows_a_new_limit() -> None:
    async with MockCluster(1) as mock, AsyncExitStack() as stack:
        (first,) = await opened(stack, mock, 1)
        await first.ask(ASKED, 0)
        set_config(mock, "max.connections.per.ip", "1")
        (second,) = await opened(stack, mock, 1)
        assert await second.closed() == b""


async def test_the_largest_request_is_that_of_the_config() -> None:
    async with MockCluster(1) as mock, connect(mock) as wire:
        size = len(wire.frame(ASKED, 0)) - 4
    configs = {"socket.request.max.bytes": str(size)}
    async with MockCluster(2, own_broker_configs={1: configs}) as mock, connect(mock) as wire:
        await wire.ask(ASKED, 0)
        wire.send(wire.frame(ASKED, 0, client_id="wires"))
        assert await wire.closed() == b""
        async with connect(mock, 2) as other:
            other.send(other.frame(ASKED, 0, client_id="wires"))
            await other.receive()


async def test_an_idle_connection_is_closed_after_the_time_of_the_config() -> None:
    configs = {"connections.max.idle.ms": "100"}
    async with MockCluster(1, broker_configs=configs) as mock, connect(mock) as wire:
        assert await wire.closed() == b""
        (note,) = await noted(mock, "idle")
        assert note == "no bytes were received or sent for 100 ms"


async def test_without_a_time_connections_may_be_idle() -> None:
    configs = {"connections.max.idle.ms": "-1"}
    mock = MockCluster(1, broker_configs=configs, idle_timeout_ms=1)
    async with mock, connect(mock) as wire:
        await asyncio.sleep(0.1)
        await wire.ask(ASKED, 0)
