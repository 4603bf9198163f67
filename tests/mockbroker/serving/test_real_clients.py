"""Released clients against the mock: what they send on connecting, how they come down, and a
reassignment started, listed, finished, cancelled, and a leader elected.

Each client runs in a thread of its own, as it blocks; the cluster stays on the test's loop. Waits
are bounded by the clients' own timeouts and by ``in_thread``.
"""

import asyncio
from typing import Any

import pytest

from mockbroker import MockCluster
from tests.support.toolchain import require_module
from tests.support.waiting import in_thread

NEWEST = "kafka-4.4"
SECONDS = 30


def sent(mock: MockCluster, api: int, **filters: Any) -> list[int]:
    """The versions of an api key that were asked for, in order."""
    entries = mock.journal.select(api=api, direction="request", **filters)
    return [entry.api_version for entry in entries if entry.api_version is not None]


def nothing_went_wrong(mock: MockCluster) -> None:
    for event in ("malformed", "failed", "unimplemented"):
        entries = mock.journal.select(event=event)
        assert not entries, [(entry.api_key, entry.note) for entry in entries]


# ---- kafka-python ------------------------------------------------------------------------------


@pytest.fixture
def kafka() -> Any:
    module: Any = require_module("kafka")
    return module


def kafka_python_admin(kafka: Any, mock: MockCluster) -> Any:
    return kafka.KafkaAdminClient(
        bootstrap_servers=mock.bootstrap, request_timeout_ms=10_000, client_id="admin"
    )


@pytest.mark.parametrize(
    ("profile", "alter", "api_versions"), [(NEWEST, 1, 4), ("kafka-3.9", 0, 4), ("kafka-2.4", 0, 3)]
)
async def test_kafka_python_reassigns(kafka, profile, alter, api_versions):
    foo = kafka.TopicPartition("foo", 0)
    bar = kafka.TopicPartition("bar", 0)
    async with MockCluster(brokers=4, topics=["foo=1,2,3", "bar=2,1"], profile=profile) as mock:
        admin = await in_thread(lambda: kafka_python_admin(kafka, mock))
        try:
            plan = {foo: [2, 3, 4], bar: [2, 3]}
            await in_thread(lambda: admin.alter_partition_reassignments(plan))
            listed = await in_thread(admin.list_partition_reassignments)
            assert listed == {
                foo: {"replicas": [2, 3, 4, 1], "adding_replicas": [4], "removing_replicas": [1]},
                bar: {"replicas": [2, 3, 1], "adding_replicas": [3], "removing_replicas": [1]},
            }
            mock.join_isr("foo-0", 4)
            assert set(await in_thread(admin.list_partition_reassignments)) == {bar}
            await in_thread(lambda: admin.alter_partition_reassignments({bar: None}))
            assert await in_thread(admin.list_partition_reassignments) == {}
            state = mock.cluster.describe()["topics"]
            assert state["foo"]["0"]["replicas"] == [2, 3, 4]
            assert state["bar"]["0"]["replicas"] == [2, 1]
            described = await in_thread(lambda: admin.describe_topics(["foo"]))
            assert described[0]["partitions"][0]["replica_nodes"] == [2, 3, 4]
        finally:
            await in_thread(admin.close)
        assert set(sent(mock, 45)) == {alter}
        assert set(sent(mock, 46)) == {0}
        # It begins at its own highest and comes down to ours in one step.
        refused = [entry.api_version for entry in mock.journal.select(
            api=18, direction="request", event="unsupported")]  # fmt: skip
        assert refused == ([] if api_versions == 4 else [4])
        assert set(sent(mock, 18)) - set(refused) == {api_versions}
        nothing_went_wrong(mock)


async def test_kafka_python_elects_a_preferred_leader(kafka: Any) -> None:
    async with MockCluster(topics=["foo=1,2,3"]) as mock:
        await mock.stop_broker(1)
        await mock.start_broker(1)
        mock.join_isr("foo-0", 1)
        assert mock.cluster.topics.partition("foo", 0).leader == 2
        admin = await in_thread(lambda: kafka_python_admin(kafka, mock))
        try:
            for _ in range(2):
                # The second time there is nothing to do, which it does not take for an error.
                await in_thread(lambda: admin.elect_leaders(0, {"foo": [0]}))
                assert mock.cluster.topics.partition("foo", 0).leader == 1
        finally:
            await in_thread(admin.close)
        nothing_went_wrong(mock)


