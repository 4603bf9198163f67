"""What the ZooKeeper controller answers to 45 and 46, word for word as Kafka 3.9.2 did."""

import pytest

from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.reassignment.zookeeper.refusal_texts import scala_set
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.reassignment.zookeeper_story import (
    FOO,
    ZK,
    alter,
    cluster_of,
    listed,
    shape,
)
from tests.support.requests import request_of

NOT_ALIVE = "Replica assignment has brokers that are not alive. Replica list: "
NO_REASSIGNMENT = (85, "No partition reassignment is in progress.")
NO_PARTITION = (3, "The partition does not exist.")


@pytest.mark.requirement("K455-22", "K455-23")
@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ([], "Empty replica list specified in partition reassignment."),
        (
            [1, 1, 2],
            "Duplicate replica ids in partition reassignment replica list: ArrayBuffer(1, 1, 2)",
        ),
        ([1, -1], "Invalid broker id in replica list: ArrayBuffer(1, -1)"),
        (
            [4, -5, -5],
            "Duplicate replica ids in partition reassignment replica list: ArrayBuffer(4, -5, -5)",
        ),
        ([1, 2, 99], f"{NOT_ALIVE}ArrayBuffer(1, 2, 99), live broker list: Set(1, 2, 3)"),
        ([99, 98], f"{NOT_ALIVE}ArrayBuffer(99, 98), live broker list: Set(1, 2, 3)"),
        ([4], f"{NOT_ALIVE}ArrayBuffer(4), live broker list: Set(1, 2, 3)"),
    ],
)
def test_what_is_wrong_with_a_list(asked: list[int], text: str) -> None:
    """None of them is a replica of foo-1, so each would be one more."""
    cluster = cluster_of("foo=1,2,3/3", brokers=4)
    Operations(cluster).stop_broker(4)
    since = len(cluster.log)
    tp = ("foo", 0) if asked == [4] else ("none", 0)
    assert alter(cluster, asked, tp) == (39, text)
    assert not cluster.log.since(since)


@pytest.mark.requirement("K455-23")
def test_only_those_to_be_added_have_to_be_alive_and_are_named() -> None:
    cluster = cluster_of(brokers=4)
    Operations(cluster).stop_broker(3)
    assert alter(cluster, [3, 1, 99, 4]) == (
        39,
        f"{NOT_ALIVE}ArrayBuffer(99, 4), live broker list: Set(1, 2, 4)",
    )
    assert alter(cluster, [3, 1]) == (0, None)
    assert listed(cluster) == {FOO: ([3, 1, 2], [], [2])}


@pytest.mark.requirement("K455-23")
def test_sets_are_written_as_scala_writes_them() -> None:
    """What Scala 2.13 prints of the same sets."""
    assert scala_set([]) == "Set()"
    assert scala_set([4, 2, 9, 1]) == "Set(4, 2, 9, 1)"
    assert scala_set(range(1, 6)) == "HashSet(5, 1, 2, 3, 4)"
    assert scala_set(range(1, 7)) == "HashSet(5, 1, 6, 2, 3, 4)"
    assert scala_set(range(1, 11)) == "HashSet(5, 10, 1, 6, 9, 2, 7, 3, 8, 4)"
    assert sorted(eval(scala_set(range(200)).replace("HashSet", ""))) == list(range(200))


@pytest.mark.requirement("K455-22", "A-42")
def test_unknown_partitions_and_idle_ones() -> None:
    """A cancellation of what does not exist finds nothing under way; a bad list is bad first."""
    cluster = cluster_of()
    assert alter(cluster, [1], ("foo", 9)) == NO_PARTITION
    assert alter(cluster, [1], ("none", 0)) == NO_PARTITION
    assert alter(cluster, None, ("foo", 9)) == NO_REASSIGNMENT
    assert alter(cluster, None, ("none", 0)) == NO_REASSIGNMENT
    assert alter(cluster, None) == NO_REASSIGNMENT


