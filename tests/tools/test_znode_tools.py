"""The tools of the ZooKeeper era on an embedded ZooKeeper: what they write, and what comes of it.

The controller is a simulated cluster of the draft's machine, which acts within the tool's write.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from kproto.client import TopicPartition
from kproto.tools import preferred_election, znode_reassign
from kproto.tools.errors import ToolError
from kproto.tools.plan import Plan
from kproto.tools.znode_access import ZnodeAccess
from kproto.znodes import EmbeddedStore, ZnodeStore, ZnodeTree
from kproto.znodes.plan_znodes import (
    PREFERRED_REPLICA_ELECTION,
    REASSIGN_PARTITIONS,
    REASSIGN_PARTITIONS_QUEUE,
)
from kproto.znodes.request_znodes import REASSIGN_CANCEL, REASSIGN_PARTITIONS_EXTRA
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulated import simulated_cluster

LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
LEADER_RATE = "leader.replication.throttled.rate"


class Place:
    """A ZooKeeper with a cluster on it, and a tool's session beside."""

    def __init__(self, reassignment: str) -> None:
        self.tree = ZnodeTree()
        session = EmbeddedStore(self.tree, lambda: 0, wakeup=self._woken)
        self.cluster: Cluster | None = None
        self.cluster = simulated_cluster(
            6, topics=["foo=1,2,3/2,3,1", "bar=1,2,3"], reassignment=reassignment, znodes=session
        )
        self.store: ZnodeStore = EmbeddedStore(self.tree, lambda: 0)
        self.access = ZnodeAccess(self.store)
        self.printed = ""
        self.admin_during: list[list[str]] = []

    def _woken(self) -> None:
        if self.cluster is not None:
            self.admin_during.append(self.admin())
            self.cluster.turns.react()

    def admin(self) -> list[str]:
        """What is under /admin, the folders of topics and requests left out."""
        names = self.store.children("/admin") if self.store.exists("/admin") else []
        return [name for name in names if self.store.exists(f"/admin/{name}")]

    def write(self, text: str) -> None:
        self.printed += text

    def run(self, tool: Callable[..., None], *arguments: Any, **options: Any) -> str:
        self.printed = ""
        tool(self.access, self.write, *arguments, **options)
        return self.printed

    def json(self, path: str) -> Any:
        return json.loads(self.store.get(path).data)

    def topic_config(self, name: str) -> str | None:
        assert self.cluster is not None
        return self.cluster.configs.topic("foo", name).value

    def join(self, *brokers: int) -> None:
        assert self.cluster is not None
        for broker in brokers:
            Operations(self.cluster).join_isr(("foo", 0), broker)

    def replicas(self, topic: str = "foo") -> tuple[int, ...]:
        assert self.cluster is not None
        return self.cluster.topics.partition(topic, 0).replicas


def plan(**moves: list[int]) -> Plan:
    rows = []
    for name, replicas in moves.items():
        topic, index = name.rsplit("_", 1)
        rows.append((TopicPartition(topic, int(index)), tuple(replicas)))
    return Plan(rows)


# ---- KIP-236, newer draft ------------------------------------------------------------------------


@pytest.mark.requirement("K236-07")
def test_execute_submits_the_plan_and_prints_the_rollback() -> None:
    here = Place("kip-236-new")
    printed = here.run(znode_reassign.execute, plan(foo_0=[1, 2, 4]))
    first, _, rollback, _, saved, started = printed.splitlines()
    assert first == "Current partition replica assignment"
    assert json.loads(rollback)["partitions"][0]["replicas"] == [1, 2, 3]
    assert saved == "Save this to use as the --reassignment-json-file option during rollback"
    assert started == "Successfully started reassignment of partitions."
    (entry,) = here.json(REASSIGN_PARTITIONS)["partitions"]
    assert (entry["replicas"], entry["original_replicas"]) == ([1, 2, 4], [1, 2, 3])
    again = here.run(znode_reassign.execute, plan(bar_0=[4]))
    assert again == "There is an existing assignment running.\n"
    assert here.replicas("bar") == (1, 2, 3)


