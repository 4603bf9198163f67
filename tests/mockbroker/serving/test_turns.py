"""Turns of connections: when one ends, who is next, and that no byte depends on them.

No test here measures a time: the order of the journal's entries is what turns decide.
"""

import asyncio
import itertools
import socket
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.messages import MetadataResponse
from kproto.records import Record, build_batch
from mockbroker import MockCluster
from mockbroker.serving.loop_turns import LARGE_READ, TaskTurn, Turn, Turns, turns_of_loop
from tests.mockbroker.simulation.security.test_tls import client_context, server_context
from tests.mockbroker.wire import PATIENCE, Wire, connect
from tests.support.event_loops import LOOPS, run_on
from tests.support.full import quick
from tests.support.requests import request_of

KNOWN = request_of("ApiVersions", client_software_name="test", client_software_version="1"), 3
"""What the response cache answers, from the second request on."""
UNKNOWN = request_of("ListPartitionReassignments"), 0
EACH_TRANSPORT = pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
EACH_LOOP = pytest.mark.parametrize("loop", LOOPS)


def bound(requests: int) -> None:
    """Let each turn of this event loop have so many requests, whatever time they take."""
    turns = turns_of_loop()
    turns.most_requests, turns.clock = requests, lambda: 0.0


class Steps:
    """A clock that advances by one second whenever it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def runs(mock: MockCluster) -> list[tuple[int, int]]:
    """The connections of the journal's requests, each with the length of its run."""
    ids = [entry.connection_id for entry in mock.journal.select(direction="request")]
    return [(number, len(list(run))) for number, run in itertools.groupby(ids)]


def frames(wire: Wire, kinds: list[tuple[Any, int]]) -> list[bytes]:
    return [wire.frame(body, version) for body, version in kinds]


async def several(
    stack: AsyncExitStack, mock: MockCluster, count: int, tls: ssl.SSLContext | None
) -> list[Wire]:
    """Connections that have had an answer, and an empty journal."""
    wires = [await stack.enter_async_context(connect(mock, tls=tls)) for _ in range(count)]
    for wire in wires:
        for body, version in (KNOWN, UNKNOWN):
            await wire.ask(body, version)
    mock.journal.clear()
    return wires


async def flooded(
    kinds: list[tuple[Any, int]], *, tls: bool, prepare: Callable[[], None]
) -> list[tuple[int, int]]:
    """Two connections flood with these requests and a third sends one, in this order and before the
    broker reads any. Return the runs of the journal; the connections are 1, 2 and 3."""
    async with AsyncExitStack() as stack:
        mock = await stack.enter_async_context(
            MockCluster(1, topics=["foo=1"], tls=server_context() if tls else None)
        )
        one, two, other = await several(stack, mock, 3, client_context() if tls else None)
        prepare()
        for wire in (one, two):
            wire.send(*frames(wire, kinds))
        other.send(*frames(other, [UNKNOWN]))
        await other.receive()
        for wire in (one, two):
            numbers = [int.from_bytes((await wire.receive())[4:8], "big") for _ in kinds]
            assert numbers == list(range(3, 3 + len(kinds)))
        return runs(mock)


# ---- when a turn ends ----------------------------------------------------------------------------


@EACH_LOOP
@EACH_TRANSPORT
@pytest.mark.parametrize("kind", [KNOWN, UNKNOWN], ids=["known", "unknown"])
def test_a_turn_ends_after_so_many_requests(loop: str, tls: bool, kind: tuple[Any, int]) -> None:
    found = run_on(loop, flooded([kind] * 20, tls=tls, prepare=lambda: bound(5)))
    assert found == [(1, 5), (2, 5), (3, 1)] + [(1, 5), (2, 5)] * 3


