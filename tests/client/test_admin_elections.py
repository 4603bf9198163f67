"""Admin's elections (KIP-183, KIP-460) against the mock cluster and scripted answers."""

import asyncio
from typing import Any

import pytest

import kproto
from kproto.client import (
    Admin,
    ClusterAuthorizationError,
    ElectionNotNeededError,
    ElectionType,
    NotControllerError,
    PreferredLeaderNotAvailableError,
    RequestTimedOutError,
    TopicPartition,
    UnknownTopicOrPartitionError,
)
from kproto.errors import UnsupportedVersionError
from kproto.messages import ElectLeadersResponse
from kproto.messages.elect_leaders_response import PartitionResult, ReplicaElectionResult
from mockbroker import MockCluster
from tests.client.fake import fake_broker

RELEASES = ["kafka-2.4", "kafka-3.9-zk", "kafka-4.1", "kafka-4.4"]
TOPICS = ["foo=1,2,3/2,3,1", "bar=3,2,1"]
SOON = 20_000
FOO0, FOO1, BAR0 = TopicPartition("foo", 0), TopicPartition("foo", 1), TopicPartition("bar", 0)


def admin_of(bootstrap: str, **options: Any) -> Admin:
    return Admin(bootstrap, default_timeout_ms=SOON, retry_backoff_ms=1, **options)


def answered(*rows: tuple[str, int, int], error: int = 0) -> ElectLeadersResponse:
    topics: dict[str, list[PartitionResult]] = {}
    for name, index, code in rows:
        row = PartitionResult(partition_id=index, error_code=code, error_message=None)
        topics.setdefault(name, []).append(row)
    results = [ReplicaElectionResult(topic=t, partition_result=rows) for t, rows in topics.items()]
    return ElectLeadersResponse(error_code=error, replica_election_results=results)


async def moved_away(mock: MockCluster) -> None:
    """The leader of foo-0 goes and comes back, and is not leader any more."""
    await mock.stop_broker(1)
    await mock.start_broker(1)
    mock.join_isr("foo-0", 1)
    assert mock.cluster.topics.partition(*FOO0).leader != 1


@pytest.mark.parametrize("profile", RELEASES)
@pytest.mark.requirement("K183-01", "K183-03", "K183-04", "K183-05")
async def test_preferred_leaders(profile: str) -> None:
    async with (
        MockCluster(brokers=3, topics=TOPICS, profile=profile) as mock,
        admin_of(mock.bootstrap) as admin,
    ):
        await moved_away(mock)
        nope = ("nope", 1)
        result = admin.elect_preferred_leaders([FOO0, FOO1, nope, FOO0, ("foo", 0)])
        await result.partition_result(("foo", 0))
        assert mock.cluster.topics.partition(*FOO0).leader == 1
        with pytest.raises(ElectionNotNeededError):
            await result.partition_result(FOO1)
        with pytest.raises(UnknownTopicOrPartitionError):
            await result.partition_result(nope)
        with pytest.raises(
            UnknownTopicOrPartitionError,
            match=r'^Preferred leader election for partition "bar-0" was not attempted$',
        ):
            await result.partition_result(BAR0)
        found = await result.partitions()
        assert {key: type(value) for key, value in found.items()} == {
            FOO0: type(None),
            FOO1: ElectionNotNeededError,
            nope: UnknownTopicOrPartitionError,
        }
        with pytest.raises((ElectionNotNeededError, UnknownTopicOrPartitionError)):
            await result.all()
        (entry,) = mock.journal.select(api=43, direction="request")
        body = entry.decode().body
        # Named three times, asked for once.
        assert [(each.topic, each.partitions) for each in body.topic_partitions] == [
            ("foo", [0, 1]),
            ("nope", [1]),
        ]


@pytest.mark.parametrize("profile", RELEASES)
@pytest.mark.requirement("K183-01", "K183-02")
async def test_all_partitions(profile: str) -> None:
    async with (
        MockCluster(brokers=3, topics=TOPICS, profile=profile) as mock,
        admin_of(mock.bootstrap) as admin,
    ):
        await moved_away(mock)
        result = admin.elect_preferred_leaders()
        await result.all()
        # Those that had their preferred leader are not there.
        assert FOO0 in await result.partitions()
        again = admin.elect_preferred_leaders(timeout_ms=1234)
        assert await again.partitions() == {}
        await again.all()
        bodies = [e.decode().body for e in mock.journal.select(api=43, direction="request")]
        assert [body.topic_partitions for body in bodies] == [None, None]
        assert [body.timeout_ms for body in bodies] == [SOON, 1234]
        assert await admin.elect_preferred_leaders([]).partitions() == {}


@pytest.mark.requirement("K183-25")
async def test_the_preferred_replica_is_not_in_sync() -> None:
    async with MockCluster(brokers=3, topics=TOPICS) as mock, admin_of(mock.bootstrap) as admin:
        await mock.stop_broker(1)
        with pytest.raises(PreferredLeaderNotAvailableError):
            await admin.elect_preferred_leaders([FOO0]).all()


