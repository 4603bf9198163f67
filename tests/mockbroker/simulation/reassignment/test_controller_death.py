"""Drafts of KIP-455 whose controller dies in the midst of a step: what the next one makes of it."""

from collections.abc import Callable
from typing import Final

import pytest

from kproto.znodes.kafka_znodes import partition_state_path, topic_path
from mockbroker.errors import ControllerDiedError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.reassignment.kip_455.kip_455_controller import Kip455Controller
from mockbroker.simulation.state.actions import (
    LeaderAndIsrSent,
    PartitionChanged,
    UpdateMetadataSent,
    ZnodeWritten,
)
from mockbroker.simulation.state.cluster_state import replay
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.reassignment.walks import FOO, NEW, OLD, alter

Step = Callable[[Cluster], object]

ORIGIN: Final = {1, 2, 3}
TARGET: Final = {4, 5, 6}
JOINED: Final = {4, 5}


def _idle(_: Cluster) -> None:
    pass


def _start(cluster: Cluster) -> None:
    alter(cluster, [4, 5, 6])


def _in_flight(cluster: Cluster) -> None:
    _start(cluster)
    for broker in (4, 5):
        Operations(cluster).join_isr(FOO, broker)


def _join_last(cluster: Cluster) -> None:
    Operations(cluster).join_isr(FOO, 6)


def _cancel(cluster: Cluster) -> None:
    alter(cluster, None)


SCENES: dict[str, tuple[Step, Step, dict[str, list[set[int]]]]] = {
    "a start": (_idle, _start, {NEW: [ORIGIN, TARGET], OLD: [ORIGIN, ORIGIN | TARGET]}),
    "the end": (_in_flight, _join_last, {NEW: [TARGET], OLD: [TARGET, ORIGIN | TARGET]}),
    "a cancellation": (
        _in_flight,
        _cancel,
        {NEW: [TARGET, ORIGIN | JOINED], OLD: [ORIGIN | TARGET, ORIGIN | JOINED]},
    ),
}
"""What happened before, what the controller dies in, which replicas it may come to in the end. Of
the older draft the next controller does not know which replicas were to go (A-12): what it resumes
keeps them all."""


@pytest.mark.requirement("K455-38", "K455-36", "A-12")
@pytest.mark.parametrize("draft", [NEW, OLD])
@pytest.mark.parametrize("scene", SCENES)
def test_wherever_a_controller_dies_the_next_brings_it_to_an_end(scene: str, draft: str) -> None:
    before, step, ends = SCENES[scene]
    deaths = 0
    while _dies(draft, before, step, ends[draft], deaths):
        deaths += 1
    assert deaths > 2


def _dies(draft: str, before: Step, step: Step, ends: list[set[int]], after: int) -> bool:
    """Whether the controller died before the step was done. Broker 7 is no replica, and so its
    death is of the controller alone."""
    cluster = simulated_cluster(7, topics=["foo=1,2,3"], reassignment=draft, cluster_id="c")
    Operations(cluster).failover(7)
    before(cluster)
    Operations(cluster).kill_controller_after(after)
    try:
        step(cluster)
    except ControllerDiedError:
        pass
    else:
        return False
    for broker in (4, 5, 6):
        if cluster.topics.partition(*FOO).reassigning:
            Operations(cluster).join_isr(FOO, broker)
    partition = cluster.topics.partition(*FOO)
    assert not partition.reassigning
    assert set(partition.replicas) in ends, after
    assert set(partition.isr) <= set(partition.replicas), after
    assert partition.leader in partition.isr
    reassignment = cluster.reassignments
    assert isinstance(reassignment, Kip455Controller)
    assert cluster.state.znodes[topic_path("foo")] == reassignment.topic_text(cluster.topics["foo"])
    assert (
        f'"isr":{list(partition.isr)}'.replace(" ", "")
        in cluster.state.znodes[partition_state_path(*FOO)]
    )
    assert replay("c", cluster.log).topics == cluster.topics
    return True


@pytest.mark.requirement("K455-36")
@pytest.mark.parametrize(("draft", "after", "epoch"), [(NEW, 8, 3), (OLD, 9, 3), (OLD, 8, 2)])
def test_a_leader_that_was_not_told_of_the_end_is_told_by_the_next_controller(draft, after, epoch):
    """The end was on record, and LeaderAndIsr not yet sent; of the older draft's also the new
    replicas alone, which leaves the leader to be chosen."""
    cluster = simulated_cluster(7, topics=["foo=1,2,3"], reassignment=draft)
    Operations(cluster).failover(7)
    _in_flight(cluster)
    Operations(cluster).kill_controller_after(after)
    with pytest.raises(ControllerDiedError):
        _join_last(cluster)
    told = [
        (type(a.change).__name__, a.change.leader, a.change.isr, a.change.leader_epoch)
        for a in cluster.log
        if isinstance(a.change, LeaderAndIsrSent | UpdateMetadataSent)
    ]
    assert told[-2:] == [
        ("LeaderAndIsrSent", 4, (1, 2, 3, 4, 5, 6), epoch),
        ("UpdateMetadataSent", 4, (4, 5, 6), epoch),
    ]
    partition = cluster.topics.partition(*FOO)
    assert (partition.replicas, partition.isr) == ((4, 5, 6), (4, 5, 6))
    assert (partition.leader, partition.leader_epoch) == (4, epoch)
    written = cluster.state.znodes[partition_state_path(*FOO)]
    assert f'"leader":4,"version":1,"leader_epoch":{epoch},"isr":[4,5,6]' in written


@pytest.mark.requirement("K455-36")
@pytest.mark.parametrize("draft", [NEW, OLD])
def test_what_the_next_controller_tells_is_on_record_and_remembered_before(draft: str) -> None:
    cluster = simulated_cluster(7, topics=["foo=1,2,3"], reassignment=draft)
    Operations(cluster).failover(7)
    _in_flight(cluster)
    Operations(cluster).kill_controller_after(8 if draft == NEW else 9)
    with pytest.raises(ControllerDiedError):
        _join_last(cluster)
    done = [action.change for action in cluster.log]
    told = max(i for i, change in enumerate(done) if isinstance(change, LeaderAndIsrSent))
    written, remembered = done[told - 2 : told]
    assert isinstance(written, ZnodeWritten)
    assert written.path == partition_state_path(*FOO)
    assert '"leader_epoch":3,"isr":[1,2,3,4,5,6]' in (written.after or "")
    assert isinstance(remembered, PartitionChanged)
    assert (remembered.after.leader_epoch, remembered.after.isr) == (3, (1, 2, 3, 4, 5, 6))
