"""Turns of connections through a proxy, in both directions: when one ends, and that no byte depends
on them. The journal's order is compared; nothing here measures a time."""

import asyncio
import itertools
from contextlib import AsyncExitStack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockbroker import MockCluster
from mockbroker.proxy.frame_stream import FrameStream, frame_end
from mockbroker.proxy.kafka_proxy import KafkaProxy, ProxyOptions
from mockbroker.proxy.recorder import DETAILS, Detail
from mockbroker.serving.loop_turns import Turn, Turns
from tests.mockbroker.proxy.conftest import address, dial
from tests.mockbroker.serving.test_turns import at_once, bound, one_by_one, produce
from tests.mockbroker.simulation.security.test_tls import client_context, server_context
from tests.mockbroker.wire import PATIENCE
from tests.support.event_loops import LOOPS, run_on
from tests.support.full import quick
from tests.support.requests import request_of

RELAYED = request_of("Heartbeat", group_id="g"), 4
READ = request_of("ApiVersions", client_software_name="test", client_software_version="1"), 3
CHANGED = request_of("Metadata", topics=None), 12
REFUSED = request_of("ApiVersions"), 99
KINDS = [RELAYED, READ, CHANGED, (request_of("ListPartitionReassignments"), 0)]
EACH_LOOP = pytest.mark.parametrize("loop", LOOPS)
EACH_TRANSPORT = pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])


async def proxied(
    stack: AsyncExitStack, *, tls: bool = False, detail: Detail = "headers", **options: Any
) -> tuple[MockCluster, KafkaProxy]:
    """A proxy in front of a mock cluster; with ``tls`` on both sides."""
    server = server_context() if tls else None
    mock = await stack.enter_async_context(MockCluster(1, topics=["foo=1"], tls=server))
    proxy = KafkaProxy(
        ProxyOptions(
            upstream=[address(mock.bootstrap)],
            detail=detail,
            tls=server,
            upstream_tls=client_context() if tls else None,
            **options,
        )
    )
    await stack.enter_async_context(proxy)
    return mock, proxy


def runs(proxy: KafkaProxy, direction: Any) -> list[tuple[int, int]]:
    ids = [entry.connection_id for entry in proxy.journal.select(direction=direction)]
    return [(number, len(list(run))) for number, run in itertools.groupby(ids)]


@EACH_LOOP
@EACH_TRANSPORT
@pytest.mark.parametrize("detail", ["headers", "frames"])
@pytest.mark.parametrize("kind", KINDS[:3], ids=["relayed", "read", "changed"])
def test_a_turn_ends_after_so_many_requests(loop, tls, detail, kind):
    async def flood() -> None:
        async with AsyncExitStack() as stack:
            _, proxy = await proxied(stack, tls=tls, detail=detail)
            context = client_context() if tls else None
            wires = [await stack.enter_async_context(dial(proxy, tls=context)) for _ in range(3)]
            for wire in wires:
                await wire.ask(*kind)
            proxy.journal.clear()
            bound(5)
            one, two, other = wires
            for wire in (one, two):
                wire.send(*[wire.frame(*kind) for _ in range(20)])
            other.send(other.frame(*RELAYED))
            await other.receive()
            for wire in (one, two):
                for number in range(2, 22):
                    assert (await wire.receive())[4:8] == number.to_bytes(4, "big")
            first, second, third = (line.session.connection_id for line in _by_age(proxy))
            begin = [(first, 5), (second, 5), (third, 1)]
            assert runs(proxy, "request") == begin + [(first, 5), (second, 5)] * 3
            assert (third, 1) in runs(proxy, "response")[:-1]

    run_on(loop, flood())


def _by_age(proxy: KafkaProxy) -> list[Any]:
    return sorted(proxy.connections, key=lambda each: each.session.connection_id)


@pytest.mark.slow
@settings(max_examples=quick(60, 20), deadline=None)
@given(
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=40),
    st.lists(st.integers(0, 5000), max_size=12),
    st.integers(1, 7),
    st.sampled_from(DETAILS),
    st.sampled_from(LOOPS),
)
def test_answers_depend_neither_on_turns_nor_on_chunks(kinds, cuts, most, detail, loop):
    async def compare() -> None:
        bound(most)
        async with AsyncExitStack() as stack:
            _, proxy = await proxied(stack, detail=detail)
            async with dial(proxy) as wire:
                expected = await one_by_one(wire, kinds)
            async with dial(proxy) as wire:
                assert await at_once(wire, kinds, cuts, to_the_end=False) == expected

    run_on(loop, compare())


