"""What brokers do by themselves if their properties file says so: elect preferred leaders, and
remove replicas from the ISR that lag."""

import pytest

from mockbroker import Operations
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.state.actions import PartitionChanged
from tests.mockbroker.simulated import simulated_cluster

ENABLED = "auto.leader.rebalance.enable"
INTERVAL = {"leader.imbalance.check.interval.seconds": "10"}
LAG = "replica.lag.time.max.ms"


def moved(configs: dict[str, str], reassignment: str = "kraft", topics: int = 1) -> Cluster:
    """A cluster whose broker 1 has lost the leadership of foo-0, and is back in the ISR."""
    others = [(f"bar{each}", [[1, 2, 3]]) for each in range(topics - 1)]
    cluster = simulated_cluster(
        3, topics=[*others, ("foo", [[2, 1, 3]])], broker_configs=configs,
        reassignment=reassignment, release=(3, 9),
    )  # fmt: skip
    operations = Operations(cluster)
    operations.stop_broker(2)
    operations.start_broker(2)
    operations.join_isr(("foo", 0), 2)
    assert leader(cluster) != 2
    return cluster


def leader(cluster: Cluster) -> int:
    return cluster.topics.partition("foo", 0).leader


@pytest.mark.parametrize("reassignment", ["kraft", "zookeeper"])
def test_a_preferred_replica_becomes_leader_again(reassignment: str) -> None:
    cluster = moved({ENABLED: "true", **INTERVAL}, reassignment)
    cluster.turns.advance(9_999)
    assert leader(cluster) != 2
    cluster.turns.advance(1)
    assert leader(cluster) == 2
    (cause,) = {
        each.cause
        for each in cluster.log
        if isinstance(each.change, PartitionChanged)
        and each.change.after.leader == 2
        and each.change.before.leader != 2
    }
    assert cause == "auto_rebalance"


@pytest.mark.parametrize("configs", [{}, {ENABLED: "false"}])
def test_without_the_config_nothing_happens(configs: dict[str, str]) -> None:
    cluster = moved(configs | INTERVAL)
    cluster.turns.advance(86_400_000)
    assert leader(cluster) != 2


@pytest.mark.parametrize(("percentage", "elected"), [("99", True), ("100", False)])
def test_a_controller_with_zookeeper_tolerates_some_imbalance(percentage, elected):
    configs = {
        ENABLED: "true", **INTERVAL, "leader.imbalance.per.broker.percentage": percentage,
    }  # fmt: skip
    cluster = moved(configs, "zookeeper", 3)
    cluster.turns.advance(10_000)
    assert (leader(cluster) == 2) is elected
    with_kraft = moved(configs)
    with_kraft.turns.advance(10_000)
    assert leader(with_kraft) == 2


def test_a_held_replica_that_lacks_records_leaves_the_isr() -> None:
    cluster = simulated_cluster(3, topics=[("foo", [[1, 2, 3]])], broker_configs={LAG: "1000"})
    operations = Operations(cluster)
    operations.hold_replication(("foo", 0), 3)
    cluster.turns.advance(60_000)
    assert cluster.topics.partition("foo", 0).isr == (1, 2, 3)
    operations.append(("foo", 0), '{"value": "x"}')
    cluster.turns.advance(1_000)
    assert cluster.topics.partition("foo", 0).isr == (1, 2, 3)
    cluster.turns.advance(1_000)
    assert cluster.topics.partition("foo", 0).isr == (1, 2)


def test_without_a_time_a_held_replica_stays() -> None:
    cluster = simulated_cluster(3, topics=[("foo", [[1, 2, 3]])])
    operations = Operations(cluster)
    operations.hold_replication(("foo", 0), 3)
    operations.append(("foo", 0), '{"value": "x"}')
    cluster.turns.advance(86_400_000)
    assert cluster.topics.partition("foo", 0).isr == (1, 2, 3)
