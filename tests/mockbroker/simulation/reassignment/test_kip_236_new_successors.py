"""KIP-236, newer revision: what the next controller finds, wherever the last one died."""

from collections.abc import Callable, Iterator

import pytest

from kproto.znodes import EmbeddedStore, ZnodeTree
from mockbroker.errors import ControllerDiedError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import LeaderAndIsrSent, ZnodeWritten
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.reassignment.cancelling import (
    CANCEL,
    NEW,
    PLAN,
    QUEUE,
    cancel,
    cluster,
    entry,
    on_record,
    plan,
    queue,
    submit,
)
from tests.mockbroker.simulation.reassignment.walks import (
    FOO,
    alter,
    changes,
    joined,
    now,
    warnings,
)


@pytest.mark.requirement("K236-10", "K236-01", "K236-11")
def test_a_new_controller_goes_on_with_what_is_on_record() -> None:
    c = cluster("foo=1,2,3/1,2,3/2,3")
    submit(c, entry([4, 5]), entry([1, 4], tp=("foo", 1)), entry([3, 2], tp=("foo", 2)))
    joined(c, 4)
    listed = c.reassignments.list_ongoing(None)
    since = len(c.log)
    Operations(c).failover(2)
    assert c.reassignments.list_ongoing(None) == listed
    news = [each for each in changes(c, LeaderAndIsrSent, since) if each.leader_epoch == 2]
    assert [each.index for each in news] == [0, 1]
    assert news[0].to == news[0].replicas == (4, 5, 1, 2, 3)
    assert on_record(c) == [entry([4, 5], [1, 2, 3]), entry([1, 4], [1, 2, 3], ("foo", 1))]
    joined(c, 5)
    assert now(c) == ([4, 5], [4, 5], None)


@pytest.mark.requirement("K236-10", "K236-34")
def test_originals_come_from_the_znode_and_stay_unknown_without() -> None:
    c = cluster("foo=1,2,3/1,2,3")
    submit(c, entry([4]), entry([5], tp=("foo", 1)))
    Operations(c).write_znode(PLAN, plan(entry([4], [3, 2]), entry([5], tp=("foo", 1))))
    Operations(c).failover(2)
    assert on_record(c) == [entry([4], [3, 2]), entry([5], tp=("foo", 1))]
    cancel(c)
    assert now(c)[0] == [3, 2]
    assert now(c, ("foo", 1))[2] == [5]


@pytest.mark.requirement("K236-07", "K236-10")
def test_what_was_submitted_with_no_controller_there_gets_its_originals() -> None:
    tree = ZnodeTree()
    first = simulated_cluster(
        3, topics=["foo=1,2/2"], reassignment=NEW, znodes=EmbeddedStore(tree, lambda: 0)
    )
    first.controller.znodes.close()
    tool = EmbeddedStore(tree, lambda: 0)
    tool.create(PLAN, plan(entry([2, 1]), entry([3], tp=("foo", 1))).encode())
    tool.create(QUEUE, plan(entry([3])).encode())
    c = simulated_cluster(3, reassignment=NEW, znodes=EmbeddedStore(tree, lambda: 0))
    assert c.state.controller_epoch == 2
    assert now(c) == ([3, 2, 1], [1, 2], [3])
    assert on_record(c) == [entry([3], [2], ("foo", 1)), entry([3], [2, 1])]


@pytest.mark.requirement("K236-10", "K236-32")
def test_a_cancellation_found_at_take_over_comes_first() -> None:
    tree = ZnodeTree()
    first = simulated_cluster(
        4, topics=["foo=1,2/2"], reassignment=NEW, znodes=EmbeddedStore(tree, lambda: 0)
    )
    submit(first, entry([3, 4]), entry([3], tp=("foo", 1)))
    Operations(first).write_znode(PLAN, plan(entry([3, 4], [1, 2]), entry([3], tp=("foo", 1))))
    first.controller.znodes.close()
    tool = EmbeddedStore(tree, lambda: 0)
    tool.create(CANCEL)
    tool.create(QUEUE, plan(entry([1, 4])).encode())
    c = simulated_cluster(4, reassignment=NEW, znodes=EmbeddedStore(tree, lambda: 0))
    # foo-0 went back, and then was queued; foo-1 could not go back, and goes on, told once.
    assert now(c) == ([1, 4, 2], [1, 2], [1, 4])
    assert now(c, ("foo", 1)) == ([3, 2], [2], [3])
    told = [each for each in changes(c, LeaderAndIsrSent) if not each.is_new]
    assert [each.index for each in told].count(1) == 1
    assert warnings(c) == ["foo-1: not rolled back, as its original_replicas are missing"]
    assert c.znodes.children("/admin") == ["delete_topics", "reassign_partitions"]


