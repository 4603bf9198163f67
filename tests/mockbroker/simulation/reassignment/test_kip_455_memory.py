"""What a controller of the KIP-455 drafts remembers, and what the next one reads from znodes."""

import pytest

from kproto.schema.model import ZERO_UUID
from mockbroker.errors import ClusterError
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.reassignment import keeps_znodes
from mockbroker.simulation.state.actions import (
    LeaderAndIsrSent,
    StopReplicaSent,
    UpdateMetadataSent,
    Warned,
)
from mockbroker.simulation.state.cluster_state import replay
from tests.mockbroker.simulation.reassignment.walks import (
    BOTH,
    FOO,
    NEW,
    OLD,
    STATE,
    TOPIC,
    alter,
    changes,
    cluster_of,
    joined,
    now,
    state_with,
    topic_znodes,
)


@BOTH
@pytest.mark.requirement("K455-26", "K455-38")
def test_the_list_is_the_controllers_memory_until_another_takes_over(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5, 6])
    listed = cluster.reassignments.list_ongoing(None)
    Operations(cluster).write_znode(STATE, None)
    assert cluster.reassignments.list_ongoing(None) == listed
    Operations(cluster).failover(2)
    assert cluster.reassignments.list_ongoing(None).topics == ()


@BOTH
@pytest.mark.requirement("K455-38")
def test_a_new_controller_resumes_what_the_state_znodes_say(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5, 6])
    joined(cluster, 4)
    listed, before = cluster.reassignments.list_ongoing(None), now(cluster)
    since = len(cluster.log)
    Operations(cluster).failover(2)
    assert (cluster.reassignments.list_ongoing(None), now(cluster)) == (listed, before)
    (request,) = changes(cluster, LeaderAndIsrSent, since)
    assert set(request.to) == {1, 2, 3, 4, 5, 6}
    assert request.target_replicas == cluster.topics.partition(*FOO).target
    assert request.leader_epoch == cluster.topics.partition(*FOO).leader_epoch == 2
    assert '"leader_epoch":2,"controller_epoch":2' in cluster.state.znodes[STATE]


@pytest.mark.requirement("K455-38")
def test_the_newer_draft_completes_after_a_take_over() -> None:
    cluster = cluster_of(NEW)
    alter(cluster, [4, 5, 6])
    joined(cluster, 4)
    Operations(cluster).stop_broker(1)
    assert cluster.state.controller_id == 2
    joined(cluster, 5, 6)
    assert now(cluster) == ([4, 5, 6], [4, 5, 6], None)
    assert cluster.topics.partition(*FOO).leader == 4


@pytest.mark.requirement("A-12")
def test_the_older_draft_forgets_which_replicas_were_to_go() -> None:
    cluster = cluster_of(OLD)
    alter(cluster, [4, 5, 6])
    joined(cluster, 4)
    Operations(cluster).failover(2)
    joined(cluster, 5, 6)
    assert now(cluster) == ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], None)
    (warning,) = changes(cluster, Warned)
    assert warning.text.startswith("foo-0: target unknown")
    assert cluster.topics.partition(*FOO).leader_epoch == 3
    told = changes(cluster, LeaderAndIsrSent)[-1]
    assert (told.to, told.leader_epoch, told.target_replicas) == ((1, 2, 3, 4, 5, 6), 3, None)
    assert changes(cluster, UpdateMetadataSent)[-1].leader_epoch == 3
    assert changes(cluster, StopReplicaSent) == []
    assert "targetReplicas" not in cluster.state.znodes[STATE]


@pytest.mark.requirement("A-09", "A-12")
def test_a_take_over_at_the_older_drafts_last_step_finds_no_reassignment() -> None:
    cluster = cluster_of(OLD, "foo=3,4")
    Operations(cluster).stop_broker(3)
    Operations(cluster).stop_broker(4)
    alter(cluster, [4])
    # 4 is the last in sync and down: nobody can lead, so the end has to wait.
    assert now(cluster) == ([3, 4], [4], [])
    Operations(cluster).failover(2)
    assert now(cluster) == ([3, 4], [4], None)


@BOTH
@pytest.mark.requirement("A-09")
@pytest.mark.parametrize("text", ["null", "[]"])
def test_null_and_empty_targets_mean_no_reassignment(draft: str, text: str) -> None:
    cluster = cluster_of(draft)
    Operations(cluster).write_znode(STATE, state_with(text))
    Operations(cluster).failover(2)
    assert now(cluster) == ([1, 2, 3], [1, 2, 3], None)
    assert changes(cluster, Warned) == []


