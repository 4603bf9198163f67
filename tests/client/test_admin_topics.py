"""Admin's topics, configs and view of the cluster, against the mock cluster of several releases."""

import asyncio
from typing import Any

import pytest

from kproto.client import (
    Admin,
    AlterConfigOp,
    BrokerError,
    ConfigOperation,
    ConfigResource,
    InvalidTopicError,
    NewTopic,
    TopicAlreadyExistsError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
)
from kproto.errors import UnsupportedVersionError
from kproto.messages import (
    CreateTopicsResponse,
    DeleteTopicsResponse,
    DescribeTopicPartitionsResponse,
    IncrementalAlterConfigsResponse,
)
from kproto.messages.create_topics_response import CreatableTopicResult
from kproto.messages.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from mockbroker import MockCluster
from tests.client.fake import fake_broker

RELEASES = ["kafka-1.0", "kafka-2.4", "kafka-3.9-zk", "kafka-4.1", "kafka-4.4"]
SOON = 20_000


def admin_of(bootstrap: str, **options: Any) -> Admin:
    return Admin(bootstrap, default_timeout_ms=SOON, retry_backoff_ms=1, **options)


def kinds(found: list[Any]) -> list[type]:
    return [type(each) for each in found]


@pytest.mark.parametrize("profile", RELEASES)
async def test_topics_come_and_go(profile: str) -> None:
    async with (
        MockCluster(brokers=3, topics=["foo=1,2,3/2,3,1"], profile=profile) as mock,
        admin_of(mock.bootstrap) as admin,
    ):
        new = [
            NewTopic("t", 2, 3, configs={"retention.ms": "5000"}),
            NewTopic("assigned", replica_assignments={0: [2, 1], 1: [3, 1]}),
            NewTopic("foo", 1, 1),
            NewTopic("", 1, 1),
        ]
        result = admin.create_topics(new, timeout_ms=1234)
        found = await asyncio.gather(*result.values.values(), return_exceptions=True)
        assert kinds(found) == [type(None), type(None), TopicAlreadyExistsError, InvalidTopicError]
        (entry,) = mock.journal.select(api=19, direction="request")
        assert entry.decode().body.timeout_ms == 1234
        await admin.create_topics([NewTopic("only", 1, 1)], validate_only=True).all()
        assert await admin.list_topics() == ["assigned", "foo", "t"]

        described = admin.describe_topics(["assigned", "nope", "foo", ""])
        topic = await described.values["assigned"]
        assert [(p.index, p.replicas, p.leader, p.isr) for p in topic.partitions] == [
            (0, [2, 1], 2, [2, 1]),
            (1, [3, 1], 3, [3, 1]),
        ]
        assert not topic.is_internal
        assert (topic.topic_id is None) == (mock.served[3].highest < 10)
        assert [p.index for p in (await described.values["foo"]).partitions] == [0, 1]
        with pytest.raises(UnknownTopicOrPartitionError):
            await described.values["nope"]
        with pytest.raises(InvalidTopicError):
            await described.values[""]
        # Asking for a topic does not create it, on any release.
        assert await admin.list_topics() == ["assigned", "foo", "t"]

        deleted = admin.delete_topics(["t", "nope"])
        await deleted.values["t"]
        with pytest.raises(UnknownTopicOrPartitionError):
            await deleted.all()
        assert await admin.list_topics() == ["assigned", "foo"]


async def test_asking_creates_no_topic_where_brokers_would() -> None:
    for profile in ("kafka-0.10.2", "kafka-4.1"):
        async with (
            MockCluster(brokers=1, profile=profile, auto_create_topics=True) as mock,
            admin_of(mock.bootstrap) as admin,
        ):
            with pytest.raises(UnknownTopicOrPartitionError):
                await admin.describe_topics(["made"]).all()
            assert await admin.list_topics() == []