async def test_kafka_python_is_not_offered_what_an_old_broker_lacks(kafka: Any) -> None:
    async with MockCluster(topics=["foo=1,2,3"], profile="kafka-2.3") as mock:
        admin = await in_thread(lambda: kafka_python_admin(kafka, mock))
        try:
            with pytest.raises(kafka.errors.IncompatibleBrokerVersion):
                await in_thread(admin.list_partition_reassignments)
        finally:
            await in_thread(admin.close)
        assert sent(mock, 46) == []


async def test_kafka_python_follows_the_controller(kafka: Any) -> None:
    """Without forwarding the old controller says 41, and the client asks who it is now."""
    async with MockCluster(topics=["foo=1,2,3"], profile="kafka-2.4") as mock:
        admin = await in_thread(lambda: kafka_python_admin(kafka, mock))
        try:
            await in_thread(admin.list_partition_reassignments)
            mock.failover(3)
            await in_thread(admin.list_partition_reassignments)
        finally:
            await in_thread(admin.close)
        asked = [e.broker_id for e in mock.journal.select(api=46, direction="request")]
        assert asked == [1, 1, 3]


# ---- confluent-kafka (librdkafka) ----------------------------------------------------------------


@pytest.fixture
def confluent() -> Any:
    module: Any = require_module("confluent_kafka.admin")
    return module


def librdkafka_admin(confluent: Any, mock: MockCluster) -> Any:
    return confluent.AdminClient(
        {"bootstrap.servers": mock.bootstrap, "socket.timeout.ms": 10_000, "log_level": 0}
    )


@pytest.mark.parametrize("profile", [NEWEST, "kafka-3.9-zk", "kafka-2.4", "kafka-2.2"])
async def test_librdkafka_lists_topics(confluent: Any, profile: str) -> None:
    async with MockCluster(
        topics=["foo=3,1", "bar:2:1"], profile=profile, named_controller="leader"
    ) as mock:
        admin = librdkafka_admin(confluent, mock)
        everything = await in_thread(lambda: admin.list_topics(timeout=10))
        assert set(everything.brokers) == {1, 2, 3}
        assert everything.controller_id == 1
        assert set(everything.topics) == {"foo", "bar"}
        assert everything.topics["foo"].partitions[0].replicas == [3, 1]
        one = await in_thread(lambda: admin.list_topics("foo", timeout=10))
        assert set(one.topics) == {"foo"}
        nothing_went_wrong(mock)


@pytest.mark.parametrize(("profile", "version"), [(NEWEST, 2), ("kafka-2.4", 2), ("kafka-2.2", 0)])
async def test_librdkafka_elects_a_preferred_leader(confluent, profile, version):
    package: Any = require_module("confluent_kafka")
    async with MockCluster(topics=["foo=1,2,3"], profile=profile) as mock:
        await mock.stop_broker(1)
        await mock.start_broker(1)
        mock.join_isr("foo-0", 1)
        mock.failover(1)
        admin = librdkafka_admin(confluent, mock)
        foo = package.TopicPartition("foo", 0)
        preferred = package.ElectionType.PREFERRED
        result = await in_thread(lambda: admin.elect_leaders(preferred, [foo]).result(SECONDS))
        assert list(result.values()) == [None]
        assert mock.cluster.topics.partition("foo", 0).leader == 1
        assert sent(mock, 43) == [version]
        nothing_went_wrong(mock)


# ---- aiokafka ------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", [NEWEST, "kafka-2.4", "kafka-1.0"])
async def test_aiokafka_looks_around(profile: str) -> None:
    admin_module: Any = require_module("aiokafka.admin")
    async with MockCluster(topics=["foo=1,2,3"], profile=profile) as mock:
        admin = admin_module.AIOKafkaAdminClient(
            bootstrap_servers=mock.bootstrap, request_timeout_ms=10_000
        )
        async with asyncio.timeout(SECONDS):
            await admin.start()
            try:
                assert await admin.list_topics() == ["foo"]
                cluster = await admin.describe_cluster()
                new = admin_module.NewTopic("new", 2, 3)
                await admin.create_topics([new])
            finally:
                await admin.close()
        assert {broker["node_id"] for broker in cluster["brokers"]} == {1, 2, 3}
        assert len(mock.cluster.topics["new"].partitions) == 2
        nothing_went_wrong(mock)
