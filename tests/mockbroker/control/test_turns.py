"""The control port takes turns with brokers, and with itself. The order of events is compared;
nothing here measures a time."""

import asyncio
import json
from typing import Any

import pytest

from mockbroker import MockCluster
from mockbroker.control import ControlServer, connection_limits
from mockbroker.serving.loop_turns import turns_of_loop
from tests.mockbroker.control.test_control import controlled
from tests.mockbroker.control.test_streams import following
from tests.mockbroker.serving.test_turns import UNKNOWN, bound
from tests.mockbroker.wire import PATIENCE, connect
from tests.support.event_loops import LOOPS, run_on

ENTRIES = 400
EACH_LOOP = pytest.mark.parametrize("loop", LOOPS)


def record(mock: Any) -> None:
    for number in range(ENTRIES):
        mock.journal.record(
            number, 1, 7, "event", api_key=number % 4, client_id="c", event=f"{number % 3}"
        )


@EACH_LOOP
@pytest.mark.parametrize("path", ["/journal", "/journal?event=absent", "/journal?last=5"])
def test_a_broker_answers_while_the_journal_is_listed(loop: str, path: str) -> None:
    async def listing() -> None:
        async with controlled() as (mock, client), connect(mock) as wire:
            await wire.ask(*UNKNOWN)
            for _ in range(100):
                record(mock)
            bound(1)
            listed = asyncio.create_task(client.get(path))
            await somebody_waits()
            assert (await wire.ask(*UNKNOWN)).error_code == 0
            assert not listed.done()
            assert (await listed)[0] == 200

    run_on(loop, listing())


async def somebody_waits() -> None:
    """Return once something waits for a turn."""
    async with asyncio.timeout(PATIENCE):
        while not turns_of_loop()._queue:
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    "path",
    [
        "/journal", "/journal?limit=7", "/journal?last=7", "/journal?last=9&limit=3",
        "/journal?event=1&last=7", "/journal?api=2&limit=5&after=300", "/journal?last=0",
        "/journal?event=absent", "/journal?limit=0", "/log", "/log?since=2&last=1",
    ],
)  # fmt: skip
async def test_a_listing_does_not_depend_on_turns(path: str) -> None:
    async with controlled() as (mock, client):
        record(mock)
        for broker_id in (2, 3):
            await mock.stop_broker(broker_id)
        async with client.session.get(client.url + path) as response:
            expected, kind = await response.read(), response.headers["Content-Type"]
        if path.startswith("/journal"):
            assert json.dumps(json.loads(expected)).encode() == expected
        assert kind == "application/json; charset=utf-8"
        bound(1)
        async with client.session.get(client.url + path) as response:
            assert await response.read() == expected


async def test_a_listing_has_the_newest_of_what_passes_its_filters() -> None:
    async with controlled() as (mock, client):
        record(mock)
        for query, chosen in (
            ("last=9&limit=3", range(ENTRIES - 8, ENTRIES - 5)),
            ("event=1&last=2", (ENTRIES - 5, ENTRIES - 2)),
            ("limit=3&after=5", (6, 7, 8)),
        ):
            _, rows = await client.get(f"/journal?{query}")
            assert [row["sequence"] for row in rows] == list(chosen)


async def test_a_client_that_takes_nothing_of_a_listing_is_closed_on(monkeypatch):
    monkeypatch.setattr(connection_limits, "QUIET_SECONDS", 0.1)
    async with MockCluster(1) as mock:
        for number in range(200):
            mock.journal.record(number, 1, 1, "request", raw=b"\0" * 100_000)
        control = ControlServer(mock)
        await control.start()
        host, port = control.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET /journal HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert int(head.split(b"Content-Length: ")[1].split()[0]) > 200 * 100_000
        assert control._runner is not None
        server = control._runner.server
        async with asyncio.timeout(PATIENCE):
            while server is not None and server.connections:
                await asyncio.sleep(0.01)
        writer.close()
        await control.stop()


@EACH_LOOP
def test_a_broker_answers_before_the_rest_of_pipelined_http_requests(loop: str) -> None:
    async def pipelined() -> None:
        async with controlled() as (mock, client), connect(mock) as wire:
            await wire.ask(*UNKNOWN)
            host, port = client.url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            request = f"GET /log HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
            writer.write(request * 500)
            wire.send(wire.frame(*UNKNOWN))
            await wire.receive()
            buffer: Any = reader._buffer  # type: ignore[attr-defined]
            assert buffer.count(b"HTTP/1.1 200") < 500
            writer.write(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            async with asyncio.timeout(PATIENCE):
                assert (await reader.read()).count(b"HTTP/1.1 200") == 501
            writer.close()

    run_on(loop, pipelined())


@EACH_LOOP
@pytest.mark.parametrize("streams", [1, 5])
def test_a_broker_answers_while_streams_send_the_past(loop: str, streams: int) -> None:
    async def streaming() -> None:
        async with controlled() as (mock, client), connect(mock) as wire:
            await wire.ask(*UNKNOWN)
            record(mock)
            bound(1)
            first = mock.journal.last_sequence
            tasks = [asyncio.create_task(_numbers(client, first)) for _ in range(streams)]
            await somebody_waits()
            await wire.ask(*UNKNOWN)
            assert not any(task.done() for task in tasks)
            for task in tasks:
                assert await task == list(range(1, first + 1))

    run_on(loop, streaming())


async def _numbers(client: Any, count: int) -> list[int | None]:
    async with following(client, "/journal/stream") as stream:
        return [number for _, number, _ in await stream.take(count)]


@EACH_LOOP
def test_the_control_port_answers_before_the_rest_of_a_flood(loop: str) -> None:
    async def flood() -> None:
        async with controlled() as (mock, client), connect(mock) as wire:
            await wire.ask(*UNKNOWN)
            await client.get("/state")
            bound(1)
            wire.send(*[wire.frame(*UNKNOWN)] * 5000)
            await somebody_waits()
            assert (await client.get("/state"))[0] == 200
            assert 0 < len(mock.journal.select(direction="request")) < 5000
            for _ in range(5000):
                await wire.receive()

    run_on(loop, flood())