async def test_default_numbers_need_a_broker_that_has_them() -> None:
    assert NewTopic("x").num_partitions is None
    with pytest.raises(ValueError, match="not both"):
        NewTopic("x", 1, replica_assignments={0: [1]})
    async with MockCluster(brokers=1) as mock, admin_of(mock.bootstrap) as admin:
        await admin.create_topics([NewTopic("x")]).all()
        with pytest.raises(ValueError, match="same name"):
            admin.create_topics([NewTopic("x"), NewTopic("x")])
    async with (
        MockCluster(brokers=1, profile="kafka-2.3") as mock,
        admin_of(mock.bootstrap) as admin,
    ):
        with pytest.raises(UnsupportedVersionError, match=r"specify both for x$"):
            await admin.create_topics([NewTopic("x", 1), NewTopic("y", 1, 1)]).all()
        assert mock.journal.select(api=19) == []


async def test_a_topic_the_answer_leaves_out() -> None:
    async with MockCluster(brokers=1) as mock, admin_of(mock.bootstrap) as admin:
        row = CreatableTopicResult(name="a", error_message=None)
        mock.script(19, CreateTopicsResponse(topics=[row]))
        mock.script(20, DeleteTopicsResponse())
        result = admin.create_topics([NewTopic("a"), NewTopic("b")])
        await result.values["a"]
        text = r"^The controller response did not contain a result for topic b$"
        with pytest.raises(UnknownServerError, match=text):
            await result.values["b"]
        with pytest.raises(UnknownServerError, match=text):
            await admin.delete_topics(["b"]).all()
        mock.script(44, IncrementalAlterConfigsResponse())
        with pytest.raises(UnknownServerError, match="did not contain a result for topic b"):
            await admin.incremental_alter_configs({ConfigResource.topic("b"): []}).all()


async def test_large_topics_come_in_pages() -> None:
    """Each page holds two partitions; the second begins in the middle of a topic."""
    sizes = {"a": 3, "b": 2}

    def page(body: Any) -> DescribeTopicPartitionsResponse:
        start = ("", 0) if body.cursor is None else (
            body.cursor.topic_name, body.cursor.partition_index
        )  # fmt: skip
        everything = [(name, i) for name in sizes for i in range(sizes[name])]
        assert [topic.name for topic in body.topics] == sorted(
            name for name in sizes if name >= start[0]
        )
        left = [each for each in everything if each >= start]
        topics: dict[str, DescribeTopicPartitionsResponseTopic] = {}
        for name, index in left[:2]:
            row = DescribeTopicPartitionsResponsePartition(
                partition_index=index, replica_nodes=[1], isr_nodes=[1], last_known_elr=[index]
            )
            empty = DescribeTopicPartitionsResponseTopic(name=name, partitions=[])
            topics.setdefault(name, empty).partitions.append(row)
        cursor = Cursor(topic_name=left[2][0], partition_index=left[2][1]) if left[2:] else None
        return DescribeTopicPartitionsResponse(topics=list(topics.values()), next_cursor=cursor)

    async with fake_broker({75: page}) as (address, seen), admin_of(address) as admin:
        found = await admin.describe_topics(["b", "a"]).all()
        assert list(found) == ["b", "a"]
        assert [p.index for p in found["a"].partitions] == [0, 1, 2]
        assert [p.last_known_elr for p in found["b"].partitions] == [[0], [1]]
        assert len([event for event in seen if event.api.api_key == 75]) == 3

    def stuck(body: Any) -> DescribeTopicPartitionsResponse:
        return DescribeTopicPartitionsResponse(next_cursor=Cursor(topic_name="a"))

    async with fake_broker({75: stuck}) as (address, _), admin_of(address) as admin:
        with pytest.raises(UnknownServerError, match="makes no progress beyond"):
            await admin.describe_topics(["a"]).all()


