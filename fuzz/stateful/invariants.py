"""The invariants that must hold after every step, each with its source. Nothing here changes
anything.

``ALWAYS`` are checked after each step of the machine; ``response_checks`` checks answers. "Dead" is
a cluster without a live broker: with ZooKeeper nothing can then finish what a controller left half
done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from fuzz.stateful.world import World
from kproto.znodes.kafka_znodes import partition_state_path
from mockbroker.simulation.state.actions import PartitionChanged
from mockbroker.simulation.state.cluster_parts import NO_LEADER, Partition, TopicPartition

__all__ = ["ALWAYS"]

_UNCLEAN: Final = "unclean.leader.election.enable"


def _partitions(world: World) -> Iterator[tuple[TopicPartition, Partition]]:
    for name, topic in world.cluster.topics.items():
        for partition in topic.partitions:
            yield (name, partition.index), partition


def _changes(world: World) -> Iterator[tuple[str, PartitionChanged]]:
    for action in world.news:
        if isinstance(action.change, PartitionChanged):
            yield action.cause, action.change


def _dead(world: World) -> bool:
    return not any(broker.live for broker in world.cluster.brokers.values())


# ---- partitions ----------------------------------------------------------------------------------


def replicas_are_distinct_known_brokers(world: World) -> None:
    """A partition has at least one replica, no broker twice, and no broker that was never
    registered (KIP-455, "the replicas are valid"; ReplicationControlManager and KafkaController
    check it). No controller of Kafka checks the last for plans written to
    /admin/reassign_partitions, but those generated here only name registered brokers."""
    for tp, each in _partitions(world):
        assert each.replicas, (tp, each)
        assert len(set(each.replicas)) == len(each.replicas), (tp, each)
        assert set(each.replicas) <= set(world.cluster.brokers), (tp, each)


def isr_is_within_replicas(world: World) -> None:
    """The ISR is a subset of the replicas and never empty (KIP-497, KIP-841; without KIP-966 the
    last in-sync replica stays listed).

    There are exceptions. The drafts of KIP-455 add brokers of the target to the ISR before they are
    replicas. A ZooKeeper controller keeps the last in-sync broker in the ISR of a partition without
    a leader, replica or not (Kafka 3.9.2, removeReplicasFromIsr). One that died between two writes
    leaves extra brokers in the ISR until a leader removes them (``zookeeper_rows.ON_LEADER``).
    """
    for tp, each in _partitions(world):
        assert each.isr, (tp, each)
        assert len(set(each.isr)) == len(each.isr), (tp, each)
        left_over = each.leader == NO_LEADER or world.deaths
        if world.reassignment.startswith("zookeeper") and left_over:
            continue
        assert set(each.isr) <= set(each.hosts), (tp, each)


def leader_is_in_the_isr(world: World) -> None:
    """A leader is live and in sync, or there is none (KIP-455 leaves that to the controller; every
    release elects from the ISR, and an unclean election makes the leader the ISR)."""
    for tp, each in _partitions(world):
        if each.leader != NO_LEADER:
            assert each.leader in each.isr, (tp, each)
            assert world.state.brokers[each.leader].live or _dead(world), (tp, each)


def leaders_can_read_their_logs(world: World) -> None:
    """No leader is in a log directory that the controller knows to have failed (KIP-112)."""
    dirs = world.state.replica_dirs
    for tp, each in _partitions(world):
        assert each.leader == NO_LEADER or not dirs.is_reported(each.leader, tp), (tp, each)


def adding_and_removing_fit_the_replicas(world: World) -> None:
    """Adding and removing replicas are among the replicas, and at least one replica stays (KIP-455:
    the assigned replicas are the union of the original and the target ones). A broker is both only
    with KRaft, which keeps an earlier list if a new target would leave nothing."""
    for tp, each in _partitions(world):
        adding, removing, replicas = set(each.adding), set(each.removing), set(each.replicas)
        assert adding | removing <= replicas, (tp, each)
        assert replicas - removing, (tp, each)
        assert world.reassignment == "kraft" or not adding & removing, (tp, each)
        assert not each.reassigning or each.target is not None, (tp, each)


def nothing_done_is_left_under_way(world: World) -> None:
    """A reassignment is complete once its whole target is in sync under a leader (KIP-455: "when
    the target replicas are all in the ISR").

    KRaft checks before it elects, so a reassignment that only an unclean election completes ends
    with the partition's next change. KIP-236's older draft completes nothing while
    /admin/reassign_cancel exists.
    """
    if world.cluster.state.znodes.get("/admin/reassign_cancel") is not None or _dead(world):
        return
    for tp, each in _partitions(world):
        if each.reassigning and each.leader != NO_LEADER and each.target:
            done = set(each.target) <= set(each.isr)
            both = set(each.adding) & set(each.removing)
            assert not done or both or len(each.isr) == 1, (tp, each)


# ---- changes -------------------------------------------------------------------------------------


def epochs_never_go_back(world: World) -> None:
    """The leader epoch (KIP-101, KIP-320) and the partition epoch, or zkVersion (KIP-497),
    increase; a new leader has a new leader epoch; in KRaft every change is one partition epoch."""
    for cause, change in _changes(world):
        before, after = change.before, change.after
        about = (cause, change.topic, before, after)
        assert after.leader_epoch >= before.leader_epoch, about
        assert after.partition_epoch >= before.partition_epoch, about
        if after.leader != before.leader and after.leader != NO_LEADER:
            assert after.leader_epoch > before.leader_epoch or cause != "elect_leaders", about
        if world.reassignment == "kraft":
            assert after.partition_epoch == before.partition_epoch + 1, about
            lost = not set(before.replicas) <= set(after.replicas)
            bump = lost or before.leader != after.leader or cause == "truncate"
            assert after.leader_epoch == before.leader_epoch + bump, about


def zk_version_is_the_znode_s(world: World) -> None:
    """With ZooKeeper the partition epoch is the version of the state znode: LeaderAndIsr carries it
    as zkVersion, and brokers write with it (KAFKA-2729)."""
    if not world.keeps_znodes or _dead(world):
        return
    for tp, each in _partitions(world):
        stat = world.state.znode_stats.get(partition_state_path(*tp))
        assert stat is not None, (tp, each)
        assert stat.version == each.partition_epoch, (tp, each, stat)


def leaders_come_from_the_isr(world: World) -> None:
    """A new leader was in sync before, unless the topic or its broker allows unclean elections, or
    ElectLeaders requested one (KIP-460), since that loses data. In a batch of changes, the ISR
    before the batch counts. A tester may elect any replica."""
    for cause, change in _changes(world):
        leader, isr = change.after.leader, change.before.isr
        if leader in (NO_LEADER, change.before.leader) or leader in isr:
            continue
        joined = leader in change.after.isr and cause in ("join_isr", "auto_progress")
        request = cause == "unclean_election" or (cause == "elect_leaders" and world.unclean_asked)
        allowed = request or _unclean(world, change.topic)
        assert allowed or joined, (cause, change)


def _unclean(world: World, topic: str) -> bool:
    """The effective config: the topic's, its brokers', or the release's default, which was true
    before 0.11 (KIP-106)."""
    return world.cluster.configs.topic(topic, _UNCLEAN).value == "true"


# ---- the log -------------------------------------------------------------------------------------


def the_log_is_in_order(world: World) -> None:
    """Offsets are consecutive, the clock does not go back, and each change of a partition starts
    from the state that the previous one left (``mockbroker.simulation.state.actions``)."""
    start = len(world.cluster.log) - len(world.news)
    assert [each.offset for each in world.news] == list(range(start, start + len(world.news)))
    times = [each.at_ms for each in world.news]
    assert times == sorted(times), times
    assert all(at <= world.cluster.timers.now_ms for at in times), times
    assert not world.history.unchained, world.history.unchained[:1]


def the_log_gives_the_state(world: World) -> None:
    """Every change of state is an action, and the actions alone reproduce the state
    (``mockbroker.simulation.state.cluster_state.replay``)."""
    again, state = world.history.state, world.state
    assert again.topics == state.topics
    assert again == state
    assert again.topic_names == {each.topic_id: name for name, each in again.topics.items()}
    now = world.cluster.timers.now_ms
    for broker_id in world.cluster.brokers:
        assert again.view(broker_id, now) == state.view(broker_id, now), broker_id


# ---- accepted commands ---------------------------------------------------------------------------


def what_was_done_is_so(world: World) -> None:
    """Stopped brokers are stopped, the controller is the one it was moved to, and the topics are
    those that were created and not deleted, with the requested partitions (KIP-4)."""
    model, cluster = world.model, world.cluster
    assert {i for i, each in cluster.brokers.items() if each.live} == model.live
    assert cluster.state.controller_id == model.controller
    assert {n: len(t.partitions) for n, t in cluster.topics.items()} == model.topics


def the_promised_factor_holds(world: World) -> None:
    """After an AlterPartitionReassignments with AllowReplicationFactorChange=false, the partition's
    target has as many replicas as before, and so has the partition in the end (KIP-860)."""
    for tp, factor in world.model.factors.items():
        each = world.cluster.topics.partition(*tp)
        assert len(each.target or each.replicas) == factor, (tp, factor, each)


def a_live_broker_is_the_controller(world: World) -> None:
    """There is a controller while any broker is live (KIP-500; with ZooKeeper, whoever creates
    /controller)."""
    assert _dead(world) or world.cluster.brokers[world.cluster.state.controller_id].live


def brokers_only_know_what_was(world: World) -> None:
    """A broker's view is current, or, if its metadata is held or delayed, exactly the cluster's
    state at that time (KIP-860: a listing is current, a description may be old)."""
    for broker_id in world.cluster.brokers:
        view = world.cluster.controller.metadata_view(broker_id)
        known = world.history.visible(broker_id, world.cluster.timers.now_ms)
        assert dict(view.topics) == dict(known.topics), (broker_id, known.at_ms)
        assert dict(view.brokers) == dict(known.brokers), (broker_id, known.at_ms)
        assert view.controller_id == known.controller, (broker_id, known.at_ms)


def nobody_complains(world: World) -> None:
    """No handler, rule or callback raised an exception: UNKNOWN_SERVER_ERROR caused by our code is
    a defect."""
    assert not world.complaints, world.complaints
    assert not world.loop.failures, world.loop.failures


ALWAYS: Final[tuple[Callable[[World], None], ...]] = (
    replicas_are_distinct_known_brokers,
    isr_is_within_replicas,
    leader_is_in_the_isr,
    leaders_can_read_their_logs,
    adding_and_removing_fit_the_replicas,
    nothing_done_is_left_under_way,
    epochs_never_go_back,
    zk_version_is_the_znode_s,
    leaders_come_from_the_isr,
    the_log_is_in_order,
    the_log_gives_the_state,
    what_was_done_is_so,
    the_promised_factor_holds,
    a_live_broker_is_the_controller,
    brokers_only_know_what_was,
    nobody_complains,
)
