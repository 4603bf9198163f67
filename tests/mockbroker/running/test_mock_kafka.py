"""The fixture, as the test of a client uses it."""

import asyncio
import socket
import threading
from typing import Any

import pytest

from kproto.client import Admin, Connection
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.pytest_plugin import MockKafkaFactory
from mockbroker.running.fixture import MockKafka
from mockbroker.running.threaded import ThreadedCluster
from tests.mockbroker.wire import connect
from tests.support.requests import request_of

pytestmark = pytest.mark.mock_kafka(brokers=4, topics=["foo=1,2,3"], profile="kafka-2.4")


def ask(cluster: MockKafka, *bodies: Any, broker: int = 1) -> list[Any]:
    """Send requests as a blocking client with one connection."""

    async def talk() -> list[Any]:
        host, port = cluster.addresses[broker].split(":")
        async with await Connection.open(host, int(port), client_id="test") as connection:
            return [await connection.request(body) for body in bodies]

    return asyncio.run(talk())


def test_blocking(mock_kafka: MockKafka):
    (metadata,) = ask(mock_kafka, request_of("Metadata", topics=None))
    assert [topic.name for topic in metadata.topics] == ["foo"]
    assert len(metadata.brokers) == 4
    found = mock_kafka.assert_requested("Metadata", times=1, client_id="test")
    assert (found[0].api_key, found.brokers, found[0].client_id) == (3, [1], "test")
    assert found.versions == [found[0].version]
    mock_kafka.assert_order("ApiVersions", "METADATA")
    mock_kafka.assert_not_requested(45)


async def test_asyncio_client_and_steps(mock_kafka: MockKafka):
    """Steps do not block the test's own event loop, and are done when they return."""
    async with Admin(mock_kafka.bootstrap) as admin:
        result = admin.alter_partition_reassignments({("foo", 0): [4]})
        await result.all()
        assert ("foo", 0) in await admin.list_partition_reassignments()
        await mock_kafka.aio.join_isr("foo-0", 4)
        assert await admin.list_partition_reassignments() == {}
    request = mock_kafka.assert_requested("AlterPartitionReassignments", times=1)[0]
    assert request.body.topics[0].partitions[0].replicas == [4]
    assert request.header.client_id == request.client_id


@pytest.mark.mock_kafka(brokers=1, topics=["bar:1:1"])
def test_the_nearest_marker_decides(mock_kafka: MockKafka):
    assert list(mock_kafka.addresses) == [1]
    assert list(mock_kafka.cluster.cluster.topics) == ["bar"]
    assert mock_kafka.profile.name == "kafka-2.4"  # from the module's


def test_errors_of_the_cluster_are_raised_here(mock_kafka: MockKafka):
    with pytest.raises(ClusterError):
        mock_kafka.join_isr("foo-0", 99)
    with pytest.raises(AttributeError):
        mock_kafka.aio.no_such_step()
    with pytest.raises(AttributeError):
        _ = mock_kafka.no_such_property


def test_several_clusters(mock_kafka_factory: MockKafkaFactory):
    one, other = mock_kafka_factory(brokers=1), mock_kafka_factory(brokers=2)
    ask(one, request_of("ListPartitionReassignments", topics=None))
    one.assert_requested("ListPartitionReassignments")
    other.assert_not_requested("ListPartitionReassignments")


def test_failed_assertions_show_the_traffic(mock_kafka: MockKafka):
    ask(mock_kafka, request_of("Metadata", topics=None))
    with pytest.raises(AssertionError, match=r"45 was requested 0 times.*(?s:.)*Metadata v\d+"):
        mock_kafka.assert_requested(45)
    with pytest.raises(AssertionError, match="requested 1 times, not 2 times"):
        mock_kafka.assert_requested("Metadata", times=2)
    with pytest.raises(AssertionError, match="at versions"):
        mock_kafka.assert_requested("Metadata", version=0)
    with pytest.raises(AssertionError, match="expected none"):
        mock_kafka.assert_not_requested("Metadata")
    with pytest.raises(AssertionError, match="the first one missing is ApiVersions"):
        mock_kafka.assert_order("Metadata", "ApiVersions")


def test_stopped_clusters_leave_nothing():
    before = threading.active_count()
    with MockKafka(brokers=2) as cluster:
        ask(cluster, request_of("ApiVersions"))
        address = cluster.addresses[1].split(":")
    cluster.stop()
    assert threading.active_count() == before
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((address[0], int(address[1])), timeout=5).close()
    with pytest.raises(RuntimeError):
        cluster.failover(2)


def test_a_cluster_that_cannot_start():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        cluster = MockKafka(brokers=1, port=taken.getsockname()[1])
        with pytest.raises(OSError, match="in use"):
            cluster.start()
    cluster.stop()


@pytest.mark.requirement("DP-COORD-16")
async def test_coordinators_are_ready_in_the_fixture_and_on_request() -> None:
    async def codes(**options: Any) -> list[int]:
        async with MockCluster(2, clock="manual", **options) as mock, connect(mock) as wire:
            asks = [request_of("FindCoordinator", key="k", key_type=kind) for kind in (0, 1)]
            return [(await wire.ask(ask, 3)).error_code for ask in asks]

    assert await codes() == [15, 15]
    assert await codes(ready_coordinators=True) == [0, 0]


def test_the_fixture_has_ready_coordinators(mock_kafka: MockKafka) -> None:
    assert mock_kafka.options.ready_coordinators


def test_a_threaded_cluster_has_the_assertions_of_the_fixture() -> None:
    def public(of: type[Any]) -> set[str]:
        return {name for name in dir(of) if not name.startswith("_")}

    assert public(MockKafka) == public(ThreadedCluster)
    with ThreadedCluster(1) as mock:
        mock.assert_not_requested("Metadata")
        with pytest.raises(AssertionError, match=r"no Metadata request within 0\.01 s"):
            mock.wait_for("Metadata", timeout=0.01)