@EACH_LOOP
@EACH_TRANSPORT
def test_a_turn_ends_with_the_request_that_exceeds_its_time(loop: str, tls: bool) -> None:
    def prepare() -> None:
        turns = turns_of_loop()
        turns.clock, turns.most_seconds = Steps(), 3.0

    found = run_on(loop, flooded([UNKNOWN] * 9, tls=tls, prepare=prepare))
    assert found == [(1, 3), (2, 3), (3, 1)] + [(1, 3), (2, 3)] * 2


async def test_a_turn_counts_requests_and_reads_the_clock_after_each() -> None:
    clock = Steps()
    turn = Turn(Turns(most_requests=3, most_seconds=100.0, clock=clock), lambda: None)
    turn.begin()
    assert [turn.over() for _ in range(3)] == [False, False, True]
    turn.begin()
    turn.count(2)
    assert turn.requests_left == 1
    assert turn.ends()
    assert turn.waiting
    turn = Turn(Turns(most_requests=100, most_seconds=3.0, clock=clock), lambda: None)
    turn.begin()
    assert [turn.over() for _ in range(3)] == [False, False, True]


async def test_large_reads_that_follow_one_another_belong_to_one_turn() -> None:
    """libuv reads a socket again at once if a read has filled its buffer."""
    turn = Turn(Turns(most_requests=4, clock=lambda: 0.0), lambda: None)
    turn.begin(LARGE_READ)
    assert not turn.over()
    turn.begin(LARGE_READ)
    assert turn.requests_left == 3
    turn.begin(LARGE_READ - 1)
    assert turn.requests_left == 4
    assert not turn.over()
    await asyncio.sleep(0)
    turn.begin(LARGE_READ)
    assert turn.requests_left == 4


@EACH_LOOP
@EACH_TRANSPORT
def test_a_socket_is_not_read_again_and_again_in_one_turn(loop: str, tls: bool) -> None:
    """As by libuv, up to 32 times, with requests so large that one read has few of them."""

    async def read() -> int:
        async with AsyncExitStack() as stack:
            mock = await stack.enter_async_context(
                MockCluster(1, topics=["foo=1"], tls=server_context() if tls else None)
            )
            (wire,) = await several(stack, mock, 1, client_context() if tls else None)
            (connection,) = mock._sockets.listeners[1][0].socket.connections
            bound(10)
            topic = {"name": "x" * 30_000}
            data = wire.frame(request_of("Metadata", topics=[topic]), 1) * 5
            transport: Any = connection._transport
            times = 0
            while transport.is_reading() and times < 32:
                connection.data_received(data)
                times += 1
            return times

    assert run_on(loop, read()) == 2


# ---- who is next ---------------------------------------------------------------------------------


async def test_the_loop_polls_between_two_turns_of_the_queue() -> None:
    turns, seen = Turns(), list[str]()
    loop = asyncio.get_running_loop()

    def turn(name: str) -> Turn:
        def work() -> None:
            seen.append(name)
            if seen.count(name) < 3:
                made.wait()

        made = Turn(turns, work)
        return made

    for name in ("a", "b"):
        turn(name).wait()
    near, far = socket.socketpair()
    with near, far:
        loop.add_reader(near, lambda: seen.append(near.recv(1).decode()))
        far.send(b"!")
        async with asyncio.timeout(PATIENCE):
            while len(seen) < 7:
                await asyncio.sleep(0)
        loop.remove_reader(near)
    assert [name for name in seen if name != "!"] == ["a", "b", "a", "b", "a", "b"]
    assert seen.index("!") < 3


async def test_waiting_twice_is_one_turn() -> None:
    turns, taken = Turns(), list[int]()
    turn = Turn(turns, lambda: taken.append(1))
    turn.wait()
    turn.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    assert taken == [1]
    assert not turn.waiting


