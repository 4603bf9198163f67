"""What clients may take: frames, connections, memory, time. Who takes more is closed on, the
journal says why, and everybody else is answered."""

import asyncio
import json
import socket
import struct
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import Any

import click
import pytest

from kproto.journal import Journal
from mockbroker import MockCluster
from mockbroker.cli import main
from mockbroker.cli.cluster_flags import values_of
from mockbroker.cli.serve import serve
from mockbroker.errors import ClusterError
from mockbroker.faults.documents import fault_of
from mockbroker.faults.matching import ActiveFault
from mockbroker.options import DEFAULT_LIMITS, Limits
from mockbroker.serving.limits import MAX_BEFORE_SASL, BufferBudget
from mockbroker.simulation.state.timers import Timers
from tests.mockbroker.control.test_control import controlled
from tests.mockbroker.wire import PATIENCE, Wire, connect
from tests.support.requests import request_of

ASKED = request_of("ApiVersions")
MIB = 1024 * 1024
BEGUN = struct.pack(">i", 50 * MIB)
"""The size of a frame that is never finished."""


async def noted(mock: MockCluster, event: str, count: int = 1) -> list[str]:
    """The notes of so many events, once they are there."""
    async with asyncio.timeout(PATIENCE):
        while len(found := mock.journal.select(event=event)) < count:
            await asyncio.sleep(0.001)
    return [entry.note for entry in found]


# ---- frames --------------------------------------------------------------------------------------


async def test_a_frame_of_the_limit_is_read_and_one_byte_more_is_not() -> None:
    async with MockCluster(1) as mock, connect(mock) as wire:
        frame = wire.frame(ASKED, 0)
    async with MockCluster(1, max_frame_bytes=len(frame) - 4) as mock, connect(mock) as wire:
        assert (await wire.ask(ASKED, 0)).error_code == 0
        wire.send(wire.frame(ASKED, 0, client_id="wires"))
        assert await wire.closed() == b""
        (note,) = await noted(mock, "malformed")
        assert note == f"frame size {len(frame) - 3} is more than the {len(frame) - 4} allowed"


async def test_who_has_not_authenticated_may_send_half_a_mebibyte_and_who_has_any_frame() -> None:
    """Kafka's ``sasl.server.max.receive.size``: before, memory is nobody's to ask for."""
    async with MockCluster(1, sasl=["PLAIN:alice:pencil"]) as mock:
        async with connect(mock) as wire:
            wire.send(struct.pack(">i", MAX_BEFORE_SASL + 1))
            assert await wire.closed() == b""
            assert "is more than the 524288 allowed" in (await noted(mock, "malformed"))[0]
        async with connect(mock) as wire:
            await wire.ask("SaslHandshake", 1, mechanism="PLAIN")
            await wire.ask("SaslAuthenticate", 1, auth_bytes=b"\0alice\0pencil")
            wire.send(struct.pack(">i", MAX_BEFORE_SASL + 1) + b"\0" * (MAX_BEFORE_SASL + 1))
            await wire.closed()
            (first, second) = await noted(mock, "malformed", 2)
            assert "allowed" in first
            assert "allowed" not in second


async def test_a_token_of_separators_is_taken_apart_no_further_than_kafka_does() -> None:
    """Each of a hundred million was a part of its own, fifty times the size of the token."""
    async with MockCluster(1, sasl=["PLAIN:alice:pencil"]) as mock, connect(mock) as wire:
        await wire.ask("SaslHandshake", 1, mechanism="PLAIN")
        answer = await wire.ask("SaslAuthenticate", 1, auth_bytes=b"\0" * 100_000)
        assert answer.error_message == "Invalid SASL/PLAIN response: expected 3 tokens, got 4"


# ---- connections ---------------------------------------------------------------------------------


async def test_one_connection_too_many_is_closed_and_another_may_come_when_one_goes() -> None:
    async with MockCluster(2, max_connections=3) as mock, AsyncExitStack() as stack:
        wires = [await stack.enter_async_context(connect(mock)) for _ in range(3)]
        for wire in wires:
            await wire.ask(ASKED, 0)
        async with connect(mock) as fourth:
            assert await fourth.closed() == b""
        assert await noted(mock, "over-limit") == ["the broker has 3 connections, its limit"]
        async with connect(mock, 2) as elsewhere:
            await elsewhere.ask(ASKED, 0)
        wires[0].writer.close()
        await noted(mock, "disconnected", 3)
        async with connect(mock) as another:
            assert (await another.ask(ASKED, 0)).error_code == 0
        assert mock.connections(1) <= 3


