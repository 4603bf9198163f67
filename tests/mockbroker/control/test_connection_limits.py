"""The limits of the control port: slow clients, many clients, large bodies, invalid HTTP."""

import asyncio
import logging

import pytest

from mockbroker.control import connection_limits, journal_routes
from tests.mockbroker.control.test_control import Client, controlled
from tests.mockbroker.wire import PATIENCE, connect

HEAD = b"POST /advance HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


async def opened(client: Client) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = client.url.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


async def until_closed(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(PATIENCE):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


@pytest.mark.parametrize("sent", [b"", b"GET /state HTTP/1.1\r\nHost: 127.", HEAD])
async def test_a_connection_with_an_endless_request_is_closed(sent, monkeypatch):
    """Such a client once kept its connection for ever."""
    monkeypatch.setattr(connection_limits, "QUIET_SECONDS", 0.05)
    async with controlled() as (_, client):
        reader, writer = await opened(client)
        writer.write(sent)
        assert await until_closed(reader) == b""
        assert (await client.get("/state"))[0] == 200
        writer.close()


@pytest.mark.slow
async def test_a_body_that_does_not_arrive_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "BODY_SECONDS", 0.05)
    async with controlled() as (_, client):
        reader, writer = await opened(client)
        writer.write(HEAD + b"Content-Length: 40\r\n\r\n{")
        async with asyncio.timeout(PATIENCE):
            assert await reader.readline() == b"HTTP/1.1 408 Request Timeout\r\n"
        writer.close()


async def test_a_stream_is_not_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "QUIET_SECONDS", 0.05)
    async with (
        controlled() as (mock, client),
        client.session.get(client.url + "/journal/stream") as stream,
    ):
        reader, writer = await opened(client)
        await until_closed(reader)  # who says nothing has gone meanwhile
        writer.close()
        async with connect(mock) as wire:
            await wire.ask("ApiVersions", 0)
        async with asyncio.timeout(PATIENCE):
            async for line in stream.content:
                if line.startswith(b"event: entry"):
                    break


@pytest.mark.slow
async def test_the_newest_of_too_many_connections_are_closed(monkeypatch):
    monkeypatch.setattr(connection_limits, "MOST_CONNECTIONS", 3)
    async with controlled() as (_, client):
        several = [await opened(client) for _ in range(5)]
        ended = [asyncio.create_task(until_closed(reader)) for reader, _ in several]
        async with asyncio.timeout(PATIENCE):
            while sum(task.done() for task in ended) < 2:
                await asyncio.sleep(0.01)
        assert (await client.get("/state"))[0] == 200
        for _, writer in several:
            writer.close()
        await asyncio.gather(*ended)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X-Y: z\r\n" * 50_000 + b"\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    ],
)
async def test_bytes_that_are_not_http_are_refused_and_not_logged(sent, caplog):
    """Each of these once caused a traceback on stderr."""
    with caplog.at_level(logging.INFO):
        async with controlled() as (_, client):
            reader, writer = await opened(client)
            writer.write(sent)
            answer = await until_closed(reader)
            assert answer == b"" or answer.startswith(b"HTTP/1.0 400"), answer[:100]
            assert (await client.get("/state"))[0] == 200
            writer.close()
    assert "Traceback" not in caplog.text


async def test_a_body_of_more_than_64_kib_is_refused() -> None:
    async with controlled() as (_, client):
        status, answer = await client.post("/clusters", json={"profile": "x" * 70_000})
        assert (status, list(answer)) == (413, ["error"])


async def test_a_stream_sends_large_frames_in_batches() -> None:
    """A batch of a hundred such entries was once gigabytes of JSON in one piece."""
    async with controlled() as (mock, _):
        for _ in range(10):
            mock.journal.record(1, 1, 1, "request", raw=b"\0" * 400_000)
        entries = list(mock.journal)
        assert len(journal_routes._first(entries)) == 2
        assert len(journal_routes._first(entries[:1])) == 1


async def test_the_journal_header_counts_dropped_entries() -> None:
    async with controlled(journal_entries=2) as (mock, client), connect(mock) as wire:
        for _ in range(3):
            await wire.ask("ApiVersions", 0)
        async with client.session.get(client.url + "/journal") as answer:
            assert len(await answer.json()) == 2
            assert answer.headers["Journal-Dropped"] == "5"
