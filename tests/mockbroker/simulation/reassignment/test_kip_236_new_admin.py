"""KIP-236, newer revision: all of it through AlterPartitionReassignments (45) and List (46)."""

from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from kproto.schema.versions import Versions
from kproto.znodes import EmbeddedStore, ZnodeTree
from mockbroker import MockCluster
from mockbroker.profiles import profile
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import StopReplicaSent
from mockbroker.simulation.state.results import PartitionResult
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.reassignment.cancelling import (
    NEW,
    PLAN,
    cancel,
    cluster,
    entry,
    on_record,
    plan,
    submit,
)
from tests.mockbroker.simulation.reassignment.transcripts import entries
from tests.mockbroker.simulation.reassignment.walks import (
    FOO,
    alter,
    changes,
    joined,
    now,
    warnings,
)
from tests.mockbroker.wire import connect
from tests.support.requests import request_of


def result(c: Cluster, replicas: list[int] | None) -> PartitionResult:
    (topic,) = c.reassignments.alter([("foo", [(0, replicas)])]).topics
    return topic.partitions[0]


@pytest.mark.requirement("K236-12")
def test_a_request_does_what_the_znode_does() -> None:
    by_znode, by_request = cluster(), cluster()
    submit(by_znode, entry([1, 2, 4]))
    since = len(by_request.log)
    assert alter(by_request, [1, 2, 4]) == 0
    assert by_request.topics["foo"].partitions == by_znode.topics["foo"].partitions
    assert on_record(by_request) == on_record(by_znode) == [entry([1, 2, 4], [1, 2, 3])]
    assert entries(by_request, since)[0].startswith("reassign_partitions ")
    cancel(by_znode)
    since = len(by_request.log)
    assert alter(by_request, None) == 0
    assert by_request.topics["foo"].partitions == by_znode.topics["foo"].partitions
    stops = changes(by_request, StopReplicaSent, since)
    assert [(stop.to, stop.delete) for stop in stops] == [((4,), False), ((4,), True)]
    assert on_record(by_request) is None


@pytest.mark.requirement("K236-12", "K236-06")
def test_a_request_in_flight_rolls_back_first_and_the_same_again_changes_nothing() -> None:
    c = cluster("foo=1,2,3/1,2,3")
    alter(c, [1, 2, 4])
    alter(c, [5], ("foo", 1))
    since = len(c.log)
    assert alter(c, [1, 2, 4]) == 0
    assert not c.log.since(since)
    assert alter(c, [1, 2, 5]) == 0
    assert [each.to for each in changes(c, StopReplicaSent, since)] == [(4,), (4,)]
    assert now(c) == ([1, 2, 5, 3], [1, 2, 3], [1, 2, 5])
    assert on_record(c) == [entry([5], [1, 2, 3], ("foo", 1)), entry([1, 2, 5], [1, 2, 3])]


@pytest.mark.requirement("K236-12")
def test_one_of_two_is_rolled_back_by_null() -> None:
    c = cluster("foo=1,2,3/1,2,3")
    submit(c, entry([4]), entry([4], tp=("foo", 1)))
    assert alter(c, None) == 0
    assert now(c) == ([1, 2, 3], [1, 2, 3], None)
    assert on_record(c) == [entry([4], [1, 2, 3], ("foo", 1))]
    assert result(c, None) == PartitionResult(0, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)


@pytest.mark.requirement("K236-12", "K236-34", "K236-35")
@pytest.mark.parametrize("asked", [None, [5]])
def test_what_is_not_rolled_back_is_an_error_that_says_why(asked: list[int] | None) -> None:
    refused = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    unable = "Unable to revert partition assignment for foo:0 because"
    c = cluster("foo=1")
    Operations(c).failover(6)
    submit(c, entry([4, 5]))
    joined(c, 4)
    Operations(c).stop_broker(1)
    text = f"{unable} it would require an unclean leader election."
    assert result(c, asked) == PartitionResult(0, refused, text)
    Operations(c).write_znode(PLAN, plan(entry([4, 5])))
    cancel(c)
    text = f"{unable} its original replicas are unknown."
    assert result(c, asked) == PartitionResult(0, refused, text)
    assert now(c) == ([4, 5, 1], [4], [4, 5])
    assert len(warnings(c)) == 3


