"""The cluster's state and the one place that changes it.

Rules live elsewhere (``machines``, ``elections``, ``topics``, ...): they read this state,
decide, and hand a typed change to ``Controller.record``, which logs it and applies it. Nothing else
writes, so the log is complete: ``replay`` of it gives an equal state.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kproto.znodes import Stat, ZnodeStore
from mockbroker.configs.definitions import NEWEST_CONFIGS, ConfigDefinitions
from mockbroker.elections.partition_change import Completion
from mockbroker.errors import ControllerDiedError
from mockbroker.inter_broker.software_versions import (
    NEWEST,
    Told,
    addressed,
    forget_targets,
    note_sent,
)
from mockbroker.state.actions import (
    AclAdded,
    AclRemoved,
    Action,
    ActionLog,
    AutoProgressChanged,
    BrokerChanged,
    BrokerRegistered,
    Change,
    ConfigChanged,
    ControllerChanged,
    ElectionEnqueued,
    ElectionProcessed,
    ElectionsHeld,
    ElectionsReleased,
    LeaderAndIsrSent,
    MetadataHeld,
    MetadataReleased,
    PartitionChanged,
    PartitionsAdded,
    PropagationChanged,
    StopReplicaSent,
    TopicCreated,
    TopicDeleted,
    ZnodeWritten,
)
from mockbroker.state.controller_znodes import SEEN, ControllerZnodes
from mockbroker.state.metadata_views import MetadataView, ViewHistory
from mockbroker.state.model import NO_CONTROLLER, Broker, Partition, Topic
from mockbroker.state.results import AclBinding
from mockbroker.topics.eras import KRAFT, AdministrationEra

if TYPE_CHECKING:
    from mockbroker.elections.queue import ElectionQueue
    from mockbroker.reassignment.controller import ReassignmentController

__all__ = ["BROKER", "TOPIC", "ClusterState", "Controller", "replay"]

TOPIC = 2
"""Config resource type of a topic (``ConfigResource.Type``)."""
BROKER = 4
"""Config resource type of a broker; the empty name is the cluster-wide default."""


@dataclass
class ClusterState:
    """Everything the log determines, and the two facts from before it. Only ``apply`` writes.

    ``static_configs`` are what every broker's properties file says. ``znodes`` are texts by path,
    and ``znode_stats`` the stat each had when it was written or seen; both are empty where the
    controller keeps nothing in ZooKeeper. ``told`` is which brokers know of the targets of
    reassignments, where a draft tells them. ``last_controller_id`` is what brokers answer while
    there is no controller. ``deleting`` are topics that nobody sees any more, of
    which a stopped broker still has replicas.
    """

    cluster_id: str
    static_configs: Mapping[str, str] = field(default_factory=dict)
    offset: int = 0
    controller_id: int = -1
    controller_epoch: int = 0
    last_controller_id: int = -1
    brokers: dict[int, Broker] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)
    topic_names: dict[uuid.UUID, str] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    acls: dict[AclBinding, None] = field(default_factory=dict)
    held: dict[int, MetadataView] = field(default_factory=dict)
    znodes: dict[str, str] = field(default_factory=dict)
    znode_stats: dict[str, Stat] = field(default_factory=dict)
    told: Told = field(default_factory=dict)
    auto_progress_ms: int | None = None
    definitions: ConfigDefinitions = field(default=NEWEST_CONFIGS, repr=False, compare=False)
    elections: dict[int, ElectionEnqueued] = field(default_factory=dict)
    elections_held: bool = False
    deleting: dict[str, Topic] = field(default_factory=dict)
    _history: ViewHistory = field(default_factory=ViewHistory, repr=False, compare=False)
    _view: MetadataView | None = field(default=None, repr=False, compare=False)

    def view(self, broker_id: int, now_ms: int) -> MetadataView:
        """What a broker answers from: held, or as far as changes have come to it by now."""
        held = self.held.get(broker_id)
        return self._history.view(now_ms) or self._current() if held is None else held

    @property
    def propagation_ms(self) -> int:
        """How long every broker takes to hear of a change."""
        return self._history.delay_ms

    def next_arrival(self, now_ms: int) -> int | None:
        """When brokers next hear of a change that was made; None when they know all there is."""
        return self._history.next_arrival(now_ms)

    def _current(self) -> MetadataView:
        """Copied once a change, not once a call."""
        if self._view is None or self._view.offset != self.offset:
            self._view = MetadataView(
                self.offset,
                self.cluster_id,
                self.last_controller_id,
                dict(self.brokers),
                dict(self.topics),
                dict(self.topic_names),
            )
        return self._view

    def apply(self, action: Action) -> None:
        """Take one change. It was checked when it was made; nothing is refused here."""
        self._history.before_change(action.at_ms, self._current)
        match action.change:
            case BrokerRegistered(broker):
                self.brokers[broker.broker_id] = broker
            case BrokerChanged(before, after):
                self.brokers[after.broker_id] = after
                self._forget_deleted()
                if before.apis != after.apis:
                    forget_targets(self.told, before, after)
            case ControllerChanged(_, chosen, epoch):
                self.controller_id, self.controller_epoch = chosen, epoch
                if chosen != NO_CONTROLLER:
                    self.last_controller_id = chosen
            case TopicCreated(topic):
                self.topics[topic.name] = topic
                self.deleting.pop(topic.name, None)
                self.topic_names[topic.topic_id] = topic.name
            case TopicDeleted(name, topic_id):
                self.deleting[name] = self.topics[name]
                self._forget_deleted()
                del self.topics[name], self.topic_names[topic_id]
                self.configs.pop((TOPIC, name), None)
                self.told = {key: told for key, told in self.told.items() if key[1] != name}
            case PartitionsAdded(name, partitions):
                self._set_partitions(name, self.topics[name].partitions + partitions)
            case PartitionChanged(name, _, partition):
                old = self.topics[name].partitions
                index = partition.index
                self._set_partitions(name, (*old[:index], partition, *old[index + 1 :]))
            case ConfigChanged() as change:
                self._set_config(change)
            case AclAdded(binding):
                self.acls[binding] = None
            case AclRemoved(binding):
                del self.acls[binding]
            case MetadataHeld(broker_id):
                self.held[broker_id] = self.view(broker_id, action.at_ms)
            case MetadataReleased(broker_id):
                del self.held[broker_id]
            case AutoProgressChanged(interval_ms):
                self.auto_progress_ms = interval_ms
            case PropagationChanged(delay_ms):
                self._history.set_delay(delay_ms, action.at_ms, self._current())
            case ElectionEnqueued(number) as enqueued:
                self.elections[number] = enqueued
            case ElectionProcessed(number):
                del self.elections[number]
            case ElectionsHeld():
                self.elections_held = True
            case ElectionsReleased():
                self.elections_held = False
            case ZnodeWritten() as change:
                self._set_znode(change)
            case LeaderAndIsrSent() | StopReplicaSent() as change:
                note_sent(self.told, change)
        self.offset = action.offset + 1

    def _forget_deleted(self) -> None:
        """Topics are wholly deleted once no stopped broker has a replica of them."""
        stopped = {each.broker_id for each in self.brokers.values() if not each.live}
        self.deleting = {
            name: topic
            for name, topic in self.deleting.items()
            if any(stopped.intersection(each.hosts) for each in topic.partitions)
        }

    def _set_partitions(self, name: str, partitions: tuple[Partition, ...]) -> None:
        self.topics[name] = Topic(name, self.topics[name].topic_id, partitions)

    def _set_znode(self, change: ZnodeWritten) -> None:
        if change.after is None:
            self.znodes.pop(change.path, None)
        else:
            self.znodes[change.path] = change.after
        if change.stat is None:
            self.znode_stats.pop(change.path, None)
        else:
            self.znode_stats[change.path] = change.stat

    def _set_config(self, change: ConfigChanged) -> None:
        key = (change.resource_type, change.resource_name)
        values = self.configs.setdefault(key, {})
        if change.after is None:
            values.pop(change.name, None)
        else:
            values[change.name] = change.after
        if not values:
            del self.configs[key]


class Controller:
    """State, log and clock together; what every rule is given.

    ``machine`` is how this controller reassigns partitions and where it keeps what it knows.
    ``newest`` is the highest version of each request between brokers that this cluster's know.
    """

    elections: ElectionQueue
    """Whoever makes a controller gives it one."""
    on_session_expired: Callable[[], None] = staticmethod(lambda: None)
    """Called when the session has ended; a step, and so its maker's to give."""
    resigned = False
    """Whether a step left the cluster without a controller, which brokers then do not elect."""
    administration: AdministrationEra = KRAFT
    """How it administers topics and configs; whoever makes it may give it another."""

    def __init__(
        self,
        cluster_id: str,
        static_configs: Mapping[str, str],
        now_ms: int,
        completion: Completion = Completion.ALL,
        *,
        machine: ReassignmentController,
        store: ZnodeStore | None = None,
        newest: Mapping[int, int] = NEWEST,
    ) -> None:
        self.machine = machine
        self.newest = newest
        self._znodes = None if store is None else ControllerZnodes(store, self)
        self._lives: int | None = None
        self.completion = completion
        self.state = ClusterState(cluster_id, dict(static_configs))
        self.log = ActionLog()
        self.now_ms = now_ms

    @property
    def znodes(self) -> ControllerZnodes:
        """Where a controller of the ZooKeeper kind keeps what it knows; KRaft has none to ask."""
        assert self._znodes is not None, "only machines that keep znodes ask for them"
        return self._znodes

    @property
    def keeps_znodes(self) -> bool:
        return self._znodes is not None

    def record(self, cause: str, change: Change) -> None:
        """Log a change and make it."""
        if not isinstance(change, ZnodeWritten):  # that was paid for before it was written
            self.spend_life()
        change = addressed(self, change)
        self.machine.store(self, cause, change)
        self.state.apply(self.log.append(self.now_ms, cause, change))
        self.machine.announce(self, cause, change)

    def die_after(self, changes: int) -> None:
        """Let the controller die once it has made this many more changes, in the midst of whatever
        it is doing then."""
        self._lives = changes

    def spend_life(self) -> None:
        """Called before each change. Raises ControllerDiedError when the controller is to die."""
        if self._lives is None or self.state.controller_id == NO_CONTROLLER:
            return
        if self._lives == 0:
            self._lives = None
            raise ControllerDiedError(self.state.controller_id)
        self._lives -= 1

    def react(self) -> None:
        """Do what is to be done about znodes that others have written since the last time. While
        there is no controller nobody does; the next one looks at everything."""
        while self._znodes is not None:
            events = self._znodes.take_events()
            if self._znodes.expired:
                # Whatever else happened, the next controller looks at everything.
                self.on_session_expired()
                continue
            if not events:
                return
            for event in events:
                if self.state.controller_id != NO_CONTROLLER:
                    self.machine.react(self, event)

    def forget_session(self) -> None:
        """The ephemeral znodes of the session, which has ended, are gone."""
        for path, stat in list(self.state.znode_stats.items()):
            if stat.ephemeral_owner == self.znodes.session_id:
                change = ZnodeWritten(path, self.state.znodes.get(path), None, None)
                self.record(SEEN, change)

    def change_partition(self, cause: str, topic: str, after: Partition) -> None:
        """Record a partition's new value, unless nothing changed."""
        before = self.state.topics[topic].partitions[after.index]
        if after != before:
            self.machine.change_partition(self, cause, PartitionChanged(topic, before, after))

    def is_live(self, broker_id: int) -> bool:
        broker = self.state.brokers.get(broker_id)
        return broker is not None and broker.live

    def live_ids(self) -> tuple[int, ...]:
        """Ids of the live brokers, ascending."""
        return tuple(sorted(i for i, broker in self.state.brokers.items() if broker.live))

    def partitions(self) -> Iterator[tuple[str, Partition]]:
        """Every partition, by topic name and index ascending. Safe to change them meanwhile."""
        for name in sorted(self.state.topics):
            for partition in self.state.topics[name].partitions:
                yield name, partition


def replay(
    cluster_id: str, actions: Iterable[Action], static_configs: Mapping[str, str] | None = None
) -> ClusterState:
    """The state a log leads to, from nothing."""
    state = ClusterState(cluster_id, dict(static_configs or {}))
    for action in actions:
        state.apply(action)
    return state
