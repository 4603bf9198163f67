"""Event streams deliver entries and actions at once, and resume where a client left off."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto.journal import Entry, Journal
from tests.mockbroker.control.test_control import Client, controlled
from tests.mockbroker.wire import PATIENCE, connect

Event = tuple[str, int | None, Any]


class Stream:
    def __init__(self, response: Any) -> None:
        self._response = response

    async def next(self) -> Event:
        """The name, id and data of the next event; comments are skipped."""
        async with asyncio.timeout(PATIENCE):
            while True:
                lines = []
                while line := (await self._response.content.readline()).decode().rstrip("\n"):
                    lines.append(line)
                fields = dict(line.split(": ", 1) for line in lines)
                if fields.keys() >= {"event", "data"}:
                    number = int(fields["id"]) if "id" in fields else None
                    return fields["event"], number, json.loads(fields["data"])

    async def take(self, count: int) -> list[Event]:
        return [await self.next() for _ in range(count)]


@asynccontextmanager
async def following(client: Client, path: str, **headers: str) -> AsyncIterator[Stream]:
    async with client.session.get(client.url + path, headers=headers) as response:
        assert response.status == 200, await response.text()
        assert response.content_type == "text/event-stream"
        yield Stream(response)


async def test_a_stream_sends_past_entries_then_new_ones():
    async with controlled() as (mock, client), connect(mock) as wire:
        await wire.ask("ApiVersions", 0)
        async with following(client, "/journal/stream?raw=hex") as stream:
            past = await stream.take(3)
            await wire.ask("Metadata", 9, topics=[])
            now = await stream.take(2)
        assert [(name, number) for name, number, _ in past + now] == [
            ("entry", sequence) for sequence in range(1, 6)
        ]
        listed = (await client.get("/journal?raw=hex"))[1]
        assert [data for _, _, data in past + now] == listed[:5]
        assert bytes.fromhex(listed[4]["raw"]) == mock.journal.newer(4)[0].raw
        assert [row.get("api") for row in listed[:5]] == [
            None, "ApiVersions", "ApiVersions", "Metadata", "Metadata",
        ]  # fmt: skip


async def test_a_reconnecting_client_gets_every_entry_once():
    async with controlled() as (mock, client), connect(mock) as wire:
        async with following(client, "/journal/stream") as stream:
            await wire.ask("Metadata", 9, topics=[])
            _, last, _ = (await stream.take(2))[-1]
        await wire.ask("ApiVersions", 0)
        async with following(client, "/journal/stream", **{"Last-Event-ID": str(last)}) as stream:
            assert [number for _, number, _ in await stream.take(3)] == [3, 4, 5]
        async with following(client, "/journal/stream?after=4") as stream:
            assert (await stream.next())[1] == 5


async def test_a_late_client_can_skip_to_the_latest_entries():
    async with controlled() as (mock, client):
        for _ in range(500):
            mock.journal.record(0, 1, 1, "event", event="one")
        async with following(client, "/journal/stream?after=7&latest=3") as stream:
            assert await stream.next() == ("gap", None, {"after": 7, "next": 498})
            assert [number for _, number, _ in await stream.take(3)] == [498, 499, 500]
            mock.journal.record(0, 1, 1, "event", event="two")
            assert (await stream.next())[1] == 501
        assert (await client.get("/journal/stream?latest=0"))[0] == 400


async def test_filters_apply_to_new_entries():
    async with controlled() as (mock, client), connect(mock) as wire:
        path = "/journal/stream?api=3&direction=request&client_id=wire"
        async with following(client, path) as stream:
            for _ in range(3):
                await wire.ask("ApiVersions", 0)
                await wire.ask("Metadata", 9, topics=[])
            assert [data["api_key"] for _, _, data in await stream.take(3)] == [3, 3, 3]


async def test_a_stream_reports_dropped_entries():
    async with controlled(journal=Journal(max_entries=2)) as (mock, client), connect(mock) as wire:
        for _ in range(3):
            await wire.ask("ApiVersions", 0)
        async with following(client, "/journal/stream") as stream:
            assert await stream.next() == ("gap", None, {"after": 0, "next": 6})
            assert [number for _, number, _ in await stream.take(2)] == [6, 7]


async def test_the_log_too():
    async with controlled(clock="manual") as (mock, client):
        before = len(mock.cluster.log)
        async with following(client, f"/log/stream?since={before}") as stream:
            await client.step("leave-isr", partition="foo-0", broker=3)
            name, number, data = await stream.next()
            assert (name, number, data["cause"]) == ("action", before, "leave_isr")
            mock.join_isr("foo-0", 3)
            assert (await stream.next())[1] == before + 1
        async with following(client, "/log/stream", **{"Last-Event-ID": str(before)}) as stream:
            assert (await stream.next())[1] == before + 1


async def test_the_log_after_a_reset():
    async with controlled(clock="manual") as (mock, client):
        await mock.snapshot()
        before = len(mock.cluster.log)
        async with following(client, f"/log/stream?since={before}") as stream:
            for _ in range(3):
                mock.leave_isr("foo-0", 3)
                mock.join_isr("foo-0", 3)
            await stream.take(6)
            await client.step("reset")
            await client.step("leave-isr", partition="foo-0", broker=2)
            assert (await stream.next())[1] == before


async def test_a_stream_ends_with_its_cluster_and_with_the_server():
    async with controlled() as (_, client):
        await client.post("/clusters", json={"brokers": 1})
        async with following(client, "/clusters/2/log/stream") as stream:
            async with client.session.delete(client.url + "/clusters/2") as response:
                assert response.status == 200
            while (await stream.next())[0] != "end":
                pass


async def test_no_hooks_are_set_without_listeners():
    entries: list[Entry] = []
    async with controlled(journal=Journal(sink=entries.append)) as (mock, client):
        sink, on_step = mock.journal.sink, [*mock.cluster.turns.on_step]
        async with following(client, "/journal/stream") as one:
            assert mock.journal.sink != sink
            async with connect(mock) as wire, following(client, "/log/stream") as other:
                await wire.ask("ApiVersions", 0)
                await asyncio.gather(one.take(3), other.take(1))
        async with asyncio.timeout(PATIENCE):
            while mock.journal.sink != sink:
                # The server finds out when it next has something to say.
                mock.leave_isr("foo-0", 3)
                mock.join_isr("foo-0", 3)
                mock.journal.record(0, 1, 1, "event", event="ping")
                await asyncio.sleep(0.01)
        assert mock.cluster.turns.on_step == on_step
        assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))


async def test_the_number_of_streams_is_limited(monkeypatch):
    monkeypatch.setattr("mockbroker.control.event_streams._MOST_LISTENERS", 1)
    async with controlled() as (_, client), following(client, "/log/stream"):
        status, answer = await client.get("/log/stream")
        assert (status, "1 streams are open" in answer["error"]) == (503, True)


@pytest.mark.parametrize("version", [0, 12])
async def test_a_frame_field_by_field(version: int):
    async with controlled() as (mock, client), connect(mock) as wire:
        await wire.ask("Metadata", version, topics=[])
        for row in (await client.get("/journal?api=3&raw=hex"))[1]:
            _, frame = await client.get(f"/journal/{row['sequence']}")
            assert frame["hex"] == row["raw"]
            assert "problem" not in frame
            size = len(frame["hex"]) // 2
            assert frame["end"] == size
            leaves = [field for field in frame["fields"] if field["leaf"]]
            at = 0
            for leaf in leaves:
                assert leaf["offset"] == at
                at += leaf["length"]
            assert at == size
            assert leaves[0]["path"] == "size"


async def test_a_damaged_frame_is_annotated_up_to_the_damage():
    async with controlled() as (mock, client):
        async with connect(mock) as wire:
            wire.send(b"\0\0\0\x0c\0\3\0\x0c\0\0\0\1\0\1x\xff")
            await wire.closed()
        (row,) = (await client.get("/journal?event=malformed"))[1]
        _, frame = await client.get(f"/journal/{row['sequence']}")
        assert frame["problem"]
        assert frame["end"] < len(frame["hex"]) // 2


async def test_an_event_without_a_frame_has_no_fields():
    async with controlled() as (mock, client):
        async with connect(mock):
            pass
        _, frame = await client.get("/journal/1")
        assert (frame["hex"], frame["fields"], frame["end"]) == ("", [], 0)
