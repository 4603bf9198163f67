"""What a ZooKeeper controller sends to brokers outside reassignments: when topics or brokers come
and go, and when a controller takes over.

Each function records what is sent, one entry a partition; ``inter_broker.client`` sends it. All
LeaderAndIsr entries of one occasion precede all UpdateMetadata entries, as in Kafka, so that each
broker gets one request of each kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from mockbroker.simulation.reassignment.transitions import leader_and_isr, update_metadata
from mockbroker.simulation.state.actions import BrokerChanged, LiveBrokersSent, StopReplicaSent
from mockbroker.simulation.state.cluster_parts import Broker, Partition, Topic
from mockbroker.simulation.state.controller import Controller

__all__ = [
    "DURING_DELETE",
    "broker_changed",
    "resend_all",
    "send_live_brokers",
    "send_new_partitions",
    "send_replicas",
    "send_topic_deletion",
]

DURING_DELETE: Final = -2
"""The leader and the leader epoch of a partition whose topic is being deleted."""


def send_live_brokers(controller: Controller, cause: str, to: Iterable[int] | None = None) -> None:
    """Send the ids of the live brokers to these live brokers, or to all of them."""
    live = tuple(controller.live_ids() if to is None else to)
    if live:
        controller.record(cause, LiveBrokersSent(live))


def send_new_partitions(
    controller: Controller, cause: str, name: str, partitions: Sequence[Partition]
) -> None:
    """Send new partitions to the brokers that host them, then their metadata to every broker."""
    for each in partitions:
        to = tuple(broker for broker in each.hosts if controller.is_live(broker))
        if to:
            controller.record(cause, leader_and_isr(to, name, each, is_new=True))
    _send_metadata(controller, cause, [(name, partition) for partition in partitions])


def send_topic_deletion(controller: Controller, cause: str, topic: Topic) -> None:
    """Send the end of a topic: its metadata goes, its replicas stop, then delete their data."""
    gone = [(topic.name, replace(each, leader=DURING_DELETE)) for each in topic.partitions]
    _send_metadata(controller, cause, gone)
    for delete in (False, True):
        for each in topic.partitions:
            to = tuple(broker for broker in each.hosts if controller.is_live(broker))
            if to:
                stop = StopReplicaSent(to, topic.name, each.index, delete, DURING_DELETE)
                controller.record(cause, stop)


def broker_changed(controller: Controller, cause: str, change: BrokerChanged) -> None:
    """Tell the other brokers that a broker stopped or started, and tell a started broker
    everything. If the stopped broker was the controller, this is left to its successor."""
    before, after = change.before, change.after
    if before.live == after.live or not controller.is_live(controller.state.controller_id):
        return
    others = [each for each in controller.live_ids() if each != after.broker_id]
    send_live_brokers(controller, cause, others)
    if after.live:
        _send_everything(controller, cause, after)


def _send_everything(controller: Controller, cause: str, broker: Broker) -> None:
    """Send a started broker everything. It does not learn of a reassignment to it whose first
    LeaderAndIsr it was too old to understand: only a new controller resends that (K455-64)."""
    to = (broker.broker_id,)
    send_live_brokers(controller, cause, to)
    known = list(controller.partitions())
    for name, each in known:
        controller.record(cause, update_metadata(to, name, each))
    for name, each in known:
        outdated = controller.state.known_targets.lacks_target(broker.broker_id, (name, each.index))
        if broker.broker_id in (each.replicas if outdated else each.hosts):
            controller.record(cause, leader_and_isr(to, name, each))


def send_replicas(controller: Controller, cause: str, broker_id: int) -> None:
    """Send a broker the replicas that it has; it answers which of them it cannot serve."""
    for name, each in controller.partitions():
        if broker_id in each.hosts:
            controller.record(cause, leader_and_isr((broker_id,), name, each))


def resend_all(controller: Controller, cause: str) -> None:
    """Send what a new controller sends: everything but reassignments in progress, which the
    reassignment controller resumes."""
    known = list(controller.partitions())
    for name, each in known:
        to = tuple(broker for broker in each.hosts if controller.is_live(broker))
        if to and not each.reassigning:
            controller.record(cause, leader_and_isr(to, name, each))
    _send_metadata(controller, cause, known)


def _send_metadata(
    controller: Controller, cause: str, partitions: Iterable[tuple[str, Partition]]
) -> None:
    live = controller.live_ids()
    for name, each in partitions if live else ():
        controller.record(cause, update_metadata(live, name, each))
