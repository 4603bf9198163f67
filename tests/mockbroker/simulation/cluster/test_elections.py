"""ElectLeaders (43): who leads, who cannot, and Kafka's words for it."""

import pytest

from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.results import ElectLeadersResult, PartitionResult, TopicResult

PREFERRED, UNCLEAN = 0, 1

NOT_AVAILABLE = (80, "The preferred leader was not available.")
NOT_NEEDED = (84, "Leader election not needed for topic partition.")
NO_ELIGIBLE = (83, "Eligible topic partition leaders are not available.")


def one(
    cluster: Cluster, election_type: int, topic: str = "foo", index: int = 0
) -> PartitionResult:
    result = cluster.elections.elect(election_type, [(topic, [index])])
    assert result.error_code == 0
    (row,) = result.topics
    assert row.name == topic
    return row.partitions[0]


def led_by_second() -> Cluster:
    """foo-0 on [1, 2, 3], led by 2, broker 1 back but not in sync."""
    cluster = Cluster(3, topics=["foo=1,2,3"])
    Operations(cluster).stop_broker(1)
    Operations(cluster).start_broker(1)
    assert cluster.topics.partition("foo", 0).leader == 2
    return cluster


def test_preferred_leader_takes_over_once_in_sync() -> None:
    cluster = led_by_second()
    Operations(cluster).join_isr(("foo", 0), 1)
    epoch = cluster.topics.partition("foo", 0).leader_epoch
    assert one(cluster, PREFERRED) == PartitionResult(0)
    assert cluster.topics.partition("foo", 0).leader == 1
    assert cluster.topics.partition("foo", 0).leader_epoch == epoch + 1
    assert one(cluster, PREFERRED) == PartitionResult(0, *NOT_NEEDED)


@pytest.mark.requirement("K183-25")
def test_preferred_leader_out_of_sync() -> None:
    cluster = led_by_second()
    assert one(cluster, PREFERRED) == PartitionResult(0, *NOT_AVAILABLE)


def test_a_failed_preferred_election_leaves_the_leader() -> None:
    """Not the first in replica order, but who leads already."""
    cluster = Cluster(3, topics=["foo=1,2,3"])
    for broker_id in (1, 2):
        Operations(cluster).stop_broker(broker_id)
        Operations(cluster).start_broker(broker_id)
    Operations(cluster).join_isr(("foo", 0), 2)
    assert cluster.topics.partition("foo", 0).leader == 3
    assert one(cluster, PREFERRED) == PartitionResult(0, *NOT_AVAILABLE)
    assert cluster.topics.partition("foo", 0).leader == 3


def test_unknown_partitions() -> None:
    cluster = Cluster(3, topics=["foo:1:3"])
    assert one(cluster, PREFERRED, "bar") == PartitionResult(0, 3, "No such topic as bar")
    assert one(cluster, PREFERRED, "foo", 9) == PartitionResult(9, 3, "No such partition as foo-9")
    assert one(cluster, UNCLEAN, "foo", -1) == PartitionResult(-1, 3, "No such partition as foo--1")


def test_unclean_election() -> None:
    cluster = Cluster(3, topics=["foo=1,2,3"])
    assert one(cluster, UNCLEAN) == PartitionResult(0, *NOT_NEEDED)
    for broker_id in (2, 3, 1):
        Operations(cluster).stop_broker(broker_id)
    offline = cluster.topics.partition("foo", 0)
    assert (offline.leader, offline.isr) == (-1, (1,))
    assert one(cluster, UNCLEAN) == PartitionResult(0, *NO_ELIGIBLE)
    Operations(cluster).start_broker(3)
    assert cluster.topics.partition("foo", 0).leader == -1
    assert one(cluster, PREFERRED) == PartitionResult(0, *NOT_AVAILABLE)
    assert one(cluster, UNCLEAN) == PartitionResult(0)
    elected = cluster.topics.partition("foo", 0)
    assert (elected.leader, elected.isr) == (3, (3,))
    assert elected.leader_epoch == offline.leader_epoch + 1


def test_all_leaves_out_who_needs_none() -> None:
    cluster = Cluster(3, topics=["foo=1,2/2,3", "bar=3"])
    Operations(cluster).stop_broker(1)
    Operations(cluster).start_broker(1)
    Operations(cluster).join_isr(("foo", 0), 1)
    assert cluster.elections.elect(PREFERRED, None) == ElectLeadersResult(
        0, (TopicResult("bar", ()), TopicResult("foo", (PartitionResult(0),)))
    )
    assert cluster.topics.partition("foo", 0).leader == 1


def test_none_asked_for() -> None:
    cluster = Cluster(3, topics=["foo:1:3"])
    assert cluster.elections.elect(PREFERRED, []) == ElectLeadersResult(0, ())
    assert cluster.elections.elect(PREFERRED, [("foo", [])]) == ElectLeadersResult(
        0, (TopicResult("foo", ()),)
    )


def test_a_partition_named_twice_is_elected_twice() -> None:
    """As seen from Kafka 4.4: both rows succeed, and the epoch counts both."""
    cluster = led_by_second()
    Operations(cluster).join_isr(("foo", 0), 1)
    before = cluster.topics.partition("foo", 0).leader_epoch
    result = cluster.elections.elect(PREFERRED, [("foo", [0, 7, 0]), ("bar", [1])])
    assert [(row.name, [p.partition_index for p in row.partitions]) for row in result.topics] == [
        ("foo", [0, 7, 0]),
        ("bar", [1]),
    ]
    assert result.topics[0].partitions[0] == result.topics[0].partitions[2] == PartitionResult(0)
    assert cluster.topics.partition("foo", 0).leader_epoch == before + 2


@pytest.mark.parametrize("election_type", [-1, 2, 127])
def test_unknown_election_type(election_type: int) -> None:
    cluster = led_by_second()
    Operations(cluster).join_isr(("foo", 0), 1)
    text = f"Unknown election type {election_type}"
    assert cluster.elections.elect(election_type, [("foo", [0, 1])]) == ElectLeadersResult(
        42, (TopicResult("foo", (PartitionResult(0, 42, text), PartitionResult(1, 42, text))),)
    )
    assert cluster.elections.elect(election_type, None) == ElectLeadersResult(42, ())
    assert cluster.topics.partition("foo", 0).leader == 2