async def test_unclean_elections_need_version_1() -> None:
    """Text 4 of Kafka's client; nothing is sent."""
    async with (
        MockCluster(brokers=3, topics=TOPICS, profile="kafka-2.3") as mock,
        admin_of(mock.bootstrap) as admin,
    ):
        result = admin.elect_leaders(ElectionType.UNCLEAN, [FOO0])
        with pytest.raises(
            UnsupportedVersionError, match=r"^API Version 0 only supports PREFERRED election type$"
        ):
            await result.partition_result(FOO0)
        assert mock.journal.select(api=43) == []
    async with (
        MockCluster(brokers=3, topics=TOPICS, profile="kafka-4.1") as mock,
        admin_of(mock.bootstrap) as admin,
    ):
        with pytest.raises(ElectionNotNeededError):
            await admin.elect_leaders(ElectionType.UNCLEAN, [FOO0]).all()
        (entry,) = mock.journal.select(api=43, direction="request")
        assert entry.decode().body.election_type == 1
    with pytest.raises(ValueError, match="2 is not a valid ElectionType"):
        Admin("a:1").elect_leaders(2)
    async with (
        MockCluster(brokers=1, profile="kafka-2.1") as mock,
        admin_of(mock.bootstrap) as admin,
    ):
        with pytest.raises(
            UnsupportedVersionError, match=r"^The node does not support ELECT_LEADERS$"
        ):
            await admin.elect_preferred_leaders().all()


@pytest.mark.requirement("K183-06")
async def test_not_controller_is_tried_again_unless_something_was_done() -> None:
    async with (
        MockCluster(brokers=3, topics=TOPICS, profile="kafka-3.9-zk") as mock,
        admin_of(mock.bootstrap) as admin,
    ):
        mock.script(43, answered(error=41), times=1)
        mock.script(43, answered(("foo", 0, 41), ("foo", 1, 41)), times=1)
        found = await admin.elect_preferred_leaders([FOO0, FOO1]).partitions()
        assert {type(error) for error in found.values()} == {ElectionNotNeededError}
        mock.script(43, answered(("foo", 0, 0), ("foo", 1, 41)))
        found = await admin.elect_preferred_leaders([FOO0, FOO1]).partitions()
        assert [type(each) for each in found.values()] == [type(None), NotControllerError]
        assert len(mock.journal.select(api=43, direction="request")) == 4


async def test_those_in_time_keep_their_result() -> None:
    async with MockCluster(brokers=3, topics=TOPICS) as mock, admin_of(mock.bootstrap) as admin:
        mock.script(43, answered(("foo", 0, 0), ("foo", 1, 7)))
        result = admin.elect_preferred_leaders([FOO0, FOO1])
        await result.partition_result(FOO0)
        with pytest.raises(RequestTimedOutError, match=r"^The request timed out\.$"):
            await result.partition_result(FOO1)
        with pytest.raises(RequestTimedOutError):
            await result.all()


@pytest.mark.parametrize("codec", ["kafka", "kip-183"])
async def test_version_0_names_nothing_where_not_authorized(codec: str) -> None:
    """Null and an empty answer: only a refusal leads there. A top-level error is later Kafka's."""
    empty = kproto.dialect(codec).apis[43].response(replica_election_results=[])
    async with (
        fake_broker({43: lambda _body: empty}, codec, served={3: (0, 9), 43: (0, 0)}) as (
            address,
            seen,
        ),
        admin_of(address, dialect=codec) as admin,
    ):
        with pytest.raises(ClusterAuthorizationError):
            await admin.elect_preferred_leaders().all()
        assert await admin.elect_preferred_leaders([FOO0]).partitions() == {}
        assert seen[-1].body.topic_partitions[0].topic == "foo"
        assert "election_type" not in seen[-1].body.to_json(0)
    async with MockCluster(brokers=3, topics=TOPICS) as mock, admin_of(mock.bootstrap) as admin:
        mock.script(43, answered(error=31))
        with pytest.raises(ClusterAuthorizationError):
            await admin.elect_preferred_leaders().all()


async def test_a_waiter_that_is_cancelled_cancels_no_one_else() -> None:
    release = asyncio.Event()
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    async with MockCluster(brokers=3, topics=TOPICS) as mock, admin_of(mock.bootstrap) as admin:

        @mock.on(43)
        async def later(_call: Any) -> Any:
            await release.wait()
            return answered(("foo", 0, 0))

        result = admin.elect_preferred_leaders([FOO0])
        first, second, third = (
            result.partition_result(FOO0),
            result.partitions(),
            asyncio.ensure_future(result.all()),
        )
        while not mock.journal.select(api=43):
            await asyncio.sleep(0)
        first.cancel()
        third.cancel()
        release.set()
        assert await second == {FOO0: None}
        await result.all()
    assert complaints == []