@pytest.mark.requirement("K236-30", "K236-31", "K236-32", "K236-33", "A-19")
def test_cancel_rolls_back_and_removes_the_throttle_of_what_was_cancelled() -> None:
    here = Place("kip-236-new")
    here.run(znode_reassign.execute, plan(foo_0=[1, 2, 4], bar_0=[3, 2, 5]), throttle=1000)
    assert here.topic_config(LEADER_REPLICAS) == "0:1,0:2,0:3"
    cluster = here.cluster
    assert cluster is not None
    Operations(cluster).join_isr(("bar", 0), 5)
    pending = [each["topic"] for each in here.json(REASSIGN_PARTITIONS)["partitions"]]
    assert pending == ["foo"]
    here.admin_during.clear()
    assert here.run(znode_reassign.cancel_newer) == (
        "Rolling back the current pending reassignments Map(foo-0 -> Map(replicas -> "
        "Buffer(1, 2, 4), original_replicas -> Buffer(1, 2, 3)))\n"
        "Successfully submitted cancellation of reassignments.\n"
        "The cancelled pending reassignments throttle was removed.\n"
        "Please run --verify to have the previous reassignments (not just the cancelled "
        "reassignments in progress) throttle removed.\n"
    )
    assert here.admin_during[0] == [
        "cancel_reassignment_in_progress",
        "delete_topics",
        "reassign_partitions",
    ]
    assert here.admin() == ["delete_topics"]
    assert here.replicas() == (1, 2, 3)
    assert here.topic_config(LEADER_REPLICAS) == ""
    # What was done already keeps its throttle until --verify.
    assert cluster.configs.topic("bar", LEADER_REPLICAS).value == "0:1,0:2,0:3"
    out = here.run(znode_reassign.verify, plan(bar_0=[3, 2, 5]))
    assert out == (
        "Status of partition reassignment: \n"
        "Reassignment of partition bar-0 completed successfully\n"
        "Throttle was removed.\n"
    )
    assert cluster.configs.topic("bar", LEADER_REPLICAS).value == ""
    assert cluster.configs.broker(1, LEADER_RATE).is_default


@pytest.mark.requirement("K236-33")
def test_verify_of_a_plan_that_was_cancelled_half_done_removes_the_throttle_of_the_rest() -> None:
    """Where the last line of --cancel sends the user, with the plan that was executed."""
    here = Place("kip-236-new")
    moves = plan(foo_0=[1, 2, 4], bar_0=[3, 2, 5])
    here.run(znode_reassign.execute, moves, throttle=1000)
    cluster = here.cluster
    assert cluster is not None
    Operations(cluster).join_isr(("bar", 0), 5)
    during = here.run(znode_reassign.verify, moves, cancellable=True)
    assert "foo-0 is still in progress" in during
    assert "Throttle" not in during
    assert here.run(znode_reassign.cancel_newer).endswith("throttle removed.\n")
    assert cluster.configs.topic("bar", LEADER_REPLICAS).value == "0:1,0:2,0:3"
    assert here.run(znode_reassign.verify, moves, cancellable=True) == (
        "Status of partition reassignment: \n"
        "Reassignment of partition bar-0 completed successfully\n"
        "Reassignment of partition foo-0 was cancelled or failed\n"
        "Throttle was removed.\n"
    )
    assert cluster.configs.topic("bar", LEADER_REPLICAS).value == ""
    assert all(cluster.configs.broker(each, LEADER_RATE).is_default for each in range(1, 7))


@pytest.mark.requirement("K236-33")
def test_verify_says_how_a_plan_stands() -> None:
    here = Place("kip-236-new")
    here.run(znode_reassign.execute, plan(foo_0=[1, 2, 4]), throttle=1000)
    both = plan(foo_0=[1, 2, 4], foo_1=[9])
    assert here.run(znode_reassign.verify, both) == (
        "Status of partition reassignment: \n"
        "Reassignment of partition foo-0 is still in progress\n"
        "Reassignment of partition foo-1 failed\n"
    )
    assert here.topic_config(LEADER_REPLICAS) == "0:1,0:2,0:3"
    here.join(4)
    assert "foo-0 completed successfully\nThrottle was removed.\n" in here.run(
        znode_reassign.verify, plan(foo_0=[1, 2, 4])
    )
    assert here.topic_config(LEADER_REPLICAS) == ""


