"""ElectLeaders (43) on sockets: KIP-183's bytes made by hand, answers that come later, and calls
that overlap."""

import asyncio
from collections.abc import Sequence
from struct import pack
from typing import Any

import aiohttp
import pytest

from kproto.client import Admin, PreferredLeaderNotAvailableError, RequestTimedOutError
from mockbroker import MockCluster
from mockbroker.control import ControlServer
from mockbroker.errors import ClusterError
from tests.mockbroker.grammar import array, frame, text
from tests.mockbroker.wire import PATIENCE, connect
from tests.support.requests import request_of

DRAFT = "kip-183"
TOPICS = ["foo=1,2,3", "bar=1,2,3"]
Wanted = Sequence[tuple[str, Sequence[int]]] | None
Rows = Sequence[tuple[str, Sequence[tuple[int, int, str | None]]]]


def request(number: int, wanted: Wanted, timeout_ms: int | None = 1000) -> bytes:
    """Without a time-out where that is None: the grammar of the page, word for word."""
    topics = [text(t) + array([pack(">i", i) for i in ids]) for t, ids in wanted or ()]
    end = b"" if timeout_ms is None else pack(">i", timeout_ms)
    body = array(None if wanted is None else topics) + end
    return frame(pack(">hhi", 43, 0, number) + text("acc") + body)


def response(number: int, rows: Rows) -> bytes:
    topics = [
        text(t) + array([pack(">ih", i, code) + text(why) for i, code, why in each])
        for t, each in rows
    ]
    return frame(pack(">ii", number, 0) + array(topics))


async def electable(mock: MockCluster) -> None:
    """foo-0 and bar-0: broker 1 could lead, broker 2 does. The controller is broker 1."""
    await mock.stop_broker(1)
    await mock.start_broker(1)
    for name in ("foo", "bar"):
        mock.join_isr(f"{name}-0", 1)
    mock.failover(1)


def cluster(**options: Any) -> MockCluster:
    return MockCluster(
        topics=options.pop("topics", TOPICS), profile=options.pop("profile", DRAFT),
        clock=options.pop("clock", "manual"), **options,
    )  # fmt: skip


def leaders(mock: MockCluster) -> dict[str, int]:
    return {name: mock.cluster.topics.partition(name, 0).leader for name in ("foo", "bar")}


