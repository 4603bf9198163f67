"""How Admin carries a call through: finding the controller, trying again, giving up, closing."""

import asyncio
import gc
from typing import Any

import pytest

from kproto.client import (
    Admin,
    ClusterAuthorizationError,
    ConnectionClosedError,
    NotControllerError,
    RequestTimeoutError,
    TopicPartition,
)
from kproto.client.deadlines import Backoff
from kproto.client.nodes import parse_bootstrap
from kproto.messages import ListPartitionReassignmentsResponse, MetadataResponse
from kproto.messages.metadata_response import MetadataResponseBroker
from mockbroker import MockCluster
from tests.client.fake import fake_broker

SOON = 20_000
FOO0 = TopicPartition("foo", 0)


def admin_of(bootstrap: str, **options: Any) -> Admin:
    options.setdefault("default_timeout_ms", SOON)
    return Admin(bootstrap, retry_backoff_ms=1, retry_backoff_max_ms=5, **options)


def brokers_asked(mock: MockCluster, api_key: int) -> list[int]:
    return [entry.broker_id for entry in mock.journal.select(api=api_key, direction="request")]


def test_bootstrap_texts() -> None:
    found = parse_bootstrap(" a:1, [::1]:9092,b:65535,")
    assert [str(each) for each in found] == ["a:1", "[::1]:9092", "b:65535"]
    assert parse_bootstrap(["a:1"]) == [("a", 1)]
    for wrong in ("", ",", "a", "a:", ":1", "a:x", "a:65536", "a:-1"):
        with pytest.raises(ValueError, match=r"bootstrap server"):
            Admin(wrong)


def test_pauses_double_up_to_a_bound() -> None:
    backoff = Backoff(100, 350)
    assert [backoff.next() for _ in range(4)] == [0.1, 0.2, 0.35, 0.35]


@pytest.mark.requirement("K455-20", "K183-06")
async def test_requests_for_the_controller_follow_it() -> None:
    async with (
        MockCluster(brokers=4, topics=["foo=1,2,3"], profile="kafka-3.9-zk") as mock,
        admin_of(mock.bootstrap) as admin,
    ):
        assert await admin.list_partition_reassignments() == {}
        assert brokers_asked(mock, 46) == [1]
        mock.failover(3)
        # Still sent to broker 1, which refuses; the new controller is found and asked.
        await admin.alter_partition_reassignments({FOO0: [2, 3, 4]}).all()
        assert brokers_asked(mock, 45) == [1, 3]
        assert list(await admin.list_partition_reassignments()) == [FOO0]
        assert brokers_asked(mock, 46) == [1, 3]
        mock.failover(2)
        await admin.elect_preferred_leaders([FOO0]).partitions()
        assert brokers_asked(mock, 43) == [3, 2]


async def test_a_broker_that_is_behind_is_not_believed_for_ever() -> None:
    """Broker 1 keeps naming itself, the old controller; each round asks another one first."""
    async with (
        MockCluster(brokers=3, topics=["foo=1,2,3"], profile="kafka-2.4") as mock,
        admin_of(mock.bootstrap) as admin,
    ):
        await admin.describe_cluster()
        mock.hold_metadata(1)
        mock.failover(3)
        assert await admin.list_partition_reassignments() == {}
        asked = brokers_asked(mock, 46)
        assert asked[-1] == 3
        assert set(asked[:-1]) <= {1}


@pytest.mark.requirement("K455-25")
async def test_not_controller_to_the_end() -> None:
    async with (
        MockCluster(brokers=1, profile="kafka-2.4") as mock,
        admin_of(mock.bootstrap) as admin,
    ):
        mock.script(46, ListPartitionReassignmentsResponse(error_code=41, error_message=None))
        with pytest.raises(NotControllerError) as raised:
            await admin.list_partition_reassignments(timeout_ms=400)
        assert raised.value.__cause__ is None, "an error is not its own cause"
        asked = mock.journal.select(api=46, direction="request")
        assert len(asked) > 2
        # The first says the time-out as given, each later one what is left.
        times = [entry.decode().body.timeout_ms for entry in asked]
        assert times[0] == 400
        assert times == sorted(times, reverse=True)
        assert times[-1] < 400


async def test_no_controller_yet() -> None:
    async with (
        MockCluster(brokers=1, profile="kafka-2.4") as mock,
        admin_of(mock.bootstrap) as admin,
    ):
        host, port = mock.addresses[1].split(":")
        me = MetadataResponseBroker(node_id=1, host=host, port=int(port))
        mock.script(3, MetadataResponse(brokers=[me], controller_id=-1), times=2)
        assert await admin.list_partition_reassignments() == {}
        assert len(brokers_asked(mock, 3)) == 3
        mock.script(3, MetadataResponse(brokers=[me], controller_id=-1))
        mock.script(46, ListPartitionReassignmentsResponse(error_code=41), times=1)
        with pytest.raises(
            RequestTimeoutError, match=r"^no success within 400 ms: the cluster has no controller$"
        ):
            await admin.list_partition_reassignments(timeout_ms=400)