@pytest.mark.requirement("K236-36", "K236-38")
def test_a_queued_plan_is_taken_up_and_a_second_one_blocked() -> None:
    here = Place("kip-236-new")
    here.run(znode_reassign.execute, plan(foo_0=[1, 2, 4]))
    here.run(znode_reassign.execute, plan(bar_0=[4]), path=REASSIGN_PARTITIONS_QUEUE)
    assert not here.store.exists(REASSIGN_PARTITIONS_QUEUE)
    pending = {each["topic"] for each in here.json(REASSIGN_PARTITIONS)["partitions"]}
    assert pending == {"foo", "bar"}
    here.cluster = None  # nobody takes up anything any more
    here.run(znode_reassign.execute, plan(foo_1=[4]), path=REASSIGN_PARTITIONS_QUEUE)
    out = here.run(znode_reassign.verify, plan(foo_1=[4]), path=REASSIGN_PARTITIONS_QUEUE)
    assert "foo-1 is still in progress" in out
    with pytest.raises(ToolError, match="reassign_partitions_queue is there already"):
        here.run(znode_reassign.execute, plan(bar_0=[5]), path=REASSIGN_PARTITIONS_QUEUE)


@pytest.mark.requirement("K236-41")
def test_cancelling_nothing_changes_nothing() -> None:
    here = Place("kip-236-new")
    assert here.run(znode_reassign.cancel_newer).startswith(
        "Rolling back the current pending reassignments Map()\n"
    )
    assert here.admin() == ["delete_topics"]


def test_a_cancellation_without_a_controller_ends_with_a_clear_error() -> None:
    here = Place("kip-236-new")
    here.cluster = None
    with pytest.raises(ToolError, match="still there after 0 s: is there a controller"):
        here.run(znode_reassign.cancel_newer, seconds=0.0)
    with pytest.raises(ToolError, match="a cancellation is under way"):
        here.run(znode_reassign.cancel_newer, seconds=0.0)


# ---- KIP-236, older draft ------------------------------------------------------------------------


@pytest.mark.requirement("K236-50", "K236-51")
def test_the_older_cancellation_stays_until_it_is_removed() -> None:
    here = Place("kip-236-old")
    here.run(znode_reassign.execute, plan(foo_0=[1, 2, 4]))
    out = here.run(znode_reassign.cancel_older)
    assert out.endswith("Successfully submitted cancellation of reassignments.\n")
    assert here.replicas() == (1, 2, 3)
    assert here.store.exists(REASSIGN_CANCEL)
    with pytest.raises(ToolError, match="disabled while /admin/reassign_cancel is there"):
        here.run(znode_reassign.execute, plan(foo_0=[1, 2, 4]))
    assert not here.store.exists(REASSIGN_PARTITIONS)
    assert here.run(znode_reassign.remove_cancel) == (
        "Successfully remove the znode /admin/reassign_cancel\n"
    )
    with pytest.raises(ToolError, match="no /admin/reassign_cancel to remove"):
        here.run(znode_reassign.remove_cancel)
    here.run(znode_reassign.execute, plan(foo_0=[1, 2, 4]))
    here.join(4)
    assert here.replicas() == (1, 2, 4)


@pytest.mark.requirement("K236-52")
def test_an_extra_plan_is_taken_up() -> None:
    here = Place("kip-236-old")
    here.run(znode_reassign.execute, plan(foo_0=[1, 2, 4]))
    here.run(znode_reassign.execute, plan(bar_0=[4]), path=REASSIGN_PARTITIONS_EXTRA)
    cluster = here.cluster
    assert cluster is not None
    assert cluster.topics.partition("bar", 0).reassigning
    assert cluster.topics.partition("foo", 0).reassigning
    assert not here.store.exists(REASSIGN_PARTITIONS_EXTRA)


# ---- plans that cannot be ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (plan(), "Partition reassignment data file is empty"),
        (plan(foo_0=[]), "Partition replica list cannot be empty"),
        (plan(foo_0=[1, 1]), "may not contain duplicate entries"),
        (Plan([*plan(foo_0=[1]).partitions] * 2), "duplicate topic partitions: foo-0"),
        (plan(foo_0=[1, 99]), "non-existent brokerIDs: 99"),
        (plan(foo_0=[-1]), "non-existent brokerIDs: -1"),
        (plan(foo_7=[1]), "non-existent partitions: foo-7"),
    ],
    ids=range(7),
)
def test_a_plan_that_cannot_be_is_refused_before_anything_is_written(wrong, problem):
    here = Place("kip-236-new")
    before = here.tree.zxid
    with pytest.raises(ToolError, match=problem):
        here.run(znode_reassign.execute, wrong, throttle=7)
    assert here.tree.zxid == before


