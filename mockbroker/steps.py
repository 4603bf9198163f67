"""The steps a person or a test takes: replicas catch up or fall behind, brokers stop and start,
the controller moves, time passes.

Each step is what a cluster would see happen, followed at once by what its controller does about it.
"""

from __future__ import annotations

from dataclasses import replace

from mockbroker.configs.effective import unclean_election_enabled
from mockbroker.elections.partition_change import Election, next_partition
from mockbroker.errors import ClusterError, UnknownBrokerError, UnknownPartitionError
from mockbroker.inter_broker.software_versions import follows
from mockbroker.state.actions import BrokerChanged, BrokerRegistered, ControllerChanged
from mockbroker.state.controller import Controller
from mockbroker.state.controller_znodes import SEEN
from mockbroker.state.model import NO_CONTROLLER, NO_LEADER, Broker, Partition, TopicPartition

__all__ = [
    "AutoProgress",
    "bury",
    "expire_session",
    "fail_over",
    "find_broker",
    "find_partition",
    "join_isr",
    "leave_isr",
    "move_controller",
    "resign",
    "session_expired",
    "set_level",
    "start_broker",
    "stop_broker",
]


def find_broker(controller: Controller, broker_id: int) -> Broker:
    """Raises UnknownBrokerError."""
    broker = controller.state.brokers.get(broker_id)
    if broker is None:
        known = ", ".join(map(str, controller.state.brokers))
        raise UnknownBrokerError(f"no broker {broker_id} (there are {known})")
    return broker


def find_partition(controller: Controller, tp: TopicPartition) -> Partition:
    """Raises UnknownPartitionError."""
    topic = controller.state.topics.get(tp[0])
    if topic is None:
        raise UnknownPartitionError(f"no topic {tp[0]!r}")
    partition = topic.partition(tp[1])
    if partition is None:
        raise UnknownPartitionError(
            f"no partition {tp[0]}-{tp[1]} (it has {len(topic.partitions)}, numbered from 0)"
        )
    return partition


def join_isr(
    controller: Controller, tp: TopicPartition, broker_id: int, *, cause: str = "join_isr"
) -> Partition:
    """A live replica has caught up with the leader. Nothing happens if it is in sync already."""
    partition = _replica_of(controller, tp, broker_id)
    if broker_id in partition.isr:
        return partition
    _check_controller(controller, tp)
    if not controller.is_live(broker_id):
        raise ClusterError(f"broker {broker_id} is stopped: it cannot join the ISR of {_name(tp)}")
    if partition.leader == NO_LEADER:
        raise ClusterError(f"{_name(tp)} is offline: no leader could take {broker_id} into the ISR")
    if not follows(controller.state.told, tp, partition, broker_id):
        raise ClusterError(
            f"broker {broker_id} does not fetch {_name(tp)}: no LeaderAndIsr has told it of the "
            "target replicas, at a version it knows; a new controller tells it again"
        )
    return _apply(controller, cause, tp, partition, (*partition.isr, broker_id))


def leave_isr(controller: Controller, tp: TopicPartition, broker_id: int) -> Partition:
    """A follower fell behind. Nothing happens if it is out of sync already."""
    partition = _replica_of(controller, tp, broker_id)
    if broker_id not in partition.isr:
        return partition
    _check_controller(controller, tp)
    if broker_id == partition.leader:
        raise ClusterError(
            f"broker {broker_id} leads {_name(tp)} and stays in its ISR (stop the broker instead)"
        )
    if partition.isr == (broker_id,):
        raise ClusterError(f"broker {broker_id} is the last in the ISR of {_name(tp)}")
    isr = tuple(replica for replica in partition.isr if replica != broker_id)
    return _apply(controller, "leave_isr", tp, partition, isr)


def _replica_of(controller: Controller, tp: TopicPartition, broker_id: int) -> Partition:
    partition = find_partition(controller, tp)
    find_broker(controller, broker_id)
    if broker_id not in partition.hosts:
        replicas = ", ".join(map(str, partition.hosts))
        raise ClusterError(
            f"broker {broker_id} holds no replica of {_name(tp)} (they are {replicas})"
        )
    return partition


def _check_controller(controller: Controller, tp: TopicPartition) -> None:
    if controller.state.controller_id == NO_CONTROLLER:
        raise ClusterError(f"there is no controller to change the ISR of {_name(tp)}")


def _apply(
    controller: Controller,
    cause: str,
    tp: TopicPartition,
    partition: Partition,
    isr: tuple[int, ...],
) -> Partition:
    after = next_partition(
        partition,
        controller.is_live,
        isr=isr,
        election=_election(controller, tp[0]),
        completion=controller.completion,
    )
    controller.change_partition(cause, tp[0], after)
    return controller.machine.settle(controller, cause, tp)


