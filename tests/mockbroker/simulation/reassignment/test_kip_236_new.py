"""KIP-236, newer revision: what is submitted, what is on record, and how it comes to its end."""

import pytest

from mockbroker.errors import ClusterError
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.reassignment.kip_236_new.plans import PendingPartition
from mockbroker.simulation.state.cluster_state import replay
from tests.mockbroker.simulation.reassignment.cancelling import PLAN, cluster, entry, plan, submit
from tests.mockbroker.simulation.reassignment.walks import FOO, joined, now

ALL = (1, 2, 3, 4, 5, 6)


@pytest.mark.requirement("K236-08")
def test_what_is_on_record_is_the_pages_own_text() -> None:
    c = cluster("foo1=1,2,3", "foo2=1,2/5,6,1")
    submit(c, entry([5, 4, 1], tp=("foo2", 1)), entry([1, 2, 4], tp=("foo1", 0)))
    text, stat = c.znodes.read(PLAN) or ("", None)
    assert text == (
        '{"version":1,"partitions":['
        '{"topic":"foo2","partition":1,"replicas":[5,4,1],"original_replicas":[5,6,1]},'
        '{"topic":"foo1","partition":0,"replicas":[1,2,4],"original_replicas":[1,2,3]}]}'
    )
    assert stat is not None
    # As in the page's listing: written once by who submitted it, and once by the controller.
    assert (stat.version, stat.czxid != stat.mzxid) == (1, True)


@pytest.mark.requirement("K236-09")
def test_the_context_of_a_partition_can_be_looked_at() -> None:
    c = cluster("foo=1,2,3/1,2,3")
    submit(c, entry([4, 5]))
    pending = c.topics.partition(*FOO)
    assert isinstance(pending, PendingPartition)
    assert (pending.new_replicas, pending.original_replicas) == ((4, 5), (1, 2, 3))
    assert (pending.reassigning, pending.target) == (True, (4, 5))
    shown = c.describe()["topics"]["foo"]["0"]
    assert (shown["replicas"], shown["target"]) == ([4, 5, 1, 2, 3], [4, 5])
    assert shown["original"] == [1, 2, 3]
    assert "original" not in c.describe()["topics"]["foo"]["1"]
    idle = c.topics.partition("foo", 1)
    assert (type(idle) is PendingPartition, idle.reassigning, idle.target) == (False, False, None)


@pytest.mark.requirement("K236-03")
def test_a_plan_over_the_limit_of_a_znode_is_refused_and_changes_nothing() -> None:
    c = cluster()
    since = len(c.log)
    with pytest.raises(ClusterError, match="reassign_partitions"):
        Operations(c).write_znode(PLAN, plan(entry([4])) + " " * 2**20)
    assert not c.log.since(since)
    assert c.znodes.read(PLAN) is None
    submit(c, entry([1, 2, 4]))
    assert c.topics.partition(*FOO).reassigning


@pytest.mark.requirement("K236-02")
def test_auto_progress_serves_what_is_pending() -> None:
    c = cluster()
    submit(c, entry([6, 5]))
    c.auto_progress.set_interval(100)
    c.turns.advance(100)
    assert now(c) == ([6, 5, 1, 2, 3], [1, 2, 3, 6], [6, 5])
    c.turns.advance(100)
    assert now(c) == ([6, 5], [6, 5], None)


@pytest.mark.requirement("K236-09")
def test_the_log_replays_to_the_same_state_znodes_included() -> None:
    c = cluster()
    submit(c, entry([4, 5]))
    joined(c, 4)
    replayed = replay(c.state.cluster_id, c.log)
    assert replayed.topics == c.topics
    assert replayed.znodes == c.state.znodes
