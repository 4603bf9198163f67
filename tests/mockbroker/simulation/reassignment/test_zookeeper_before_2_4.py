"""Kafka's ZooKeeper controller before reassignments were on record: 1.1 to 2.3.

Replicas, leader epochs and plans are what Kafka 1.1.1 and 2.3.1 (``kafka_2.12``) wrote into
ZooKeeper when they were given the same plan.
"""

import pytest

from mockbroker.profiles import profile
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulation.reassignment.zookeeper_story import (
    FOO,
    PLAN,
    TOPIC,
    cluster_of,
    planned,
    shape,
    story,
    submit,
)

BAR = ("bar", 0)
TWO = ("two", 0)
ALL = "1,2,3,4,5,6"
OLD = profile("kafka-1.1").reassignment
LAST = profile("kafka-2.3").reassignment


@pytest.mark.requirement("K455-60")
@pytest.mark.parametrize("release", ["kafka-1.1", "kafka-2.3"])
def test_new_and_old_replicas_are_written_in_the_order_of_a_scala_set(release: str) -> None:
    """More than four are in the order of their hashes; the target keeps its own."""
    cluster = cluster_of(
        "foo=1,2,3", "bar=1,2", "two=1", reassignment=profile(release).reassignment
    )
    submit(cluster, {FOO: [4, 5, 6], BAR: [5, 1], TWO: [4, 6, 5]})
    assert shape(cluster) == ([5, 1, 6, 2, 3, 4], [1, 2, 3], 1, 1)
    assert shape(cluster, BAR) == ([5, 1, 2], [1, 2], 1, 1)
    assert shape(cluster, TWO) == ([4, 6, 5, 1], [1], 1, 1)
    assert cluster.state.znodes[TOPIC] == '{"version":1,"partitions":{"0":[5,1,6,2,3,4]}}'
    for broker in (4, 5, 6):
        Operations(cluster).join_isr(FOO, broker)
    assert shape(cluster)[:3] == ([4, 5, 6], [4, 5, 6], 4)
    assert cluster.state.znodes[TOPIC] == '{"version":1,"partitions":{"0":[4,5,6]}}'


@pytest.mark.requirement("K455-60")
def test_a_start_writes_the_topic_once_and_the_first_request_calls_nobody_new() -> None:
    """The second does, with the epoch of before."""
    cluster = cluster_of(reassignment=OLD)
    since = len(cluster.log)
    submit(cluster, {FOO: [4, 5, 6]})
    both = "5,1,6,2,3,4"
    assert [line.replace("+4,5,6-1,2,3", "") for line in story(cluster, since)] == [
        "plan written",
        "memory 1,2,3 isr 1,2,3 1@0",
        f"topic znode {both}+-",
        f"memory {both} isr 1,2,3 1@0",
        "state znode isr 1,2,3 1@1",
        f"memory {both} isr 1,2,3 1@1",
        f"LeaderAndIsr to {both} {both} isr 1,2,3 1@1",
        f"UpdateMetadata to {ALL} {both} isr 1,2,3 1@1",
        f"LeaderAndIsr new to 4,5,6 {both} isr 1,2,3 1@0",
    ]


@pytest.mark.requirement("K455-60")
def test_what_is_there_already_is_taken_out_of_the_plan_and_nothing_else() -> None:
    cluster = cluster_of(reassignment=LAST)
    since = len(cluster.log)
    submit(cluster, {FOO: [1, 2, 3]})
    assert shape(cluster) == ([1, 2, 3], [1, 2, 3], 1, 0)
    assert not [line for line in story(cluster, since) if "znode" in line or "sAnd" in line]
    assert planned(cluster) is None


@pytest.mark.requirement("K455-60")
def test_what_is_in_sync_already_ends_without_a_start_and_tells_old_replicas_too() -> None:
    cluster = cluster_of(reassignment=OLD)
    since = len(cluster.log)
    submit(cluster, {FOO: [1, 2]})
    assert story(cluster, since) == [
        "plan written",
        "memory 1,2,3 isr 1,2,3 1@0",
        "memory 1,2 isr 1,2,3 1@0",
        "state znode isr 1,2,3 1@1",
        "memory 1,2 isr 1,2,3 1@1",
        "LeaderAndIsr to 1,2,3 1,2+- isr 1,2,3 1@1",
        f"UpdateMetadata to {ALL} 1,2 isr 1,2,3 1@1",
        "state znode isr 1,2 1@2",
        "memory 1,2 isr 1,2 1@2",
        "LeaderAndIsr to 1,2 1,2+- isr 1,2 1@2",
        f"UpdateMetadata to {ALL} 1,2 isr 1,2 1@2",
        "StopReplica to 3",
        "StopReplica delete to 3",
        "topic znode 1,2+-",
        "plan gone",
        f"UpdateMetadata to {ALL} 1,2 isr 1,2 1@2",
    ]
    cluster = cluster_of(reassignment=OLD)
    since = len(cluster.log)
    submit(cluster, {FOO: [2]})
    first = next(line for line in story(cluster, since) if line.startswith("LeaderAndIsr"))
    assert first == "LeaderAndIsr to 2 2+- isr 1,2,3 2@1"


