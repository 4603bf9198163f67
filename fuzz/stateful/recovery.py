"""The end of every story: all that was broken is put right, and then everything has to come to an
end. What was accepted is done, whatever happened on the way."""

from __future__ import annotations

import contextlib

from fuzz.stateful.world import BROKERS, World
from kproto.znodes.request_znodes import REASSIGN_CANCEL
from mockbroker.errors import ClusterError
from mockbroker.state.model import NO_LEADER, Partition, TopicPartition

__all__ = ["heal"]


def heal(world: World) -> None:
    """Faults go, brokers come back, elections are held, whoever lost its leader gets one, and each
    replica catches up. Then no reassignment is left (KIP-455: one that nobody cancels completes),
    and what the last accepted request asked for is what there is."""
    world.die_after(None)
    world.clear_faults()
    cluster = world.cluster
    if world.keeps_znodes and cluster.read_znode(REASSIGN_CANCEL) is not None:
        world.do(cluster.write_znode, REASSIGN_CANCEL, None)
        world.model.learn(cluster)
    if world.state.elections_held:
        world.do(cluster.release_elections)
    for broker_id in range(1, BROKERS + 1):
        if not cluster.brokers[broker_id].live:
            world.model.started(broker_id)
            assert world.do(cluster.start_broker, broker_id)
    if world.machine.startswith("kip-455"):
        # A broker that was told nothing of its target is told again by a new controller.
        to = cluster.controller_id % BROKERS + 1
        world.model.controller = to
        assert world.do(cluster.failover, to)
        if world.machine == "kip-455-old":
            world.model.goals.clear()
    world.unclean_asked = True
    cluster.elect_leaders(1, None)
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


def _catch_up(world: World, tp: TopicPartition, partition: Partition) -> None:
    """Until nobody is missing; a replica that is to go may never come back, and need not."""
    for broker_id in (*(partition.target or ()), *partition.replicas):
        with contextlib.suppress(ClusterError):  # it has gone meanwhile, as it was to
            world.cluster.join_isr(tp, broker_id)


def _check(world: World) -> None:
    for tp, each in _everything(world):
        assert each.leader != NO_LEADER, (tp, each)
        stuck = world.machine == "kraft" and set(each.adding) & set(each.removing)
        assert stuck or not each.reassigning, f"{tp} never comes to an end: {each}"
        goal = world.model.goals.get(tp)
        assert stuck or goal is None or each.replicas == goal, f"{tp} was to be {goal}: {each}"