@pytest.mark.requirement("K236-12")
def test_refused_rows_stop_no_other() -> None:
    c = cluster()
    asked: list[tuple[int, list[int] | None]] = [
        (0, []), (0, [1, 1]), (0, [99]), (0, [-1]), (7, [1]), (0, None), (0, [4, 5]),
    ]  # fmt: skip
    answer = c.reassignments.alter([("foo", asked), ("bar", [(0, [1])])])
    codes = [row.error_code for topic in answer.topics for row in topic.partitions]
    assert codes == [39, 39, 39, 39, 3, 85, 0, 3]
    assert now(c)[2] == [4, 5]


@pytest.mark.requirement("K236-12")
def test_a_plan_that_no_znode_can_hold_is_an_error_and_nothing_more() -> None:
    tree = ZnodeTree(max_request_bytes=260)
    topics = [("foo", [[1, 2]] * 3)]
    c = simulated_cluster(4, topics=topics, reassignment=NEW, znodes=EmbeddedStore(tree, lambda: 0))
    assert [alter(c, [3], ("foo", index)) for index in (0, 1)] == [0, 0]
    before, known = dict(c.state.znodes), c.topics["foo"]
    (topic,) = c.reassignments.alter([("foo", [(2, [3])])]).topics
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert PLAN in (topic.partitions[0].error_message or "")
    assert (dict(c.state.znodes), c.topics["foo"]) == (before, known)


@pytest.mark.requirement("K236-12")
def test_listing_gives_what_comes_and_what_goes() -> None:
    c = cluster("foo=1,2,3", "bar=1,2")
    submit(c, entry([3, 4, 5]), entry([1, 2], tp=("bar", 0)))
    joined(c, 4)
    (topic,) = c.reassignments.list_ongoing(None).topics
    (row,) = topic.partitions
    assert (topic.name, row.partition_index) == ("foo", 0)
    assert row.replicas == (3, 4, 5, 1, 2)
    assert (row.adding_replicas, row.removing_replicas) == ((4, 5), (1, 2))
    assert c.reassignments.list_ongoing([("bar", [0]), ("no", [0]), ("foo", [9])]).topics == ()


@pytest.mark.requirement("K236-12")
def test_the_profile_is_the_release_of_the_draft_with_the_released_layout_of_45_and_46() -> None:
    draft = profile(NEW)
    assert (draft.release, draft.mode, draft.dialect, draft.reassignment) == (
        profile("kafka-2.3").release,
        "zk",
        "kafka",
        NEW,
    )
    assert (draft.versions[45], draft.versions[46]) == (Versions(0, 0), Versions(0, 0))
    assert {key: draft.versions[key] for key in profile("kafka-2.3").versions} == dict(
        profile("kafka-2.3").versions
    )
    assert "KIP-236" in draft.summary


@pytest.mark.requirement("K236-12", "K236-01")
async def test_over_the_wire() -> None:
    def asked(replicas: list[int] | None) -> Any:
        partition = {"partition_index": 0, "replicas": replicas}
        return request_of("AlterPartitionReassignments", name="foo", partitions=[partition])

    async with MockCluster(4, topics=["foo=1,2,3"], profile=NEW) as mock, connect(mock, 1) as wire:
        answer = await wire.ask(asked([1, 2, 4]), 0)
        assert answer.responses[0].partitions[0].error_code == 0
        assert mock.read_znode(PLAN) is not None
        listed = await wire.ask("ListPartitionReassignments", 0, topics=None)
        (row,) = listed.topics[0].partitions
        assert (row.replicas, row.adding_replicas, row.removing_replicas) == (
            [1, 2, 4, 3],
            [4],
            [3],
        )
        await wire.ask(asked(None), 0)
        assert mock.read_znode(PLAN) is None
        answer = await wire.ask(asked(None), 0)
        assert answer.responses[0].partitions[0].error_code == 85
        listed = await wire.ask("ListPartitionReassignments", 0, topics=None)
        assert listed.topics == []
        assert mock.cluster.topics.partition(*FOO).replicas == (1, 2, 3)
    async with MockCluster(4, topics=["foo=1,2,3"], profile=NEW) as mock, connect(mock, 2) as wire:
        assert (await wire.ask(asked([4]), 0)).error_code == ErrorCode.NOT_CONTROLLER