async def test_a_broken_connection_is_replaced() -> None:
    async with (
        MockCluster(brokers=3, topics=["foo=1,2,3"], profile="kafka-2.4") as mock,
        admin_of(mock.bootstrap) as admin,
    ):
        assert await admin.list_topics() == ["foo"]
        await mock.stop_broker(1)
        await mock.start_broker(1)
        assert await admin.list_topics() == ["foo"]
        assert await admin.list_partition_reassignments() == {}
        # The controller dies: another one takes over, at another address.
        await mock.stop_broker(1)
        assert await admin.list_partition_reassignments() == {}


async def test_the_first_bootstrap_server_may_be_down() -> None:
    async with MockCluster(brokers=2, topics=["foo=1,2"]) as mock:
        await mock.stop_broker(1)
        async with admin_of(mock.bootstrap) as admin:
            assert await admin.list_topics() == ["foo"]
            assert [node.id for node in (await admin.describe_cluster()).nodes] == [2]
        down = mock.addresses[1]
        async with admin_of(down) as admin:
            with pytest.raises(RequestTimeoutError, match="no broker can be reached") as caught:
                await admin.list_topics(timeout_ms=400)
            assert isinstance(caught.value.__cause__, ConnectionError)


async def test_a_silent_broker_is_not_waited_for_longer_than_asked() -> None:
    async with fake_broker({46: lambda _body: None}) as (address, _), admin_of(address) as admin:
        with pytest.raises(RequestTimeoutError, match="no response to ListPartitionReassignmentsR"):
            await admin.list_partition_reassignments(timeout_ms=400)


async def test_what_no_retry_helps_against_is_sent_once() -> None:
    async with MockCluster(brokers=3) as mock, admin_of(mock.bootstrap) as admin:
        mock.script(46, ListPartitionReassignmentsResponse(error_code=31, error_message=None))
        with pytest.raises(ClusterAuthorizationError, match=r"^Cluster authorization failed\.$"):
            await admin.list_partition_reassignments()
        assert len(brokers_asked(mock, 46)) == 1


async def test_many_at_once_share_connections_and_one_look_at_the_cluster() -> None:
    async with (
        MockCluster(brokers=3, topics=["foo=1,2,3"], profile="kafka-2.4") as mock,
        admin_of(mock.bootstrap) as admin,
    ):
        found = await asyncio.gather(
            *(admin.list_partition_reassignments() for _ in range(40)),
            *(admin.list_topics() for _ in range(40)),
        )
        assert found == [{}] * 40 + [["foo"]] * 40
        assert sum(mock.connections(broker) for broker in (1, 2, 3)) <= 3
        asked = mock.journal.select(api=3, direction="request")
        assert sum(entry.decode().body.topics == [] for entry in asked) == 1


async def test_who_is_cancelled_takes_no_one_along() -> None:
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    released = asyncio.Event()

    async with (
        MockCluster(brokers=1, topics=["foo=1"], profile="kafka-2.4") as mock,
        admin_of(mock.bootstrap) as admin,
    ):

        @mock.on(45)
        async def later(call: Any) -> Any:
            await released.wait()
            return {
                "throttleTimeMs": 0,
                "errorCode": 0,
                "errorMessage": None,
                "responses": [
                    {
                        "name": "foo",
                        "partitions": [{"partitionIndex": 0, "errorCode": 0, "errorMessage": None}],
                    }
                ],
            }

        result = admin.alter_partition_reassignments({FOO0: [1]})
        impatient = asyncio.create_task(result.all())
        while not mock.journal.select(api=45):
            await asyncio.sleep(0)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        # A listing that is cancelled before it is answered; the next one is answered.
        listing = admin.list_partition_reassignments()
        await asyncio.sleep(0)
        listing.cancel()
        released.set()
        assert await result.all() == {FOO0: None}
        assert await admin.list_partition_reassignments() == {}
    del result, impatient, listing
    gc.collect()
    await asyncio.sleep(0)
    assert complaints == []


async def test_cancelled_while_connecting_leaves_the_way_free() -> None:
    async with MockCluster(brokers=2, topics=["foo=1,2"]) as mock:
        for turns in range(12):
            async with admin_of(mock.bootstrap) as admin:
                first, second = admin.list_topics(), admin.list_topics()
                for _ in range(turns):
                    await asyncio.sleep(0)
                first.cancel()
                assert await second == ["foo"]


async def test_closing_fails_what_is_under_way() -> None:
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    async with fake_broker({45: lambda _body: None, 43: lambda _body: None}) as (address, seen):
        admin = admin_of(address)
        altering = admin.alter_partition_reassignments({FOO0: [1]})
        election = admin.elect_preferred_leaders([FOO0])
        dropped = admin.elect_preferred_leaders().partitions()
        while len(seen) < 4:
            await asyncio.sleep(0)
        await admin.close()
        for waiting in (altering.values[FOO0], altering.all(), election.all(), dropped):
            with pytest.raises(ConnectionClosedError, match="the client was closed"):
                await waiting
        with pytest.raises(ConnectionClosedError, match="the client was closed"):
            await admin.list_topics()
        with pytest.raises(ConnectionClosedError):
            await admin.alter_partition_reassignments({FOO0: [1]}).all()
        await admin.close()
    del altering, election, dropped, admin, waiting
    gc.collect()
    await asyncio.sleep(0)
    assert complaints == []
    assert [t for t in asyncio.all_tasks() if t is not asyncio.current_task()] == []