@pytest.mark.requirement("K455-23")
def test_refused_rows_stop_no_other() -> None:
    cluster = cluster_of("foo=1,2,3/1,2,3")
    result = cluster.reassignments.alter([("foo", [(0, []), (1, [4])]), ("none", [(0, None)])])
    assert [
        (topic.name, row.partition_index, row.error_code)
        for topic in result.topics
        for row in topic.partitions
    ] == [("foo", 0, 39), ("foo", 1, 0), ("none", 0, 85)]
    assert list(listed(cluster)) == [("foo", 1)]


@pytest.mark.requirement("K455-20")
def test_a_partition_named_twice_is_asked_for_once_as_the_last_has_it() -> None:
    cluster = cluster_of()
    result = cluster.reassignments.alter(
        [("foo", [(0, [4]), (0, [])]), ("bar", []), ("foo", [(0, [5])])]
    )
    (topic,) = result.topics
    assert [(row.partition_index, row.error_code) for row in topic.partitions] == [(0, 0)]
    assert shape(cluster)[0] == [5, 1, 2, 3]


@pytest.mark.requirement("A-47", "K455-20", "K455-24")
def test_on_the_wire_the_top_has_an_empty_text_and_no_other_broker_names_what_was_asked() -> None:
    broker = DirectBroker(
        simulated_cluster(6, topics=["foo=1,2,3"], reassignment=ZK), profile_name="kafka-3.9-zk"
    )
    body = request_of(
        "AlterPartitionReassignments",
        topics=[
            {"name": "foo", "partition_index": 0, "replicas": [4, 1]},
            {"name": "empty", "partitions": []},
        ],
    )
    ask_list = request_of("ListPartitionReassignments", name="foo", partition_indexes=[0, 0, 7])
    for request, field in ((body, "responses"), (ask_list, "topics")):
        refused = broker.ask(request, 0, broker_id=2)
        assert refused.error_code == 41
        assert refused.error_message == "This is not the correct controller for this cluster."
        assert getattr(refused, field) == []
    answer = broker.ask(body, 0)
    assert (answer.error_code, answer.error_message) == (0, "")
    assert [topic.name for topic in answer.responses] == ["foo"]
    found = broker.ask(ask_list, 0)
    assert (found.error_code, found.error_message) == (0, "")
    (topic,) = found.topics
    (row,) = topic.partitions
    assert (row.replicas, row.adding_replicas, row.removing_replicas) == ([4, 1, 2, 3], [4], [2, 3])
    nothing = broker.ask("AlterPartitionReassignments", 0, topics=[])
    assert (nothing.error_message, nothing.responses) == ("", [])


@pytest.mark.requirement("K455-20", "K455-38")
def test_a_request_to_the_controller_that_was_changes_nothing() -> None:
    """In flight while another took over, or sent by one who has not heard."""
    broker = DirectBroker(
        simulated_cluster(6, topics=["foo=1,2,3"], reassignment=ZK), profile_name="kafka-3.9-zk"
    )
    body = request_of("AlterPartitionReassignments", name="foo", partition_index=0, replicas=[4])
    epoch = broker.cluster.state.controller_epoch
    Operations(broker.cluster).failover(2)
    since = len(broker.cluster.log)
    assert broker.ask(body, 0, broker_id=1).error_code == 41
    assert not broker.cluster.log.since(since)
    assert broker.ask(body, 0, broker_id=2).error_code == 0
    assert list(listed(broker.cluster)) == [FOO]
    assert broker.cluster.state.controller_epoch == epoch + 1


@pytest.mark.requirement("K455-24", "A-48")
def test_listing_leaves_out_what_is_idle_or_unknown() -> None:
    cluster = cluster_of("foo=1,2,3/1,2,3", "bar=1")
    alter(cluster, [4], ("foo", 1))
    alter(cluster, [2], ("bar", 0))
    assert list(listed(cluster)) == [("bar", 0), ("foo", 1)]
    assert cluster.reassignments.list_ongoing([("foo", [0]), ("none", [0])]).topics == ()
    (topic,) = cluster.reassignments.list_ongoing([("foo", [1, 0, 1])]).topics
    assert [row.partition_index for row in topic.partitions] == [1]
