"""What a controller of the ZooKeeper kind tells brokers around reassignments: topics that come and
go, brokers that come and go, a controller that takes over. What reassignments themselves need is
in the machines' tables.

Everything here is recorded, one entry a partition; ``mockbroker.inter_broker.client`` sends it. All
LeaderAndIsr of one occasion come before all UpdateMetadata, as a controller sends them, so that
each broker gets one request of either.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from mockbroker.reassignment.effects import leader_and_isr, update_metadata
from mockbroker.state.actions import BrokerChanged, LiveBrokersSent, StopReplicaSent
from mockbroker.state.controller import Controller
from mockbroker.state.model import Broker, Partition, Topic

__all__ = [
    "DURING_DELETE",
    "broker_changed",
    "resend_all",
    "send_live_brokers",
    "send_new_partitions",
    "send_topic_deletion",
]

DURING_DELETE: Final = -2
"""In place of a leader and of its epoch: the topic is being deleted."""


def send_live_brokers(controller: Controller, cause: str, to: Iterable[int] | None = None) -> None:
    """Tell these live brokers, or all, which brokers are live."""
    live = tuple(controller.live_ids() if to is None else to)
    if live:
        controller.record(cause, LiveBrokersSent(live))


def send_new_partitions(
    controller: Controller, cause: str, name: str, partitions: Sequence[Partition]
) -> None:
    """New partitions, to those that host them, and then to everybody."""
    for each in partitions:
        to = tuple(broker for broker in each.hosts if controller.is_live(broker))
        if to:
            controller.record(cause, leader_and_isr(to, name, each, is_new=True))
    _send_metadata(controller, cause, [(name, each) for each in partitions])


def send_topic_deletion(controller: Controller, cause: str, topic: Topic) -> None:
    """A topic about to go: everybody forgets it, its replicas stop and then lose their data."""
    gone = [(topic.name, replace(each, leader=DURING_DELETE)) for each in topic.partitions]
    _send_metadata(controller, cause, gone)
    for delete in (False, True):
        for each in topic.partitions:
            to = tuple(broker for broker in each.hosts if controller.is_live(broker))
            if to:
                stop = StopReplicaSent(to, topic.name, each.index, delete, DURING_DELETE)
                controller.record(cause, stop)


def broker_changed(controller: Controller, cause: str, change: BrokerChanged) -> None:
    """A broker that is gone is news to the others; so is one that is back, which has everything
    to learn. Where the controller itself is gone, its successor has more to say."""
    before, after = change.before, change.after
    if before.live == after.live or not controller.is_live(controller.state.controller_id):
        return
    others = [each for each in controller.live_ids() if each != after.broker_id]
    send_live_brokers(controller, cause, others)
    if after.live:
        _send_everything(controller, cause, after)


def _send_everything(controller: Controller, cause: str, broker: Broker) -> None:
    """Everything to a broker that is back. Only a reassignment to it of which it was told when it
    was too old to understand stays untold: nobody resends that but a new controller (K455-64)."""
    to = (broker.broker_id,)
    send_live_brokers(controller, cause, to)
    known = list(controller.partitions())
    for name, each in known:
        controller.record(cause, update_metadata(to, name, each))
    for name, each in known:
        outdated = controller.state.known_targets.lacks_target(broker.broker_id, (name, each.index))
        if broker.broker_id in (each.replicas if outdated else each.hosts):
            controller.record(cause, leader_and_isr(to, name, each))


def resend_all(controller: Controller, cause: str) -> None:
    """All that a controller which takes over tells anew, but for the reassignments: those are the
    machine's to resume."""
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