@pytest.mark.requirement("K236-10", "K236-02")
def test_a_pure_addition_is_waited_for_by_the_next_controller_too() -> None:
    """It has begun, so AR is RAR on record; that is not the end of it."""
    c = cluster()
    submit(c, entry([1, 2, 3, 4]))
    Operations(c).failover(2)
    assert now(c) == ([1, 2, 3, 4], [1, 2, 3], [1, 2, 3, 4])
    assert on_record(c) == [entry([1, 2, 3, 4], [1, 2, 3])]
    joined(c, 4)
    assert now(c) == ([1, 2, 3, 4], [1, 2, 3, 4], None)
    assert on_record(c) is None


@pytest.mark.requirement("K236-07")
def test_an_unreadable_plan_at_take_over_is_removed() -> None:
    c = cluster()
    submit(c, entry([4, 5]))
    Operations(c).write_znode(PLAN, "{")
    Operations(c).failover(2)
    (warning,) = warnings(c)
    assert warning.endswith("; removed")
    assert c.znodes.read(PLAN) is None
    assert now(c) == ([4, 5, 1, 2, 3], [1, 2, 3], None)


# ---- death at every step -------------------------------------------------------------------------


def deaths(prepare: Callable[[], Cluster], act: Callable[[Cluster], object]) -> Iterator[Cluster]:
    """A cluster each, whose controller died after 0, 1, ... changes of what ``act`` makes it do,
    and was succeeded; up to the first that lived."""
    for changes_made in range(200):
        c = prepare()
        Operations(c).kill_controller_after(changes_made)
        try:
            act(c)
        except ControllerDiedError:
            yield c
        else:
            assert changes_made > 5
            return
    raise AssertionError("it never came to an end")


def _pending() -> Cluster:
    c = cluster("foo=1,2,3/2,3,1", "bar=3,2")
    submit(c, entry([4, 5]), entry([5, 6, 2], tp=("foo", 1)), entry([4], tp=("bar", 0)))
    Operations(c).join_isr(FOO, 4)
    return c


def _sound(c: Cluster) -> None:
    """Nothing is half-done: what is pending is on record, and nobody else holds a replica."""
    assert c.state.controller_id != 1
    assert c.controller.broker(c.state.controller_id).live
    recorded = {(e["topic"], e["partition"]): e for e in on_record(c) or []}
    for name, topic in c.topics.items():
        for partition in topic.partitions:
            at = recorded.pop((name, partition.index), None)
            assert partition.reassigning is (at is not None)
            assert set(partition.isr) <= set(partition.replicas)
            assert partition.leader in partition.isr
            if at is not None:
                assert set(at["replicas"]) | set(at["original_replicas"]) == {*partition.replicas}
    assert recorded == {}
    assert c.znodes.read(QUEUE) is None
    assert c.znodes.read(CANCEL) is None


def _written(c: Cluster, path: str) -> bool:
    return any(write.path == path for write in changes(c, ZnodeWritten))


WAS = {("foo", 0): (1, 2, 3), ("foo", 1): (2, 3, 1), ("bar", 0): (3, 2)}


@pytest.mark.requirement("K236-10", "K236-20", "K236-25")
def test_dying_in_a_cancellation_leaves_it_to_the_successor() -> None:
    died = 0
    for c in deaths(_pending, cancel):
        _sound(c)
        begun = _written(c, CANCEL)
        for tp, was in WAS.items():
            assert (c.topics.partition(*tp).replicas == was) is begun
            assert c.topics.partition(*tp).reassigning is not begun
        died += 1
    assert died > 40