async def test_a_failure_in_one_turn_leaves_the_others_theirs() -> None:
    turns, taken, failures = Turns(), list[int](), list[Any]()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: failures.append(context["exception"]))
    Turn(turns, lambda: 1 // 0).wait()
    Turn(turns, lambda: taken.append(1)).wait()
    for _ in range(5):
        await asyncio.sleep(0)
    assert taken == [1]
    assert [type(each) for each in failures] == [ZeroDivisionError]


async def test_a_task_works_in_turns_too() -> None:
    bound(2)
    seen: list[str] = []

    async def work(name: str) -> None:
        turn = TaskTurn()
        for _ in range(6):
            seen.append(name)
            await turn.pause()

    await asyncio.gather(work("a"), work("b"))
    assert "".join(seen) == "aabb" * 3


async def test_a_task_that_is_cancelled_while_it_waits_holds_up_nobody() -> None:
    async def wait() -> None:
        await TaskTurn().next()

    first, second = asyncio.ensure_future(wait()), asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    first.cancel()
    async with asyncio.timeout(PATIENCE):
        await second
    assert first.cancelled()


# ---- nothing is lost -----------------------------------------------------------------------------

LATE = request_of("Metadata", topics=[]), 1
"""What a script answers later."""
KINDS = [KNOWN, UNKNOWN, (request_of("Metadata", topics=None), 12), LATE]


async def answer_later() -> MetadataResponse:
    await asyncio.sleep(0)
    return MetadataResponse(controller_id=7)


async def one_by_one(wire: Wire, kinds: list[tuple[Any, int]]) -> bytes:
    found = b""
    for frame in frames(wire, kinds):
        wire.send(frame)
        found += await wire.receive()
    return found


async def at_once(
    wire: Wire, kinds: list[tuple[Any, int]], cuts: list[int], *, to_the_end: bool
) -> bytes:
    """Send the requests cut at these places, and the end of the stream behind them: at once if
    answers are read ``to_the_end``, else after the last of them. The end would drop an answer that
    is waited for, as from a broker."""
    data = b"".join(frames(wire, kinds))
    places = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    for start, end in itertools.pairwise(places):
        wire.send(data[start:end])
        await asyncio.sleep(0)
    found = b""
    if not to_the_end:
        for _ in kinds:
            found += await wire.receive()
    wire.writer.write_eof()
    return found + await wire.closed()


@pytest.mark.slow
@settings(max_examples=quick(60, 20), deadline=None)
@given(
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=40),
    st.lists(st.integers(0, 5000), max_size=12),
    st.integers(1, 7),
    st.sampled_from(LOOPS),
)
def test_answers_depend_neither_on_turns_nor_on_chunks(kinds, cuts, most, loop):
    async def compare() -> None:
        bound(most)
        async with MockCluster(1, topics=["foo=1"]) as mock:

            @mock.on(3)
            def later(call: Any) -> Any:
                return answer_later() if call.version == LATE[1] else None

            async with connect(mock) as wire:
                expected = await one_by_one(wire, kinds)
            async with connect(mock) as wire:
                assert await at_once(wire, kinds, cuts, to_the_end=LATE not in kinds) == expected

    run_on(loop, compare())


def produce(count: int) -> list[tuple[Any, int]]:
    """Requests without an answer."""
    data = [
        {"index": 0, "records": build_batch([Record(timestamp=1, value=b"%d" % number)])}
        for number in range(count)
    ]
    return [
        (request_of("Produce", acks=0, timeout_ms=1000, name="foo", partition_data=[each]), 7)
        for each in data
    ]


@EACH_LOOP
@EACH_TRANSPORT
def test_requests_that_came_before_the_end_are_carried_out(loop: str, tls: bool) -> None:
    """A producer that wants no answers sends and closes. With TLS, the end of the connection is
    read together with the last requests."""

    async def close_behind() -> tuple[int, str]:
        bound(3)
        async with MockCluster(1, topics=["foo=1"], tls=server_context() if tls else None) as mock:
            async with connect(mock, tls=client_context() if tls else None) as wire:
                await wire.ask(*UNKNOWN)
                wire.send(*frames(wire, produce(50)))
            async with asyncio.timeout(PATIENCE):
                while not mock.journal.select(event="disconnected"):
                    await asyncio.sleep(0.001)
            assert mock.connections(1) == 0
            assert mock._budget.held == 0
            last = list(mock.journal)[-1]
            return mock.cluster.logs.log(("foo", 0)).end_offset, last.event

    assert run_on(loop, close_behind()) == (50, "disconnected")