@BOTH
@pytest.mark.requirement("K455-38")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 100_000,
        "[]",
        "\ud800",
        '{"targetReplicas":[4,5,6]}',
        state_with("4"),
        state_with("[true]"),
        state_with("[-1]"),
        state_with("[4,4]"),
    ],
)
def test_an_unreadable_state_znode_is_no_reassignment_and_the_log_says_so(draft, text):
    cluster = cluster_of(draft)
    alter(cluster, [4, 5, 6])
    Operations(cluster).write_znode(STATE, text)
    Operations(cluster).failover(2)
    assert now(cluster) == ([1, 2, 3], [1, 2, 3], None)
    (warning,) = changes(cluster, Warned)
    assert warning.text.startswith(f"{STATE}: ")
    assert warning.text.endswith("; taken as no reassignment")


@BOTH
@pytest.mark.requirement("K455-38")
def test_a_target_found_in_a_znode_is_a_reassignment(draft: str) -> None:
    cluster = cluster_of(draft)
    Operations(cluster).write_znode(STATE, state_with("[4]"))
    Operations(cluster).failover(2)
    assert now(cluster) == ([1, 2, 3], [1, 2, 3], [4])


@BOTH
@pytest.mark.requirement("K455-42")
def test_no_leader_among_the_targets_holds_the_end_up(draft: str) -> None:
    cluster = cluster_of(draft, "foo=1")
    Operations(cluster).stop_broker(1)
    since = len(cluster.log)
    alter(cluster, [1])
    assert cluster.topics.partition(*FOO).reassigning
    Operations(cluster).start_broker(1)
    assert now(cluster) == ([1], [1], None)
    assert cluster.topics.partition(*FOO).leader == 1
    assert changes(cluster, StopReplicaSent, since) == []


@BOTH
@pytest.mark.requirement("K455-42")
def test_auto_progress_serves_the_targets(draft: str) -> None:
    cluster = cluster_of(draft)
    cluster.auto_progress.set_interval(100)
    alter(cluster, [6, 5])
    cluster.turns.advance(100)
    assert now(cluster)[0] == [1, 2, 3, 6]
    cluster.turns.advance(100)
    assert now(cluster) == ([6, 5], [6, 5], None)


@BOTH
@pytest.mark.requirement("K455-30")
def test_topics_come_and_go_with_their_znodes(draft: str) -> None:
    cluster = cluster_of(draft)
    cluster.topics.add_partitions([("foo", 2, [[3, 2, 4]])])
    assert topic_znodes(cluster) == {
        TOPIC: '{"version":1,"partitions":{"0":[1,2,3],"1":[3,2,4]}}',
        STATE: '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2,3]}',
        STATE.replace("/0/", "/1/"): (
            '{"controller_epoch":1,"leader":3,"version":1,"leader_epoch":0,"isr":[3,2,4]}'
        ),
    }
    alter(cluster, [4])
    cluster.topics.delete([("foo", ZERO_UUID)])
    assert topic_znodes(cluster) == {}
    assert cluster.reassignments.list_ongoing(None).topics == ()


@BOTH
@pytest.mark.requirement("K455-42")
def test_a_new_leader_is_announced(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4])
    since = len(cluster.log)
    Operations(cluster).stop_broker(1)
    last = changes(cluster, LeaderAndIsrSent, since)[-1]
    assert (last.leader, last.to, last.isr) == (2, (2, 3, 4), (2, 3))


@BOTH
@pytest.mark.requirement("K455-42")
def test_brokers_outside_replicas_and_target_join_nothing(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4])
    with pytest.raises(ClusterError, match=r"broker 5 has no replica of foo-0 .*1, 2, 3, 4"):
        Operations(cluster).join_isr(FOO, 5)


@BOTH
@pytest.mark.requirement("K455-33")
def test_the_log_replays_to_the_same_state_znodes_included(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5, 6])
    joined(cluster, 4, 5)
    replayed = replay(cluster.state.cluster_id, cluster.log)
    assert replayed.znodes == cluster.state.znodes
    assert replayed.topics == cluster.topics


def test_an_unknown_machine_is_a_clear_error() -> None:
    with pytest.raises(
        ClusterError, match="unknown reassignment controller 'kip-1'; choose from kraft, kip"
    ):
        keeps_znodes("kip-1")