@pytest.mark.requirement("K455-60")
def test_the_end_comes_when_the_whole_target_is_in_sync() -> None:
    cluster = cluster_of("foo=1,2", reassignment=LAST)
    submit(cluster, {FOO: [4]})
    since = len(cluster.log)
    Operations(cluster).join_isr(FOO, 4)
    assert story(cluster, since) == [
        "state znode isr 1,2,4 1@1",
        "memory 4,1,2 isr 1,2,4 1@1",
        f"UpdateMetadata to {ALL} 4,1,2 isr 1,2,4 1@1",
        "memory 4 isr 1,2,4 1@1",
        "state znode isr 1,2,4 4@2",
        "memory 4 isr 1,2,4 4@2",
        "LeaderAndIsr to 4 4+- isr 1,2,4 4@2",
        f"UpdateMetadata to {ALL} 4 isr 1,2,4 4@2",
        "state znode isr 2,4 4@3",
        "memory 4 isr 2,4 4@3",
        "state znode isr 4 4@4",
        "memory 4 isr 4 4@4",
        "LeaderAndIsr to 4 4+- isr 4 4@4",
        f"UpdateMetadata to {ALL} 4 isr 4 4@4",
        "StopReplica to 1,2",
        "StopReplica delete to 1,2",
        "topic znode 4+-",
        "plan gone",
        f"UpdateMetadata to {ALL} 4 isr 4 4@4",
    ]


@pytest.mark.requirement("K455-60")
@pytest.mark.parametrize("reassignment", [OLD, LAST])
def test_the_plan_is_written_anew_from_memory_whatever_became_of_the_znode(reassignment):
    cluster = cluster_of("foo=1,2,3", "bar=1,2", "two=1", reassignment=reassignment)
    submit(cluster, {FOO: [4, 5, 6], BAR: [5, 1], TWO: [4, 6, 5]})
    Operations(cluster).write_znode(PLAN, None)
    submit(cluster, {FOO: [2, 6]})
    Operations(cluster).join_isr(BAR, 5)
    assert planned(cluster) == {FOO: [4, 5, 6], TWO: [4, 6, 5]}
    for broker in (4, 5, 6):
        Operations(cluster).join_isr(FOO, broker)
    assert planned(cluster) == {TWO: [4, 6, 5]}
    for broker in (4, 5, 6):
        Operations(cluster).join_isr(TWO, broker)
    assert planned(cluster) is None


@pytest.mark.requirement("K455-60")
def test_a_plan_is_remembered_as_a_whole_before_any_of_it_ends() -> None:
    cluster = cluster_of("foo=1,2,3", "bar=1,2", reassignment=LAST)
    submit(cluster, {BAR: [1], FOO: [4, 2, 3]})
    assert shape(cluster, BAR)[0] == [1]
    assert planned(cluster) == {FOO: [4, 2, 3]}


@pytest.mark.requirement("K455-38", "K455-60")
def test_a_new_controller_takes_replicas_that_only_add_for_done() -> None:
    """The topic says no more than that they are replicas; then the plan asks for what there is."""
    cluster = cluster_of("foo=1", reassignment=LAST)
    submit(cluster, {FOO: [1, 2]})
    Operations(cluster).failover(2)
    assert planned(cluster) is None
    assert shape(cluster)[:2] == ([1, 2], [1])


@pytest.mark.requirement("K455-60")
def test_a_broker_that_returns_is_told_of_what_is_planned_for_it() -> None:
    cluster = cluster_of(reassignment=LAST)
    Operations(cluster).stop_broker(5)
    submit(cluster, {FOO: [4, 5]})
    since = len(cluster.log)
    Operations(cluster).start_broker(5)
    told = "LeaderAndIsr to 5,1,2,3,4 5,1,2,3,4+4,5-1,2,3 isr 1,2,3 1@2"
    assert told in story(cluster, since)
    for broker in (4, 5):
        Operations(cluster).join_isr(FOO, broker)
    assert shape(cluster)[:2] == ([4, 5], [4, 5])
    assert planned(cluster) is None


@pytest.mark.requirement("K455-60")
def test_what_is_in_sync_and_down_ends_without_a_leader() -> None:
    cluster = cluster_of("foo=2,1,3", reassignment=LAST)
    for broker in (1, 3):
        Operations(cluster).leave_isr(FOO, broker)
    Operations(cluster).stop_broker(2)
    before = shape(cluster)
    assert before[:3] == ([2, 1, 3], [2], -1)
    since = len(cluster.log)
    submit(cluster, {FOO: [2]})
    assert shape(cluster) == ([2], *before[1:])
    told = f"UpdateMetadata to 1,3,4,5,6 2 isr 2 -1@{before[3]}"
    assert story(cluster, since)[1:] == [
        f"memory 2,1,3 isr 2 -1@{before[3]}",
        f"memory 2 isr 2 -1@{before[3]}",
        told,
        "StopReplica to 1,3",
        "StopReplica delete to 1,3",
        "topic znode 2+-",
        "plan gone",
        told,
    ]
