"""``/admin/reassign_partitions``, as Kafka 3.9.2 was seen to treat it."""

import pytest

from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulation.reassignment.walks import warnings
from tests.mockbroker.simulation.reassignment.zookeeper_story import (
    FOO,
    PLAN,
    alter,
    cluster_of,
    listed,
    plan_of,
    planned,
    shape,
    story,
    submit,
)

FOO_1, BAR = ("foo", 1), ("bar", 0)
THREE = ("foo=1,2,3/1,2,3", "bar=1,2")


@pytest.mark.requirement("K455-60", "K455-61")
def test_a_plan_starts_what_it_says_and_holds_what_is_under_way() -> None:
    cluster = cluster_of(*THREE)
    submit(cluster, {FOO: [4, 1], FOO_1: [3, 2, 1], BAR: [2, 5]})
    assert planned(cluster) == {FOO: [4, 1], BAR: [2, 5]}
    assert list(listed(cluster)) == [BAR, FOO]
    assert shape(cluster, FOO_1) == ([3, 2, 1], [1, 2, 3], 1, 1)
    Operations(cluster).join_isr(FOO, 4)
    assert planned(cluster) == {BAR: [2, 5]}
    Operations(cluster).join_isr(BAR, 5)
    assert planned(cluster) is None
    assert listed(cluster) == {}


@pytest.mark.requirement("K455-42", "K455-61")
def test_a_partition_leaves_the_plan_once_its_new_replicas_are_on_record() -> None:
    cluster = cluster_of()
    submit(cluster, {FOO: [4, 1]})
    since = len(cluster.log)
    Operations(cluster).join_isr(FOO, 4)
    assert story(cluster, since)[-3:] == [
        "topic znode 4,1+-",
        "plan gone",
        "UpdateMetadata to 1,2,3,4,5,6 4,1 isr 1,4 1@4",
    ]


@pytest.mark.requirement("K455-60")
def test_the_next_plan_is_seen_once_the_znode_has_gone() -> None:
    cluster = cluster_of()
    for target in ([2, 1], [1], [3]):
        submit(cluster, {FOO: target})
        if target == [3]:
            Operations(cluster).join_isr(FOO, 3)
        assert cluster.topics.partition(*FOO).replicas == tuple(target)
        assert planned(cluster) is None


@pytest.mark.requirement("K455-60")
def test_writes_while_it_is_there_start_nothing() -> None:
    cluster = cluster_of(*THREE)
    submit(cluster, {FOO: [4, 1]})
    since = len(cluster.log)
    submit(cluster, {FOO: [4, 1], BAR: [3]})
    assert story(cluster, since) == ["plan written"]
    assert list(listed(cluster)) == [FOO]
    Operations(cluster).join_isr(FOO, 4)
    # What ended is looked for in the znode as it is by then, and nothing else is looked at.
    assert planned(cluster) == {BAR: [3]}
    assert listed(cluster) == {}


@pytest.mark.requirement("K455-60")
def test_what_was_written_meanwhile_is_taken_by_the_next_controller() -> None:
    cluster = cluster_of(*THREE)
    submit(cluster, {FOO: [4, 1]})
    submit(cluster, {BAR: [3]})
    Operations(cluster).failover(2)
    assert list(listed(cluster)) == [BAR, FOO]


@pytest.mark.requirement("K455-61")
def test_deleting_the_znode_cancels_nothing_and_hides_the_next_plan() -> None:
    """Kafka's watch is used up, and left again only after a deletion of its own."""
    cluster = cluster_of(*THREE)
    submit(cluster, {FOO: [4, 1]})
    Operations(cluster).write_znode(PLAN, None)
    assert list(listed(cluster)) == [FOO]
    submit(cluster, {BAR: [3]})
    assert list(listed(cluster)) == [FOO]
    assert planned(cluster) == {BAR: [3]}


@pytest.mark.requirement("K455-60", "K860-09")
def test_another_replication_factor_is_no_matter() -> None:
    """The guard is the API's: even where all of that is guarded, this is not."""
    cluster = cluster_of()
    submit(cluster, {FOO: [1, 2]})
    assert shape(cluster) == ([1, 2], [1, 2], 1, 2)
    assert warnings(cluster) == []


@pytest.mark.requirement("K455-60")
def test_what_cannot_be_reassigned_leaves_the_plan_and_the_log_says_why() -> None:
    cluster = cluster_of()
    submit(cluster, {("foo", 9): [1], FOO: [4, 1], ("none", 0): [1]})
    assert planned(cluster) == {FOO: [4, 1]}
    assert warnings(cluster) == [
        f"{PLAN}: foo-9 is not reassigned: the partition does not exist",
        f"{PLAN}: none-0 is not reassigned: the partition does not exist",
    ]