@pytest.mark.requirement("K236-10", "K236-20", "K236-25")
def test_the_last_broker_that_dies_in_a_cancellation_ends_it_when_it_is_back() -> None:
    def prepare() -> Cluster:
        c = simulated_cluster(2, topics=["foo=1"], reassignment=NEW)
        submit(c, entry([1, 2]))
        Operations(c).stop_broker(2)
        return c

    for c in deaths(prepare, cancel):
        begun = _written(c, CANCEL)
        epoch = c.state.controller_epoch
        Operations(c).start_broker(1)
        assert (c.state.controller_id, c.state.controller_epoch) == (1, epoch + 1)
        assert c.topics.partition(*FOO).reassigning is not begun
        assert c.topics.partition(*FOO).replicas == ((1,) if begun else (1, 2))
        assert c.znodes.read(CANCEL) is None
        assert c.topics.partition(*FOO).leader == 1


@pytest.mark.requirement("K236-12")
def test_dying_in_a_rollback_by_request_leaves_one_or_the_other() -> None:
    ends = set()
    for c in deaths(_pending, lambda c: alter(c, None)):
        _sound(c)
        partition = c.topics.partition(*FOO)
        ends.add(partition.reassigning)
        if not partition.reassigning:
            assert partition.replicas == WAS[FOO]
        else:
            for broker in (4, 5):
                Operations(c).join_isr(FOO, broker)
            assert now(c) == ([4, 5], [4, 5], None)
    assert ends == {True, False}


@pytest.mark.requirement("K236-07", "K236-01")
def test_dying_in_a_submission_leaves_all_of_it_or_nothing() -> None:
    def act(c: Cluster) -> None:
        submit(c, entry([4, 5]), entry([3, 1, 2], tp=("foo", 1)), entry([6], tp=("bar", 0)))

    for c in deaths(lambda: cluster("foo=1,2,3/2,3,1", "bar=3,2"), act):
        _sound(c)
        submitted = _written(c, PLAN)
        assert c.topics.partition(*FOO).reassigning is submitted
        assert c.topics.partition("bar", 0).reassigning is submitted
        assert c.topics.partition("foo", 1).replicas == ((3, 1, 2) if submitted else (2, 3, 1))


@pytest.mark.requirement("K236-39", "K236-40")
def test_dying_over_the_queue_loses_nothing_of_it() -> None:
    def act(c: Cluster) -> None:
        queue(c, entry([6, 5]), entry([1, 2], tp=("bar", 0)))

    for c in deaths(_pending, act):
        _sound(c)
        queued = _written(c, QUEUE)
        assert c.topics.partition(*FOO).target == ((6, 5) if queued else (4, 5))
        # 1 is down with the first controller.
        assert c.topics.partition("bar", 0).target == ((1, 2) if queued else (4,))
        assert c.topics.partition("foo", 1).target == (5, 6, 2)


@pytest.mark.requirement("K236-02", "K236-11")
def test_dying_at_the_end_of_a_reassignment_ends_it_all_the_same() -> None:
    for c in deaths(_pending, lambda c: Operations(c).join_isr(FOO, 5)):
        _sound(c)
        if c.topics.partition(*FOO).reassigning:
            Operations(c).join_isr(FOO, 5)
        assert now(c) == ([4, 5], [4, 5], None)


@pytest.mark.requirement("K236-02", "K236-10")
@pytest.mark.parametrize("broker", [1, 3])
def test_dying_while_a_broker_goes_leaves_no_dead_broker_in_sync(broker: int) -> None:
    for c in deaths(_pending, lambda c: Operations(c).stop_broker(broker)):
        _sound(c)
        if c.controller.broker(broker).live:
            Operations(c).stop_broker(broker)
        for topic in c.topics.values():
            for partition in topic.partitions:
                assert all(c.controller.broker(each).live for each in partition.isr)
        for joining in (4, 5):
            Operations(c).join_isr(FOO, joining)
        assert now(c) == ([4, 5], [4, 5], None)