def test_generate_proposes_and_writes_nothing() -> None:
    here = Place("kip-236-new")
    before = here.tree.zxid
    out = here.run(znode_reassign.generate, ["foo"], [4, 5, 6])
    current, proposed = (json.loads(out.splitlines()[n])["partitions"] for n in (1, 4))
    assert [each["replicas"] for each in current] == [[1, 2, 3], [2, 3, 1]]
    assert all(sorted(each["replicas"]) == [4, 5, 6] for each in proposed)
    assert here.tree.zxid == before


# ---- kafka-preferred-replica-election ------------------------------------------------------------


@pytest.mark.requirement("K183-20")
def test_an_election_by_znode() -> None:
    here = Place("kip-236-new")
    here.cluster = None
    out = here.run(preferred_election.elect_by_znode, [TopicPartition("foo", 1)])
    assert out == (
        "Created preferred replica election path with foo-1\n"
        "Successfully started preferred replica election for partitions foo-1\n"
    )
    assert here.json(PREFERRED_REPLICA_ELECTION) == {
        "version": 1,
        "partitions": [{"topic": "foo", "partition": 1}],
    }
    with pytest.raises(ToolError, match="currently in progress"):
        here.run(preferred_election.elect_by_znode, None)
    here.access.delete(PREFERRED_REPLICA_ELECTION)
    assert "bar-0,foo-0,foo-1" in here.run(preferred_election.elect_by_znode, None)


# ---- throttles, as Kafka 2.4 sets them -----------------------------------------------------------


def test_a_throttle_is_of_what_moves_and_its_rate_of_every_broker_concerned() -> None:
    here = Place("kip-236-new")
    cluster = here.cluster
    assert cluster is not None
    moving = plan(foo_0=[3, 2], foo_1=[2, 4])
    here.run(znode_reassign.execute, moving, throttle=1000)
    # foo-0 gets no replica: nobody's copying is to be slowed down.
    assert here.topic_config(LEADER_REPLICAS) == "1:2,1:3,1:1"
    assert here.topic_config(FOLLOWER_REPLICAS) == "1:4"
    assert [cluster.configs.broker(each, LEADER_RATE).value for each in (1, 2, 3, 4)] == [
        "1000"
    ] * 4
    assert cluster.configs.broker(5, LEADER_RATE).is_default
    # A second call changes rates, and nothing else.
    assert here.run(znode_reassign.execute, plan(bar_0=[5]), throttle=7) == (
        "There is an existing assignment running.\n"
    )
    assert here.topic_config(LEADER_REPLICAS) == "1:2,1:3,1:1"
    assert cluster.configs.broker(5, LEADER_RATE).value == "7"
    assert cluster.configs.broker(4, LEADER_RATE).value == "1000"
    Operations(cluster).join_isr(("foo", 1), 4)
    # Only once all of a plan are done is the throttle removed, then of all brokers.
    failed = here.run(znode_reassign.verify, plan(foo_0=[3, 2], foo_1=[2]))
    assert "foo-1 failed" in failed
    assert "Throttle" not in failed
    assert here.run(znode_reassign.verify, moving).endswith("Throttle was removed.\n")
    assert all(cluster.configs.broker(each, LEADER_RATE).is_default for each in range(1, 7))


@pytest.mark.requirement("K183-20")
def test_an_election_by_znode_passes_over_what_does_not_exist() -> None:
    here = Place("kip-236-new")
    here.cluster = None
    asked = [TopicPartition("foo", 1), TopicPartition("nope", 0)]
    assert here.run(preferred_election.elect_by_znode, asked) == (
        "Created preferred replica election path with foo-1\n"
        "Successfully started preferred replica election for partitions foo-1\n"
        "Skipping preferred replica leader election for partition nope-0 since it doesn't exist.\n"
    )
    assert here.json(PREFERRED_REPLICA_ELECTION)["partitions"] == [{"topic": "foo", "partition": 1}]