@pytest.mark.requirement("K455-60")
def test_an_empty_replica_list_is_refused() -> None:
    cluster = cluster_of()
    since = len(cluster.log)
    submit(cluster, {FOO: []})
    assert planned(cluster) is None
    assert shape(cluster) == ([1, 2, 3], [1, 2, 3], 1, 0)
    assert warnings(cluster) == [f"{PLAN}: foo-0 is not reassigned: an empty replica list"]
    assert story(cluster, since) == ["plan written", "plan gone"]


@pytest.mark.requirement("K455-60")
def test_a_broker_named_twice_counts_once_and_its_plan_is_never_done() -> None:
    """As a real 3.9.2 leaves it: what the plan asks for is not what the partition ever has."""
    cluster = cluster_of()
    submit(cluster, {FOO: [2, 2, 4]})
    assert listed(cluster) == {FOO: ([2, 4, 1, 3], [4], [1, 3])}
    Operations(cluster).join_isr(FOO, 4)
    assert (listed(cluster), cluster.topics.partition(*FOO).replicas) == ({}, (2, 4))
    assert planned(cluster) == {FOO: [2, 2, 4]}


@pytest.mark.requirement("K455-60")
def test_a_broker_nobody_knows_is_waited_for() -> None:
    """Kafka checks no broker here; the API can cancel it."""
    cluster = cluster_of()
    submit(cluster, {FOO: [99, 1]})
    assert listed(cluster) == {FOO: ([99, 1, 2, 3], [99], [2, 3])}
    assert alter(cluster, None) == (0, None)
    assert planned(cluster) is None
    assert shape(cluster)[0] == [1, 2, 3]


@pytest.mark.requirement("K455-60")
@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"version":1}', '{"partitions":[{"topic":"foo"}]}', "\ud800", "[" * 100_000,
     '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[-1]}]}'],
)  # fmt: skip
def test_a_text_that_is_no_plan_is_logged_and_stays_until_something_is_taken_out(text):
    cluster = cluster_of()
    Operations(cluster).write_znode(PLAN, text)
    (warning,) = warnings(cluster)
    assert warning.startswith(f"{PLAN}: ")
    assert warning.endswith("; no reassignments in it")
    assert cluster.znodes.read(PLAN) is not None
    assert alter(cluster, [])[0] == 39
    assert cluster.znodes.read(PLAN) is None
    submit(cluster, {FOO: [2]})
    assert shape(cluster)[0] == [2]


@pytest.mark.requirement("K455-60")
def test_a_plan_of_nothing_stays_as_long() -> None:
    cluster = cluster_of()
    Operations(cluster).write_znode(PLAN, plan_of({}))
    assert planned(cluster) == {}
    alter(cluster, [3, 2, 1])
    assert planned(cluster) is None


@pytest.mark.requirement("K455-63")
def test_a_request_takes_its_partition_out_of_the_plan_and_so_it_wins() -> None:
    cluster = cluster_of(*THREE)
    submit(cluster, {FOO: [4, 1], BAR: [2, 5]})
    assert alter(cluster, [6, 2]) == (0, None)
    assert planned(cluster) == {BAR: [2, 5]}
    Operations(cluster).failover(2)
    assert listed(cluster)[FOO] == ([6, 2, 1, 3], [6], [1, 3])
    assert listed(cluster)[BAR] == ([2, 5, 1], [5], [1])


@pytest.mark.requirement("K455-63")
def test_a_refused_request_takes_nothing_out() -> None:
    cluster = cluster_of()
    submit(cluster, {FOO: [4, 1]})
    assert alter(cluster, [77])[0] == 39
    assert planned(cluster) == {FOO: [4, 1]}


@pytest.mark.requirement("K455-63")
def test_a_cancellation_takes_its_partition_out_of_the_plan() -> None:
    cluster = cluster_of()
    submit(cluster, {FOO: [4, 1]})
    assert alter(cluster, None) == (0, None)
    assert planned(cluster) is None
    submit(cluster, {FOO: [3]})
    assert shape(cluster)[0] == [3]


@pytest.mark.requirement("K455-60")
def test_a_plan_supplants_a_request_under_way() -> None:
    cluster = cluster_of()
    alter(cluster, [4, 5])
    submit(cluster, {FOO: [4, 6]})
    assert listed(cluster) == {FOO: ([4, 6, 1, 2, 3], [4, 6], [1, 2, 3])}


@pytest.mark.requirement("K455-60")
def test_an_end_that_is_not_what_the_plan_wants_leaves_it_there() -> None:
    """It was changed meanwhile: Kafka compares the replicas, too."""
    cluster = cluster_of()
    submit(cluster, {FOO: [4, 1]})
    submit(cluster, {FOO: [5, 1]})
    Operations(cluster).join_isr(FOO, 4)
    assert shape(cluster)[0] == [4, 1]
    assert planned(cluster) == {FOO: [5, 1]}