async def test_three_hundred_at_a_time_are_let_in_without_one_having_to_try_again() -> None:
    """Behind asyncio's hundred the system drops a client's SYN, and it tries again after a second:
    whoever connected in a storm of others waited, and waited."""
    async with MockCluster(1) as mock:
        host, port = mock.addresses[1].split(":")
        # Nothing is accepted meanwhile: this thread is the broker's.
        storm = [socket.create_connection((host, int(port)), timeout=0.5) for _ in range(300)]
        async with connect(mock) as wire:
            assert (await wire.ask(ASKED, 0)).error_code == 0
        for each in storm:
            each.close()


# ---- memory --------------------------------------------------------------------------------------


async def begin(wire: Wire, size: int) -> None:
    """Send the beginning of a frame that has no end."""
    wire.send(BEGUN + b"\0" * size)
    await wire.writer.drain()


async def test_who_holds_most_of_the_memory_goes_and_not_who_asks_for_the_last_of_it() -> None:
    async with (
        MockCluster(1, max_buffered_bytes=8 * MIB) as mock,
        connect(mock) as greedy,
        connect(mock) as modest,
        connect(mock) as asking,
    ):
        await begin(greedy, 6 * MIB)
        await begin(modest, 3 * MIB)
        assert await greedy.closed() == b""
        (note,) = await noted(mock, "over-limit")
        assert note.endswith("all connections together may buffer 8388608")
        assert (await asking.ask(ASKED, 0)).error_code == 0
        assert not modest.reader.at_eof()
        assert mock._budget.held <= 3 * MIB + 4


async def test_answers_that_nobody_reads_count_and_are_forgotten_with_the_connection() -> None:
    async with (
        MockCluster(1, topics=["foo:100:1"], max_buffered_bytes=60_000) as mock,
        connect(mock) as deaf,
        connect(mock) as asking,
    ):
        question = deaf.frame(request_of("Metadata", topics=None), 12)
        for _ in range(3000):
            deaf.send(question)
        await noted(mock, "over-limit")
        assert (await asking.ask(ASKED, 0)).error_code == 0
        await noted(mock, "disconnected")
        assert mock._budget.held == 0


async def test_behind_a_question_that_is_waited_for_little_is_read() -> None:
    async with MockCluster(1) as mock, connect(mock) as pushing, connect(mock) as asking:
        answer = asyncio.Event()

        @mock.on(46)
        async def late(_call: Any) -> dict[str, Any]:
            await answer.wait()
            return {"throttleTimeMs": 0, "errorCode": 0, "errorMessage": None, "topics": []}

        pushing.send(pushing.frame(request_of("ListPartitionReassignments"), 0), b"\0" * 10 * MIB)
        async with asyncio.timeout(PATIENCE):
            while not mock._budget.held:
                await asyncio.sleep(0.001)
        for _ in range(50):
            await asking.ask(ASKED, 0)
        assert mock._budget.held < MIB
        answer.set()
        await pushing.closed()  # a frame of no bytes is none


def test_what_is_held_is_what_each_has_said_last() -> None:
    room = BufferBudget(Limits(max_buffered_bytes=100))
    assert room.hold("a", 60) is None
    assert room.hold("b", 40) is None
    assert room.hold("b", 41) == "a"
    assert room.hold("a", 0) is None
    assert room.held == 41


# ---- time ----------------------------------------------------------------------------------------


async def test_the_idle_are_closed_and_who_waits_for_the_broker_is_not_idle() -> None:
    async with MockCluster(1, idle_timeout_ms=60) as mock:
        answer = asyncio.Event()

        @mock.on(46)
        async def late(_call: Any) -> dict[str, Any]:
            await answer.wait()
            return {"throttleTimeMs": 0, "errorCode": 0, "errorMessage": None, "topics": []}

        async with connect(mock) as waiting, connect(mock) as idle:
            waiting.send(waiting.frame(request_of("ListPartitionReassignments"), 0))
            idle.send(BEGUN)
            assert await idle.closed() == b""
            assert await noted(mock, "idle") == ["no bytes were received or sent for 60 ms"]
            answer.set()
            await waiting.receive()
            assert await waiting.closed() == b""  # from then on it is
            assert len(await noted(mock, "idle", 2)) == 2