def _election(controller: Controller, topic: str) -> Election:
    unclean = unclean_election_enabled(controller.state, topic)
    return Election.UNCLEAN if unclean else Election.ONLINE


def stop_broker(controller: Controller, broker_id: int) -> None:
    """The broker leaves every ISR that does not end with it; what it led gets another leader from
    the ISR, in replica order, or goes offline. If it was the controller, the live broker with the
    lowest id takes over; with ZooKeeper there is none once the last broker has stopped."""
    broker = find_broker(controller, broker_id)
    if not broker.live:
        raise ClusterError(f"broker {broker_id} is stopped already")
    controller.record("stop_broker", BrokerChanged(broker, replace(broker, live=False)))
    _part_with(controller, broker_id)


def _part_with(controller: Controller, broker_id: int) -> None:
    """What follows from a broker's end, as far as it has not followed yet."""
    live = controller.live_ids()
    was_controller = controller.state.controller_id == broker_id
    if controller.state.controller_id == NO_CONTROLLER:
        return  # the next controller deals with it
    if was_controller and live:
        # First: what the stopped one remembered, and had not put on record, is nobody's any more.
        move_controller(controller, live[0], "stop_broker")
    _leave_isrs(controller, broker_id, "stop_broker")
    if was_controller and not live and controller.keeps_znodes:
        _leave_vacant(controller, "stop_broker")


def _leave_isrs(controller: Controller, broker_id: int, cause: str) -> None:
    for name, partition in controller.partitions():
        if broker_id in partition.isr:
            isr = tuple(replica for replica in partition.isr if replica != broker_id)
            _apply(controller, cause, (name, partition.index), partition, isr)


def start_broker(controller: Controller, broker_id: int) -> None:
    """The broker is live again and leads the offline partitions it can lead. It joins no ISR by
    itself: that is ``join_isr``'s or auto-progress's. Where no broker was live, what the controller
    had not put on record is gone, and this one takes over, be it the same."""
    broker = find_broker(controller, broker_id)
    if broker.live:
        raise ClusterError(f"broker {broker_id} is running already")
    forgotten = controller.keeps_znodes and not controller.live_ids()
    controller.record("start_broker", BrokerChanged(broker, replace(broker, live=True)))
    succeeds = forgotten or not controller.is_live(controller.state.controller_id)
    if succeeds:
        move_controller(controller, broker_id, "start_broker")
    _came_up(controller, broker_id, "start_broker", new_controller=succeeds)


def _came_up(controller: Controller, broker_id: int, cause: str, *, new_controller: bool) -> None:
    for name, partition in controller.partitions():
        if partition.leader == NO_LEADER:
            _apply(controller, cause, (name, partition.index), partition, partition.isr)
    if not new_controller:
        controller.machine.broker_started(controller, cause, broker_id)


def fail_over(controller: Controller, to: int) -> None:
    """Another live broker becomes the controller. Reassignments go on, as far as the machine kept
    them where the new controller finds them; KRaft keeps them in the partitions themselves."""
    if not find_broker(controller, to).live:
        raise ClusterError(f"broker {to} is stopped: it cannot become the controller")
    if to == controller.state.controller_id:
        raise ClusterError(f"broker {to} is the controller already")
    move_controller(controller, to, "failover")


def resign(controller: Controller) -> None:
    """The controller's znode goes, and no broker takes over before ``failover`` or a broker that
    starts: what happens until then has no controller to see it."""
    if controller.state.controller_id == NO_CONTROLLER:
        raise ClusterError("there is no controller already")
    controller.resigned = True
    _leave_vacant(controller, "resign_controller")


def expire_session(controller: Controller, broker_id: int) -> None:
    """ZooKeeper expires the broker's session: the broker is gone for the others, be it the
    controller, and then registers anew. Its connections to clients stay."""
    broker = find_broker(controller, broker_id)
    cause = "expire_session"
    if not broker.live:
        raise ClusterError(f"broker {broker_id} is stopped: it has no session")
    was_controller = controller.state.controller_id == broker_id
    others = [each for each in controller.live_ids() if each != broker_id]
    if was_controller:
        _leave_vacant(controller, cause)
    controller.record(cause, BrokerChanged(broker, replace(broker, live=False)))
    if was_controller and others:
        move_controller(controller, others[0], cause)
    elif not was_controller and controller.state.controller_id != NO_CONTROLLER:
        _leave_isrs(controller, broker_id, cause)
    controller.record(cause, BrokerChanged(replace(broker, live=False), broker))
    if was_controller and not others:
        move_controller(controller, broker_id, cause)
    elif controller.state.controller_id != NO_CONTROLLER:
        _came_up(controller, broker_id, cause, new_controller=False)


