"""The control port's own limits: slow clients, many clients, large bodies, what is no HTTP."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kproto.messages import ApiVersionsRequest
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
async def test_who_never_comes_to_the_end_of_a_request_is_closed_on(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It held its place for as long as it liked."""
    monkeypatch.setattr(connection_limits, "QUIET_SECONDS", 0.05)
    async with controlled() as (_, client):
        reader, writer = await opened(client)
        writer.write(sent)
        assert await until_closed(reader) == b""
        assert (await client.get("/state"))[0] == 200
        writer.close()


async def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
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
            await wire.ask(ApiVersionsRequest(), 0)
        async with asyncio.timeout(PATIENCE):
            async for line in stream.content:
                if line.startswith(b"event: entry"):
                    break


async def test_of_too_many_the_last_to_come_go(monkeypatch: pytest.MonkeyPatch) -> None:
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
async def test_what_is_no_http_is_refused_without_a_word_in_the_log(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Each was a traceback on standard error, for ever."""
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


async def test_a_stream_tells_large_frames_a_few_at_a_time() -> None:
    """A hundred at once, of as many as a journal holds, were gigabytes of JSON in one piece."""
    async with controlled() as (mock, _):
        for _ in range(10):
            mock.journal.record(1, 1, 1, "request", raw=b"\0" * 400_000)
        entries = list(mock.journal)
        assert len(journal_routes._first(entries)) == 2
        assert len(journal_routes._first(entries[:1])) == 1


async def test_who_reads_the_journal_is_told_what_it_has_dropped() -> None:
    async with controlled(journal_entries=2) as (mock, client), connect(mock) as wire:
        for _ in range(3):
            await wire.ask(ApiVersionsRequest(), 0)
        async with client.session.get(client.url + "/journal") as answer:
            assert len(await answer.json()) == 2
            assert answer.headers["Journal-Dropped"] == "5"