@pytest.mark.parametrize("profile", RELEASES)
async def test_the_cluster(profile: str) -> None:
    async with MockCluster(brokers=3, profile=profile) as mock, admin_of(mock.bootstrap) as admin:
        found = await admin.describe_cluster()
        assert {node.id: f"{node.host}:{node.port}" for node in found.nodes} == mock.addresses
        assert found.controller_id in mock.addresses
        assert found.cluster_id == mock.cluster.state.cluster_id
        await mock.stop_broker(3)
        assert [node.id for node in (await admin.describe_cluster()).nodes] == [1, 2]
        if mock.served.get(60) is None:
            with pytest.raises(UnsupportedVersionError, match=r"support DESCRIBE_CLUSTER$"):
                await admin.describe_cluster(include_fenced_brokers=True)
        elif mock.served[60].highest >= 2:
            every = await admin.describe_cluster(include_fenced_brokers=True)
            assert [(node.id, node.is_fenced) for node in every.nodes][-1] == (3, True)
        else:
            with pytest.raises(UnsupportedVersionError, match="non-default includeFencedBrokers"):
                await admin.describe_cluster(include_fenced_brokers=True)


@pytest.mark.parametrize("profile", RELEASES[1:])
async def test_configs(profile: str) -> None:
    async with (
        MockCluster(brokers=3, topics=["foo=1,2,3"], profile=profile) as mock,
        admin_of(mock.bootstrap) as admin,
    ):
        foo, two = ConfigResource.topic("foo"), ConfigResource.broker(2)
        every = ConfigResource.broker(None)
        throttled = "leader.replication.throttled.replicas"
        rate = "leader.replication.throttled.rate"
        # Kafka 2.4 fails over a list without a value, and over an unknown topic, with -1.
        old = profile == "kafka-2.4"
        operation = ConfigOperation.SET if old else ConfigOperation.APPEND
        unknown: type[BrokerError] = UnknownServerError if old else UnknownTopicOrPartitionError
        result = admin.incremental_alter_configs(
            {
                foo: [AlterConfigOp(throttled, "0:1", operation)],
                two: [AlterConfigOp(rate, "100")],
                every: [AlterConfigOp(rate, "7")],
                ConfigResource.topic("nope"): [AlterConfigOp(throttled, "0:1")],
            }
        )
        found = await asyncio.gather(*result.values.values(), return_exceptions=True)
        assert kinds(found) == [type(None)] * 3 + [unknown]
        # A broker's own configs go to that broker.
        entries = mock.journal.select(api=44, direction="request")
        sent = {e.broker_id: [r.resource_name for r in e.decode().body.resources] for e in entries}
        assert sent[2] == ["2"]
        described = await admin.describe_configs([foo, two, every]).all()
        assert described[foo][throttled].value == "0:1"
        assert not described[foo][throttled].is_default
        assert described[foo]["retention.ms"].is_default
        assert (described[two][rate].value, described[every][rate].value) == ("100", "7")
        await admin.incremental_alter_configs(
            {two: [AlterConfigOp(rate, None, ConfigOperation.DELETE)]}
        ).all()
        assert (await admin.describe_configs([two]).values[two])[rate].value == "7"
        with pytest.raises(BrokerError):
            await admin.describe_configs([ConfigResource.topic("nope")]).all()


async def test_configs_of_a_broker_that_is_not_there() -> None:
    async with MockCluster(brokers=1) as mock, admin_of(mock.bootstrap) as admin:
        with pytest.raises(TimeoutError, match="the cluster has no live broker 9"):
            await admin.describe_configs([ConfigResource.broker(9)], timeout_ms=400).all()


async def test_incremental_changes_need_kafka_2_3() -> None:
    async with (
        MockCluster(brokers=1, profile="kafka-1.0") as mock,
        admin_of(mock.bootstrap) as admin,
    ):
        with pytest.raises(
            UnsupportedVersionError, match=r"^The node does not support INCREMENTAL_ALTER_CONFIGS$"
        ):
            await admin.incremental_alter_configs({ConfigResource.topic("x"): []}).all()