@pytest.mark.slow
async def test_who_never_reads_the_end_is_closed_on_in_the_end() -> None:
    """Its last answers cannot be sent, so that it never was gone, and stayed in the count."""
    async with (
        MockCluster(1, topics=["foo:100:1"], idle_timeout_ms=200) as mock,
        connect(mock) as deaf,
    ):
        deaf.send(*[deaf.frame(request_of("Metadata", topics=None), 12)] * 3000)
        await noted(mock, "disconnected")
        assert mock.connections(1) == 0


async def test_without_a_timeout_nobody_looks() -> None:
    async with MockCluster(1, idle_timeout_ms=None) as mock:
        assert mock._sockets.listeners[1][0].socket._next_check is None


# ---- what is kept --------------------------------------------------------------------------------


def test_the_journal_counts_what_peers_choose_also_where_there_is_no_frame() -> None:
    """A request that nobody could read leaves no frame where a password may stand in it, and its
    client id (of 32 KiB at most) was kept a hundred thousand times, uncounted."""
    journal = Journal(max_entries=1000, max_bytes=100_000)
    for _ in range(50):
        journal.record(1, 1, 1, "event", client_id="c" * 32_000, note="n" * 1000)
    assert len(journal) == 3
    assert (journal.size, journal.dropped, journal.dropped_bytes) == (3 * 33_000, 47, 47 * 33_000)


async def test_the_journal_of_a_cluster_is_as_long_as_it_is_told() -> None:
    async with MockCluster(1, journal_entries=5) as mock, connect(mock) as wire:
        for _ in range(10):
            await wire.ask(ASKED, 0)
        assert len(mock.journal) == 5
        assert mock.journal.dropped == 16  # connected, ten questions, ten answers


def test_a_rule_about_the_first_connections_forgets_the_others() -> None:
    """It remembered each that ever asked."""
    fault = fault_of({"name": "first", "connection": "1-2", "delay": "0ms"})
    active = ActiveFault("first", fault, None, None, Timers())
    numbers = [active._number(connection_id) for connection_id in range(1000)]
    assert numbers[:4] == [1, 2, 3, 3]
    assert active._number(1) == 2
    assert len(active._connections) == 2


# ---- how they are set ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("--max-frame-bytes", "104857601", "is not in the range 1<=x<=104857600"),
        ("--max-connections", "0", "is not in the range"),
        ("--max-buffered-bytes", "lots", "is not a valid integer range"),
        ("--idle-timeout", "0ms", "must be at least 1ms; use off to disable it"),
        ("--idle-timeout", "soon", "'soon' is not a duration: use a number and a unit"),
        ("--journal-entries", "0", "is not in the range"),
        ("--journal-bytes", "-1", "is not in the range"),
    ],
)
def test_a_limit_that_makes_no_sense_is_bad_usage(option, value, problem, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["serve", option, value])
    assert ended.value.code == 2
    assert option in (said := capsys.readouterr().err)
    assert problem in said


@pytest.mark.parametrize("name", [*asdict(DEFAULT_LIMITS)])
async def test_python_and_the_control_port_refuse_them_too(name: str) -> None:
    with pytest.raises(ClusterError, match=f'"{name}" is -1; it must be between . and [0-9]+'):
        MockCluster(**{name: -1})
    async with controlled() as (_, client):
        status, answer = await client.post("/clusters", json={name: -1})
        assert status == 400
        assert f'"{name}" is -1' in answer["error"]
        status, answer = await client.post("/clusters", json={name: 10_000})
        assert status == 201, json.dumps(answer)


def test_off_is_never() -> None:
    with serve.make_context("serve", ["--idle-timeout", "off"]) as context:
        assert values_of(Limits, context.params)["idle_timeout_ms"] is None
    assert isinstance(serve, click.Command)