async def test_a_client_that_is_gone_is_worked_for_until_an_answer_cannot_be_sent() -> None:
    bound(1)
    async with MockCluster(1, topics=["foo=1"]) as mock, connect(mock) as wire:
        for kind in (KNOWN, UNKNOWN):
            await wire.ask(*kind)
        (connection,) = mock._sockets.listeners[1][0].socket.connections
        wire.send(*frames(wire, [*produce(5), UNKNOWN, KNOWN, *produce(5)]))
        async with asyncio.timeout(PATIENCE):
            while not connection._turn.waiting:
                await asyncio.sleep(0)
            assert connection._transport is not None
            connection._transport.abort()
            while mock.connections(1):
                await asyncio.sleep(0)
        assert mock.cluster.logs.log(("foo", 0)).end_offset == 5


# ---- what waits for a turn -----------------------------------------------------------------------


@EACH_LOOP
@EACH_TRANSPORT
def test_a_connection_that_waits_for_a_turn_is_not_read_from(loop: str, tls: bool) -> None:
    async def push() -> None:
        bound(1)
        async with (
            MockCluster(1, tls=server_context() if tls else None) as mock,
            connect(mock, tls=client_context() if tls else None) as wire,
        ):
            await wire.ask(*UNKNOWN)
            (connection,) = mock._sockets.listeners[1][0].socket.connections
            sent = [wire.frame(*UNKNOWN)] * 100_000
            wire.send(*sent)
            for _ in range(200):
                await asyncio.sleep(0)
                transport: Any = connection._transport
                assert connection._turn.waiting is not transport.is_reading()
                assert mock._budget.held <= 2 * 256 * 1024
            assert mock._budget.held
            await mock.stop()
            async with asyncio.timeout(PATIENCE):
                while not mock.journal.select(event="disconnected"):
                    await asyncio.sleep(0)
            assert mock._budget.held == 0
            assert len(mock.journal.select(direction="request")) < len(sent)
            wire.writer.transport.abort()

    run_on(loop, push())


async def test_the_memory_of_a_client_that_is_gone_counts_while_its_requests_wait() -> None:
    bound(1)
    async with MockCluster(1, topics=["foo=1"]) as mock, connect(mock) as wire:
        await wire.ask(*UNKNOWN)
        (connection,) = mock._sockets.listeners[1][0].socket.connections
        wire.send(*frames(wire, produce(50)))
        async with asyncio.timeout(PATIENCE):
            while not connection._turn.waiting:
                await asyncio.sleep(0)
        # As when a write fails, and not as when the broker stops.
        assert connection._transport is not None
        connection._transport.abort()
        while not connection._lost:
            await asyncio.sleep(0)
        assert mock._budget.held
        assert mock.connections(1) == 1
        async with asyncio.timeout(PATIENCE):
            while mock.connections(1):
                await asyncio.sleep(0)
        assert mock._budget.held == 0
        assert mock.cluster.logs.log(("foo", 0)).end_offset == 50


async def test_who_waits_for_a_turn_is_not_idle() -> None:
    bound(1)
    async with MockCluster(1) as mock, connect(mock) as wire:
        await wire.ask(*UNKNOWN)
        (connection,) = mock._sockets.listeners[1][0].socket.connections
        wire.send(*[wire.frame(*UNKNOWN)] * 50)
        async with asyncio.timeout(PATIENCE):
            while not connection._turn.waiting:
                await asyncio.sleep(0)
        for _ in range(10):
            connection.check_idle(1)
        for _ in range(50):
            await wire.receive()
        assert not mock.journal.select(event="idle")