def session_expired(controller: Controller) -> None:
    """The session of this process has expired, and every ephemeral znode with it: the controller
    resigns, and once there is a new session the brokers register and elect a controller. Kafka's
    brokers do the same (``KafkaController.Expire``, then ``RegisterBrokerAndReelect``)."""
    controller.forget_session()
    if controller.state.controller_id != NO_CONTROLLER:
        _leave_vacant(controller, SEEN)
    controller.znodes.renew()
    for broker in list(controller.state.brokers.values()):
        if broker.live:
            controller.machine.store(controller, SEEN, BrokerRegistered(broker))
    live = controller.live_ids()
    if live and not controller.resigned:
        move_controller(controller, live[0], SEEN)


def set_level(
    controller: Controller, broker_id: int, apis: tuple[tuple[int, int, int], ...]
) -> None:
    """The broker runs other software from now on (``Broker.apis``). The controller tells it nothing
    because of that; but if it is the controller itself, that has come up anew, and tells all."""
    before = find_broker(controller, broker_id)
    if before.apis == apis:
        return
    controller.record("set_level", BrokerChanged(before, replace(before, apis=apis)))
    if broker_id == controller.state.controller_id and before.live:
        move_controller(controller, broker_id, "set_level")


def bury(controller: Controller, broker_id: int) -> None:
    """A controller has died on its way: stop its broker, which gives the rest a new controller.
    That one goes on with brokers whose end the dead one had not dealt with, its own perhaps."""
    if controller.is_live(broker_id):
        stop_broker(controller, broker_id)
    for each in [broker for broker in controller.state.brokers.values() if not broker.live]:
        _part_with(controller, each.broker_id)


def move_controller(controller: Controller, to: int, cause: str) -> None:
    """``to`` is elected, with the next epoch. After a time without a controller it also deals with
    the brokers that are gone since."""
    state = controller.state
    vacant = state.controller_id == NO_CONTROLLER
    controller.resigned = False
    change = ControllerChanged(state.controller_id, to, state.controller_epoch + 1)
    controller.record(cause, change)
    controller.machine.take_over(controller, cause)
    for broker in list(state.brokers.values()) if vacant else ():
        if not broker.live:
            _leave_isrs(controller, broker.broker_id, cause)


def _leave_vacant(controller: Controller, cause: str) -> None:
    state = controller.state
    change = ControllerChanged(state.controller_id, NO_CONTROLLER, state.controller_epoch)
    controller.record(cause, change)


def _name(tp: TopicPartition) -> str:
    return f"{tp[0]}-{tp[1]}"


class AutoProgress:
    """Replicas that catch up by themselves: one, somewhere in the cluster, at each tick.

    A tick serves reassignments first, by topic, partition and replica order, then replicas that
    fell out of an ISR. Ticks are counted from the moment this was switched on.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._next_tick_ms: int | None = None

    @property
    def next_tick_ms(self) -> int | None:
        """When the next tick is due on the virtual clock; None when off."""
        return self._next_tick_ms

    def restart(self) -> None:
        """Count the ticks from now, at the interval of the state."""
        interval = self._controller.state.auto_progress_ms
        self._next_tick_ms = None if interval is None else self._controller.now_ms + interval

    def advance(self, milliseconds: int) -> None:
        """Move the clock; every tick on the way happens at its own time."""
        end = self._controller.now_ms + milliseconds
        interval = self._controller.state.auto_progress_ms
        while interval is not None and self._next_tick_ms is not None and self._next_tick_ms <= end:
            self._controller.now_ms = self._next_tick_ms
            if self._tick():
                self._next_tick_ms += interval
            else:
                # Nothing can move any more, so the ticks left would all be idle.
                self._next_tick_ms += ((end - self._next_tick_ms) // interval + 1) * interval
        self._controller.now_ms = end

    def _tick(self) -> bool:
        chosen = self._next_to_join()
        if chosen is None or self._controller.state.controller_id == NO_CONTROLLER:
            return False
        join_isr(self._controller, *chosen, cause="auto_progress")
        return True

    def _next_to_join(self) -> tuple[TopicPartition, int] | None:
        fallback = None
        for name, partition in self._controller.partitions():
            if partition.leader == NO_LEADER or (fallback and not partition.reassigning):
                continue
            for replica in partition.target or partition.replicas:
                if replica not in partition.isr and self._may_join(name, partition, replica):
                    if partition.reassigning:
                        return (name, partition.index), replica
                    fallback = fallback or ((name, partition.index), replica)
        return fallback

    def _may_join(self, name: str, partition: Partition, replica: int) -> bool:
        told = self._controller.state.told
        live = self._controller.is_live(replica)
        return live and follows(told, (name, partition.index), partition, replica)
