"""The end of every example: everything broken is repaired, and then all accepted requests must
complete."""

from __future__ import annotations

import contextlib

from fuzz.stateful.world import BROKERS, World
from kproto.znodes.request_znodes import REASSIGN_CANCEL
from mockbroker.errors import ClusterError
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.cluster_parts import NO_LEADER, Partition, TopicPartition

__all__ = ["heal"]


def heal(world: World) -> None:
    """Remove faults, mend log directories, start brokers, hold elections, give each partition a
    leader, and let each replica catch up.

    Then no reassignment is left (KIP-455: one that is not cancelled completes), and the last
    accepted request's target is in place.
    """
    world.die_after(None)
    world.clear_faults()
    cluster = world.cluster
    if world.keeps_znodes and cluster.znodes.read(REASSIGN_CANCEL) is not None:
        world.do(Operations(cluster).write_znode, REASSIGN_CANCEL, None)
        world.model.learn(cluster)
    if world.state.elections_held:
        world.do(Operations(cluster).release_elections)
    for broker_id in range(1, BROKERS + 1):
        if broker_id in world.state.replica_dirs.failed:
            if broker_id in world.model.live:
                world.model.stopped(broker_id)
                world.model.started(broker_id)
            assert world.do(Operations(cluster).mend_log_dir, broker_id)
        if not cluster.brokers[broker_id].live:
            world.model.started(broker_id)
            assert world.do(Operations(cluster).start_broker, broker_id)
    if world.reassignment.startswith("kip-455"):
        # A new controller sends its target to a broker that did not receive it.
        to = cluster.state.controller_id % BROKERS + 1
        world.model.controller = to
        assert world.do(Operations(cluster).failover, to)
        if world.reassignment == "kip-455-old":
            world.model.goals.clear()
    world.unclean_asked = True
    cluster.elections.elect(1, None)
    if world.keeps_znodes:
        _make_way(world)
    for tp, partition in _everything(world):
        _catch_up(world, tp, partition)
    world.follow()
    _check(world)


def _everything(world: World) -> list[tuple[TopicPartition, Partition]]:
    return [
        ((name, each.index), each)
        for name, topic in sorted(world.cluster.topics.items())
        for each in topic.partitions
    ]


def _make_way(world: World) -> None:
    """Restart brokers that are alone in an ISR and no replicas any more. A ZooKeeper controller
    elects nobody else while they are live (``collectUncleanLeaderElectionState``)."""
    for _, partition in _everything(world):
        for broker_id in partition.isr if partition.leader == NO_LEADER else ():
            if broker_id not in partition.hosts and broker_id in world.model.live:
                world.model.stopped(broker_id)
                assert world.do(Operations(world.cluster).stop_broker, broker_id)
                world.cluster.elections.elect(1, None)
                world.model.started(broker_id)
                assert world.do(Operations(world.cluster).start_broker, broker_id)


def _catch_up(world: World, tp: TopicPartition, partition: Partition) -> None:
    """Repeat until no replica is missing. A replica that is being removed need not come back."""
    for broker_id in (*(partition.target or ()), *partition.replicas):
        with contextlib.suppress(ClusterError):  # it was removed in the meantime
            Operations(world.cluster).join_isr(tp, broker_id)


def _check(world: World) -> None:
    for tp, each in _everything(world):
        assert each.leader != NO_LEADER, (tp, each)
        stuck = world.reassignment == "kraft" and set(each.adding) & set(each.removing)
        assert stuck or not each.reassigning, f"{tp} is never complete: {each}"
        goal = world.model.goals.get(tp)
        assert stuck or goal is None or each.replicas == goal, f"{tp} should be {goal}: {each}"