async def until(happens: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not happens():
            await asyncio.sleep(0.001)


def asked(mock: MockCluster, count: int) -> Any:
    return lambda: len(mock.journal.select(api=43, direction="request")) == count


def answered(mock: MockCluster) -> int:
    return len(mock.journal.select(api=43, direction="response"))


# ---- what is said --------------------------------------------------------------------------------


@pytest.mark.requirement("K183-08", "K183-10", "A-27", "A-29")
async def test_kip_183_byte_by_byte() -> None:
    async with cluster() as mock:
        await electable(mock)
        async with connect(mock) as wire:
            wire.send(request(7, [("foo", [0, 0, 9]), ("foo", [0]), ("nope", [1])]))
            absent = "The partition does not exist."
            assert await wire.receive() == response(
                7, [("foo", [(0, 0, None), (9, 3, absent)]), ("nope", [(1, 3, absent)])]
            )
            assert leaders(mock) == {"foo": 1, "bar": 2}
            wire.send(request(8, None), request(9, []), request(10, [("foo", [0])]))
            every = [("bar", [(0, 0, None)]), ("foo", [(0, 0, None)])]
            assert await wire.receive() == response(8, every)
            assert await wire.receive() == response(9, [])
            assert await wire.receive() == response(10, [("foo", [(0, 0, None)])])
            assert leaders(mock) == {"foo": 1, "bar": 1}
        assert mock.served[43].lowest == mock.served[43].highest == 0
        assert {45, 46}.isdisjoint(mock.served)


@pytest.mark.requirement("A-27")
@pytest.mark.parametrize("dialect", [DRAFT, "auto", "kafka"])
async def test_the_pages_grammar_has_no_time_out_and_is_none_we_read(dialect: str) -> None:
    """Whatever the listener speaks, the connection is closed; others are served on."""
    async with cluster(dialect=dialect) as mock:
        async with connect(mock) as wire:
            wire.send(request(1, [("foo", [0])], timeout_ms=None))
            assert await wire.closed() == b""
        (entry,) = mock.journal.select(event="malformed")
        assert entry.api_key == 43
        async with connect(mock) as wire:
            wire.send(request(2, [("foo", [0])]))
            assert await wire.receive() == response(2, [("foo", [(0, 0, None)])])


@pytest.mark.requirement("K183-06", "K183-10")
async def test_another_broker_says_who_it_is_not() -> None:
    async with cluster() as mock, connect(mock, 2) as wire:
        wire.send(request(1, [("foo", [0, 0]), ("none", []), ("bar", [5])]), request(2, None))
        assert await wire.receive() == response(
            1, [("foo", [(0, 41, None)]), ("bar", [(5, 41, None)])]
        )
        assert await wire.receive() == response(
            2, [("bar", [(0, 41, None)]), ("foo", [(0, 41, None)])]
        )


@pytest.mark.requirement("K183-09")
async def test_a_controller_that_hosts_no_replica_elects() -> None:
    """Error 3 is for what exists on no broker, not for what is not here."""
    async with cluster(topics=["foo=2,3"]) as mock:
        await mock.stop_broker(2)
        await mock.start_broker(2)
        mock.join_isr("foo-0", 2)
        assert mock.cluster.state.controller_id == 1
        async with connect(mock) as wire:
            wire.send(request(1, [("foo", [0])]))
            assert await wire.receive() == response(1, [("foo", [(0, 0, None)])])
        assert mock.cluster.topics.partition("foo", 0).leader == 2


@pytest.mark.requirement("K183-06")
async def test_an_unknown_type_comes_before_who_is_the_controller() -> None:
    """Brokers with ZooKeeper trip over it before they ask."""
    async with cluster(profile="kafka-3.9-zk") as mock, connect(mock, 2) as wire:
        body = request_of("ElectLeaders", election_type=9, topic="foo", partitions=[0])
        answer = await wire.ask(body, 2)
        assert answer.error_code == -1
        assert answer.replica_election_results[0].partition_result[0].error_code == -1
        body.election_type = 0
        answer = await wire.ask(body, 2)
        assert answer.error_code == 0
        assert answer.replica_election_results[0].partition_result[0].error_code == 41


# ---- when it is said -----------------------------------------------------------------------------


@pytest.mark.requirement("K183-14")
@pytest.mark.parametrize("profile", [DRAFT, "kafka-2.3", "kafka-2.4", "kafka-3.9-zk"])
async def test_not_before_the_broker_shows_it(profile: str) -> None:
    async with cluster(profile=profile) as mock:
        await electable(mock)
        mock.set_propagation(200)
        async with connect(mock) as wire, connect(mock) as other:
            wire.send(request(1, [("foo", [0])]))
            await until(asked(mock, 1))
            for advanced, leader in ((199, 2), (1, 1)):
                mock.advance(advanced)
                metadata = await other.ask("Metadata", 1, topics=None)
                (foo,) = [each for each in metadata.topics if each.name == "foo"]
                assert foo.partitions[0].leader_id == leader
                assert answered(mock) == (leader == 1)
            assert await wire.receive() == response(1, [("foo", [(0, 0, None)])])


@pytest.mark.requirement("K183-14")
@pytest.mark.parametrize("profile", [DRAFT, "kafka-3.9-zk"])
async def test_it_waits_for_the_broker_that_was_asked(profile: str) -> None:
    async with cluster(profile=profile) as mock:
        await electable(mock)
        mock.hold_metadata(1)
        async with connect(mock) as wire:
            wire.send(request(1, [("foo", [0])]))
            await until(asked(mock, 1))
            assert mock.cluster.controller.metadata_view(2).topics["foo"].partitions[0].leader == 1
            mock.advance(999)
            assert answered(mock) == 0
            mock.release_metadata(1)
            assert await wire.receive() == response(1, [("foo", [(0, 0, None)])])


@pytest.mark.requirement("K183-14")
async def test_kraft_answers_before_the_broker_knows() -> None:
    async with cluster(profile="kafka-4.1") as mock:
        await electable(mock)
        mock.hold_metadata(1)
        async with connect(mock) as wire:
            wire.send(request(1, [("foo", [0])]))
            assert await wire.receive() == response(1, [("foo", [(0, 0, None)])])


@pytest.mark.requirement("K183-12", "K183-13", "A-31")
async def test_a_time_out_and_later_the_new_leader() -> None:
    """What this connection asks meanwhile waits behind it, as in Kafka."""
    async with cluster() as mock:
        await electable(mock)
        mock.hold_elections()
        async with connect(mock) as wire:
            wire.send(request(1, [("foo", [0])], 500), wire.frame(request_of("Metadata"), 1))
            await until(asked(mock, 1))
            mock.advance(499)
            await asyncio.sleep(0)
            assert answered(mock) == 0
            assert mock.journal.select(api=3) == []
            mock.advance(1)
            assert await wire.receive() == response(1, [("foo", [(0, 7, None)])])
            await wire.receive()
        assert leaders(mock)["foo"] == 2
        mock.release_elections()
        assert leaders(mock)["foo"] == 1


@pytest.mark.requirement("K183-11", "A-30")
async def test_two_callers_take_turns() -> None:
    async with cluster() as mock:
        await electable(mock)
        mock.hold_elections()
        async with connect(mock) as one, connect(mock) as two, connect(mock) as three:
            one.send(request(1, [("foo", [0])], 10_000))
            await until(asked(mock, 1))
            two.send(request(2, [("bar", [0])], 100))
            three.send(request(3, [("bar", [0])], 10_000))
            await until(asked(mock, 3))
            mock.advance(100)
            assert await two.receive() == response(2, [("bar", [(0, 7, None)])])
            mock.release_elections()
            assert await one.receive() == response(1, [("foo", [(0, 0, None)])])
            assert await three.receive() == response(3, [("bar", [(0, 0, None)])])
        kinds = [each.kind for each in mock.cluster.log if each.kind.startswith("Election")]
        assert kinds == ["ElectionsHeld", "ElectionEnqueued", "ElectionsReleased",
                         "ElectionProcessed", "ElectionEnqueued", "ElectionProcessed"]  # fmt: skip


@pytest.mark.requirement("A-30")
async def test_busy_as_an_error() -> None:
    async with cluster(busy_elections_fail=True) as mock:
        await electable(mock)
        mock.hold_elections()
        async with connect(mock) as one, connect(mock) as two:
            one.send(request(1, [("foo", [0])]))
            await until(asked(mock, 1))
            two.send(request(2, [("bar", [0])]))
            assert await two.receive() == response(2, [("bar", [(0, 7, None)])])
            mock.release_elections()
            assert await one.receive() == response(1, [("foo", [(0, 0, None)])])


@pytest.mark.requirement("K183-12")
async def test_real_time_runs_out_too() -> None:
    async with cluster(clock="wall") as mock:
        await electable(mock)
        mock.hold_elections()
        async with connect(mock) as wire:
            wire.send(request(1, [("foo", [0])], 20))
            assert await wire.receive() == response(1, [("foo", [(0, 7, None)])])


@pytest.mark.requirement("K183-14")
async def test_real_time_brings_the_news() -> None:
    async with cluster(clock="wall", propagation_ms=20) as mock:
        await electable(mock)
        async with connect(mock) as wire:
            wire.send(request(1, [("foo", [0])], 60_000))
            assert await wire.receive() == response(1, [("foo", [(0, 0, None)])])
            assert mock.cluster.controller.metadata_view(1).topics["foo"].partitions[0].leader == 1


async def test_a_client_that_goes_away_leaves_nothing_behind() -> None:
    async with cluster() as mock:
        await electable(mock)
        mock.hold_elections()
        async with connect(mock) as one, connect(mock) as two:
            one.send(request(1, [("foo", [0])], 60_000))
            await until(asked(mock, 1))
            two.send(request(2, [("bar", [0])], 60_000))
            await until(asked(mock, 2))
            assert mock.cluster.timers.next_due_ms is not None
        await until(lambda: mock.connections(1) == 0)
        await until(lambda: mock.cluster.timers.next_due_ms is None)
        mock.release_elections()
        assert leaders(mock) == {"foo": 1, "bar": 2}, "who waited for the flag never got it"
        assert answered(mock) == 0


async def test_a_broker_that_stops_is_not_waited_for() -> None:
    async with cluster() as mock:
        await electable(mock)
        mock.hold_elections()
        async with connect(mock) as wire:
            wire.send(request(1, [("foo", [0])], 60_000))
            await until(asked(mock, 1))
            await mock.stop_broker(1)
            assert await wire.closed() == b""
        await until(lambda: mock.cluster.timers.next_due_ms is None)
        mock.release_elections()


async def test_a_controller_that_moves_says_so() -> None:
    async with cluster() as mock:
        await electable(mock)
        mock.hold_elections()
        async with connect(mock) as wire:
            wire.send(request(1, [("foo", [0])], 60_000))
            await until(asked(mock, 1))
            mock.failover(3)
            assert await wire.receive() == response(1, [("foo", [(0, 41, None)])])


# ---- by clients and controls ---------------------------------------------------------------------


@pytest.mark.requirement("K183-01", "K183-05", "K183-25")
@pytest.mark.parametrize("dialect", [DRAFT, "kafka"])
async def test_admin(dialect: str) -> None:
    async with cluster(clock="wall") as mock:
        await electable(mock)
        async with Admin(mock.bootstrap, dialect=dialect, retry_backoff_ms=1) as admin:
            await admin.elect_preferred_leaders([("foo", 0)]).all()
            assert leaders(mock) == {"foo": 1, "bar": 2}
            found = await admin.elect_preferred_leaders().partitions()
            assert found == {("foo", 0): None, ("bar", 0): None}, "2.2 names them all"
            await mock.stop_broker(1)
            failed = admin.elect_preferred_leaders([("foo", 0)], timeout_ms=20_000)
            with pytest.raises(PreferredLeaderNotAvailableError, match="Failed to elect leader"):
                await failed.all()


@pytest.mark.requirement("K183-12", "A-31")
async def test_admin_hears_of_a_time_out() -> None:
    async with cluster() as mock:
        await electable(mock)
        mock.hold_elections()
        async with Admin(mock.bootstrap, retry_backoff_ms=1) as admin:
            result = admin.elect_preferred_leaders([("foo", 0)], timeout_ms=30_000)
            await until(asked(mock, 1))
            mock.advance(30_000)
            with pytest.raises(RequestTimedOutError):
                await result.partition_result(("foo", 0))


async def test_controls_by_http() -> None:
    async with cluster() as mock:
        await electable(mock)
        control = ControlServer(mock)
        await control.start()
        try:
            async with aiohttp.ClientSession() as session, connect(mock) as wire:

                async def post(command: str, **body: Any) -> list[str]:
                    async with session.post(f"{control.url}/{command}", json=body) as answer:
                        assert answer.status == 200, await answer.text()
                        return [each["kind"] for each in (await answer.json())["actions"]]

                assert await post("propagation", duration="200ms") == ["PropagationChanged"]
                assert await post("hold-elections") == ["ElectionsHeld"]
                wire.send(request(1, [("foo", [0])]))
                await until(asked(mock, 1))
                released = await post("release-elections")
                assert (released[0], released[-1]) == ("ElectionsReleased", "ElectionProcessed")
                assert answered(mock) == 0
                await post("advance", duration=200)
                assert await wire.receive() == response(1, [("foo", [(0, 0, None)])])
                assert await post("propagation", duration=0) == ["PropagationChanged"]
        finally:
            await control.stop()


async def test_kraft_has_nothing_to_hold() -> None:
    mock = cluster(profile="kafka-4.1")
    with pytest.raises(ClusterError, match="no queue of elections"):
        mock.hold_elections()
    with pytest.raises(ClusterError, match="propagation delay"):
        mock.set_propagation(-5)


async def test_who_is_waited_for_fills_no_memory() -> None:
    """What is sent behind is read up to a limit, and every request of it answered in the end."""
    async with cluster() as mock:
        await electable(mock)
        mock.hold_elections()
        async with connect(mock) as wire:
            wire.send(request(0, [("foo", [0])], 60_000))
            await until(asked(mock, 1))
            behind = [request(number, [("bar", [0] * 1000)]) for number in range(1, 200)]
            wire.send(*behind)
            (connection,) = mock._sockets.listeners[1][0].socket.connections
            await until(lambda: connection._connection.buffered > 64 * 1024)
            await asyncio.sleep(0.01)
            assert connection._connection.buffered < 400 * 1024 < sum(map(len, behind))
            mock.release_elections()
            await wire.receive()
            for number in range(1, 200):
                assert await wire.receive() == response(number, [("bar", [(0, 0, None)])])