@EACH_LOOP
def test_thousands_of_refused_requests_are_answered_in_order(loop: str) -> None:
    """Each was answered within the answer to the one before, until Python's stack was full."""

    async def flood() -> None:
        async with AsyncExitStack() as stack:
            _, proxy = await proxied(stack, profile="kafka-2.4")
            wire = await stack.enter_async_context(dial(proxy))
            frame = bytearray(wire.frame(request_of("ApiVersions"), 4))
            frame[6:8] = (99).to_bytes(2, "big")
            wire.send(bytes(frame) * 2000, wire.frame(*RELAYED))
            for _ in range(2000):
                assert (await wire.receive())[8:10] == (35).to_bytes(2, "big")
            assert (await wire.receive())[4:8] == (2).to_bytes(4, "big")

    run_on(loop, flood())


@EACH_LOOP
@EACH_TRANSPORT
def test_requests_that_came_before_the_end_are_passed_on(loop: str, tls: bool) -> None:
    async def close_behind() -> int:
        bound(3)
        async with AsyncExitStack() as stack:
            mock, proxy = await proxied(stack, tls=tls)
            async with dial(proxy, tls=client_context() if tls else None) as wire:
                await wire.ask(*RELAYED)
                wire.send(*[wire.frame(*each) for each in produce(50)])
            log = mock.cluster.logs.log(("foo", 0))
            async with asyncio.timeout(PATIENCE):
                while proxy.connections or log.end_offset < 50:
                    await asyncio.sleep(0.001)
            assert proxy.budget.held == 0
            return log.end_offset

    assert run_on(loop, close_behind()) == 50


@EACH_LOOP
@EACH_TRANSPORT
@pytest.mark.parametrize("detail", DETAILS)
def test_answers_of_the_upstream_are_passed_on_in_turns_also_after_its_end(
    monkeypatch: pytest.MonkeyPatch, loop: str, tls: bool, detail: Detail
) -> None:
    async def answer_and_close() -> None:
        async with AsyncExitStack() as stack:
            mock, proxy = await proxied(stack, tls=tls, detail=detail)
            wire = await stack.enter_async_context(
                dial(proxy, tls=client_context() if tls else None)
            )
            await wire.ask(*RELAYED)
            (connection,) = proxy.connections
            answers: list[bytes] = []
            seen = connection.upstream_sent
            monkeypatch.setattr(connection, "upstream_sent", answers.append)
            wire.send(*[wire.frame(*RELAYED) for _ in range(30)])
            async with asyncio.timeout(PATIENCE):
                while b"".join(answers).count(b"\0\0\0") < 30 or len(b"".join(answers)) % 30:
                    await asyncio.sleep(0)
            bound(2)
            waited = connection.passage.unanswered
            seen(b"".join(answers))
            assert connection._upstream_turn.waiting
            assert connection.passage.unanswered == waited - 2
            connection.upstream_lost(None)
            assert (await wire.closed()) == b"".join(answers)
            assert proxy.journal.select(event="upstream-closed")
            await mock.stop()

    run_on(loop, answer_and_close())


@EACH_LOOP
def test_a_client_is_not_read_from_before_the_upstream_is_connected(monkeypatch, loop):
    """uvloop begins to read after ``connection_made``, and again and again within one turn."""

    async def push() -> None:
        ready = asyncio.Event()
        async with AsyncExitStack() as stack:
            _, proxy = await proxied(stack)
            connect = proxy.connect

            async def later(*arguments: Any) -> None:
                await ready.wait()
                await connect(*arguments)

            monkeypatch.setattr(proxy, "connect", later)
            wire = await stack.enter_async_context(dial(proxy))
            wire.send(wire.frame(*RELAYED) * 50_000)
            for _ in range(100):
                await asyncio.sleep(0)
            (connection,) = proxy.connections
            assert connection.held_bytes <= 512 * 1024
            ready.set()
            await wire.receive()
            wire.writer.transport.abort()

    run_on(loop, push())


class Copied(bytes):
    """Bytes that count what is cut out of them."""

    cut = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        if isinstance(place, slice):
            Copied.cut += len(found)
            return Copied(found)
        return found


@pytest.mark.parametrize("count", [1000, 2000])
async def test_what_waits_for_many_turns_is_copied_a_bounded_number_of_times(count: int) -> None:
    frame = b"\0\0\0\x0c" + bytes(12)
    turns, passed = Turns(most_requests=1, clock=lambda: 0.0), list[bytes]()
    stream = FrameStream(frame_end, passed, turn=Turn(turns, lambda: None))
    turn: Any = stream._turn
    Copied.cut = 0
    for number in range(count):
        turn.waiting = False
        turn.begin()
        stream.receive(b"" if number else Copied(frame * count))
    assert b"".join(passed) == frame * count
    assert Copied.cut <= 3 * len(frame) * count
