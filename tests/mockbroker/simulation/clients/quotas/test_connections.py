"""``connection_creation_rate``: connections beyond it are accepted, and closed unread."""

import asyncio

import pytest

from mockbroker import MockCluster
from mockbroker.simulation.clients.quotas.client_quotas import Alteration
from mockbroker.simulation.cluster import Cluster
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.wire import connect

LOCAL = "127.0.0.1"

RATE = "connection_creation_rate"


def limit(cluster: Cluster, name: str | None, value: float | None) -> None:
    entity = (("ip", name),)
    (result,) = cluster.quotas.alter([Alteration(entity, [(RATE, value)])])
    assert result.error_code == 0


def accepted(cluster: Cluster, address: str = LOCAL, broker_id: int = 1) -> int:
    """How many of twenty connections are accepted."""
    return sum(not cluster.meters.connection(broker_id, address) for _ in range(20))


@pytest.mark.requirement("QUOTA-21")
def test_connections_beyond_the_rate_are_held_and_do_not_count() -> None:
    cluster = Cluster(2)
    assert accepted(cluster) == 20
    limit(cluster, LOCAL, 1)
    # Ten in the ten seconds that a new rate is about.
    assert accepted(cluster) == 10
    assert cluster.meters.connection(1, LOCAL) == 1_000
    assert accepted(cluster, "127.0.0.2") == 20
    assert accepted(cluster, broker_id=2) == 10
    cluster.turns.advance(10_500)
    # The rate is about the last 10.5 seconds.
    assert cluster.meters.connection(1, LOCAL) == 500
    cluster.turns.advance(500)
    assert accepted(cluster) == 10


@pytest.mark.requirement("QUOTA-21")
def test_an_address_of_its_own_goes_before_the_default() -> None:
    cluster = Cluster(1)
    limit(cluster, None, 1)
    limit(cluster, "localhost", 2)
    assert accepted(cluster, "10.0.0.1") == 10
    assert accepted(cluster) == 20
    assert cluster.meters.connection(1, LOCAL) == 500
    limit(cluster, LOCAL, None)
    limit(cluster, None, None)
    assert accepted(cluster, "10.0.0.2") == 20


@pytest.mark.requirement("QUOTA-21")
def test_the_rate_exists_since_2_8() -> None:
    cluster = simulated_cluster(1, release=(2, 8), reassignment="zookeeper")
    limit(cluster, LOCAL, 1)
    assert accepted(cluster) == 10
    former = simulated_cluster(1, release=(2, 7))
    (result,) = former.quotas.alter([Alteration((("ip", LOCAL),), [(RATE, 1)])])
    assert result.text == "Unhandled client quota entity type: ip"
    assert accepted(former) == 20


@pytest.mark.slow
@pytest.mark.requirement("QUOTA-21")
async def test_a_held_connection_is_closed_without_an_answer() -> None:
    async with MockCluster(brokers=1, profile="kafka-4.4", clock="manual") as mock:
        limit(mock.cluster, LOCAL, 1)
        for _ in range(10):
            async with connect(mock) as wire:
                assert (await wire.ask("ApiVersions", 0)).error_code == 0
        host, port = mock.addresses[1].rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port))
        assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()
        notes = [entry.note for entry in mock.journal.select(event="throttled")]
        assert notes == ["exceeds connection_creation_rate; it is closed after 1000 ms"]
        mock.cluster.turns.advance(11_000)
        async with connect(mock) as wire:
            assert (await wire.ask("ApiVersions", 0)).error_code == 0
