"""The action log, what a cluster is at one moment, and how each action of the log changes it.

The same actions in the same order give an equal state: see ``replay``. This module has no rules;
actions are decided on elsewhere and recorded by ``state.controller.Controller``.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import overload

from kproto.znodes import Stat
from mockbroker.simulation.state.actions import (
    AclAdded,
    AclRemoved,
    Action,
    AutoProgressChanged,
    BrokerChanged,
    BrokerRegistered,
    Change,
    ClientQuotaChanged,
    ConfigChanged,
    ControllerChanged,
    DelegationTokenChanged,
    ElectionEnqueued,
    ElectionProcessed,
    ElectionsHeld,
    ElectionsReleased,
    FeatureChanged,
    LeaderAndIsrSent,
    LogDirFailed,
    LogDirMended,
    LogDirReported,
    MetadataHeld,
    MetadataReleased,
    PartitionChanged,
    PartitionsAdded,
    PropagationChanged,
    ReplicaPlaced,
    ScramCredentialChanged,
    StopReplicaSent,
    TopicCreated,
    TopicDeleted,
    VotersChanged,
    ZnodeWritten,
)
from mockbroker.simulation.state.cluster_parts import (
    NO_CONTROLLER,
    Broker,
    DelegationToken,
    ScramCredential,
    Topic,
    Voter,
)
from mockbroker.simulation.state.known_targets import KnownTargets
from mockbroker.simulation.state.metadata_views import MetadataView, ViewHistory
from mockbroker.simulation.state.replica_dirs import ReplicaDirs
from mockbroker.simulation.state.results import AclBinding

__all__ = [
    "BROKER",
    "BROKER_LOGGER",
    "CLIENT_METRICS",
    "GROUP",
    "TOPIC",
    "ActionLog",
    "ClusterState",
    "replay",
]

TOPIC = 2
"""Config resource type of a topic (``ConfigResource.Type``)."""
BROKER = 4
"""Config resource type of a broker; the empty name is the cluster-wide default."""
BROKER_LOGGER = 8
"""Config resource type of the loggers of a broker (KIP-412)."""
CLIENT_METRICS = 16
"""Config resource type of a subscription to clients' metrics (KIP-714)."""
GROUP = 32
"""Config resource type of a group."""


class ActionLog:
    """The append-only log of actions, readable as a sequence."""

    def __init__(self) -> None:
        self._actions: list[Action] = []

    def append(self, at_ms: int, cause: str, change: Change) -> Action:
        """Add a change to the log and return its entry."""
        action = Action(len(self._actions), at_ms, cause, change)
        self._actions.append(action)
        return action

    def since(self, offset: int) -> tuple[Action, ...]:
        """Return the actions from this offset on; ``len(log)`` is the next offset."""
        return tuple(self._actions[offset:])

    def partition_changes(self, topic: str, index: int) -> tuple[PartitionChanged, ...]:
        """Return the changes of one partition, oldest first."""
        return tuple(
            action.change
            for action in self._actions
            if isinstance(action.change, PartitionChanged)
            and (action.change.topic, action.change.after.index) == (topic, index)
        )

    def __len__(self) -> int:
        return len(self._actions)

    def __iter__(self) -> Iterator[Action]:
        return iter(self._actions)

    @overload
    def __getitem__(self, key: int) -> Action: ...
    @overload
    def __getitem__(self, key: slice) -> list[Action]: ...
    def __getitem__(self, key: int | slice) -> Action | list[Action]:
        return self._actions[key]


@dataclass
class ClusterState:
    """Everything the action log determines, plus ``cluster_id``, ``static_configs`` and
    ``own_configs``, which are given. Only ``apply`` writes to it.

    ``static_configs`` is the content of every broker's properties file, and ``own_configs`` what
    single brokers' files have instead, by broker id. ``znodes`` maps paths to
    texts and ``znode_stats`` to the stat that each znode had when it was last written or read; both
    are empty in KRaft mode. ``live_ids`` are the ids of the live brokers, ascending.
    ``last_controller_id`` is the controller that brokers report while there is none. ``deleting``
    holds deleted topics that clients no longer see, but of which a stopped broker still has
    replicas. ``feature_levels`` are those that were changed, ``voters`` is None for the first
    controller alone. ``replica_dirs`` has the log directories.
    """

    cluster_id: str
    static_configs: Mapping[str, str] = field(default_factory=dict)
    own_configs: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    offset: int = 0
    controller_id: int = -1
    controller_epoch: int = 0
    last_controller_id: int = -1
    brokers: dict[int, Broker] = field(default_factory=dict)
    live_ids: tuple[int, ...] = ()
    topics: dict[str, Topic] = field(default_factory=dict)
    topic_names: dict[uuid.UUID, str] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    acls: dict[AclBinding, None] = field(default_factory=dict)
    quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = field(default_factory=dict)
    scram: dict[tuple[str, str], ScramCredential] = field(default_factory=dict)
    tokens: dict[str, DelegationToken] = field(default_factory=dict)
    feature_levels: dict[str, int] = field(default_factory=dict)
    voters: tuple[Voter, ...] | None = None
    held_views: dict[int, MetadataView] = field(default_factory=dict)
    znodes: dict[str, str] = field(default_factory=dict)
    znode_stats: dict[str, Stat] = field(default_factory=dict)
    known_targets: KnownTargets = field(default_factory=KnownTargets)
    auto_progress_ms: int | None = None
    elections: dict[int, ElectionEnqueued] = field(default_factory=dict)
    elections_held: bool = False
    deleting: dict[str, Topic] = field(default_factory=dict)
    replica_dirs: ReplicaDirs = field(default_factory=ReplicaDirs)
    _history: ViewHistory = field(default_factory=ViewHistory, repr=False, compare=False)
    _view: MetadataView | None = field(default=None, repr=False, compare=False)

    def view(self, broker_id: int, now_ms: int) -> MetadataView:
        """Return the metadata that a broker has: held, or delayed by the propagation time."""
        held = self.held_views.get(broker_id)
        if held is None and self._history.delay_ms:
            held = self._history.view(now_ms)
        return self._current() if held is None else held

    @property
    def propagation_ms(self) -> int:
        """The delay until every broker learns of a change."""
        return self._history.delay_ms

    def next_arrival(self, now_ms: int) -> int | None:
        """Return when the next change reaches brokers, or None if all changes have."""
        return self._history.next_arrival(now_ms)

    def _current(self) -> MetadataView:
        """Return the current view, copied at most once per change."""
        if self._view is None or self._view.offset != self.offset:
            self._view = MetadataView(
                self.offset,
                self.cluster_id,
                self.last_controller_id,
                dict(self.brokers),
                dict(self.topics),
                dict(self.topic_names),
                self.replica_dirs.copy(),
            )
        return self._view

    def apply(self, action: Action) -> None:
        """Apply one change. It was validated when it was recorded, so nothing is refused here."""
        if self._history.delay_ms:
            self._history.before_change(action.at_ms, self._current)
        match action.change:
            case BrokerRegistered(broker):
                self._set_broker(broker)
                self.replica_dirs.register(broker)
            case BrokerChanged(before, after):
                self._set_broker(after)
                self._forget_deleted()
                if before.apis != after.apis:
                    self.known_targets.note_software(before, after)
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
                self.known_targets.forget_topic(name)
                self.replica_dirs.forget(name, None)
            case PartitionsAdded(name, partitions):
                topic = self.topics[name]
                self.topics[name] = Topic(name, topic.topic_id, topic.partitions + partitions)
            case PartitionChanged(name, before, partition):
                self.topics[name] = self.topics[name].with_partition(partition)
                if self.replica_dirs.placed and before.hosts != partition.hosts:
                    self.replica_dirs.forget(name, partition.index, partition.hosts)
            case ConfigChanged() as change:
                self._set_config(change)
            case AclAdded(binding):
                self.acls[binding] = None
            case AclRemoved(binding):
                del self.acls[binding]
            case ClientQuotaChanged() as change:
                self._set_quota(change)
            case ScramCredentialChanged(user, mechanism, _, credential):
                if credential is None:
                    self.scram.pop((user, mechanism), None)
                else:
                    self.scram[user, mechanism] = credential
            case DelegationTokenChanged(token_id, _, token):
                if token is None:
                    self.tokens.pop(token_id, None)
                else:
                    self.tokens[token_id] = token
            case FeatureChanged(name, _, level):
                self.feature_levels[name] = level
            case VotersChanged(_, voters):
                self.voters = voters
            case MetadataHeld(broker_id):
                self.held_views[broker_id] = self.view(broker_id, action.at_ms)
            case MetadataReleased(broker_id):
                del self.held_views[broker_id]
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
            case LogDirFailed(broker_id, log_dir):
                self.replica_dirs.fail(broker_id, log_dir)
            case LogDirReported(broker_id, log_dir):
                self.replica_dirs.report(broker_id, log_dir)
            case LogDirMended(broker_id, log_dir):
                self.replica_dirs.mend(broker_id, log_dir)
            case ReplicaPlaced(name, index, broker_id, log_dir):
                self.replica_dirs.placed[broker_id, (name, index)] = log_dir
            case LeaderAndIsrSent() | StopReplicaSent() as change:
                self.known_targets.note_sent(change)
        self.offset = action.offset + 1

    def is_registered(self, broker_id: int) -> bool:
        """Whether the controller knows the broker."""
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.unregistered

    def static_config(self, broker_id: int, name: str) -> str | None:
        """Return the value in a broker's properties file; None if the file does not set it."""
        own = self.own_configs.get(broker_id, {})
        return own[name] if name in own else self.static_configs.get(name)

    def _set_broker(self, broker: Broker) -> None:
        self.brokers[broker.broker_id] = broker
        self.live_ids = tuple(sorted(i for i, each in self.brokers.items() if each.live))

    def _forget_deleted(self) -> None:
        """Drop topics from ``deleting`` once no stopped broker has a replica of them."""
        stopped = {each.broker_id for each in self.brokers.values() if not each.live}
        self.deleting = {
            name: topic
            for name, topic in self.deleting.items()
            if any(stopped.intersection(each.hosts) for each in topic.partitions)
        }

    def _set_quota(self, change: ClientQuotaChanged) -> None:
        values = self.quotas.setdefault(change.entity, {})
        if change.after is None:
            values.pop(change.key, None)
        else:
            values[change.key] = change.after
        if not values:
            del self.quotas[change.entity]

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


def replay(
    cluster_id: str,
    actions: Iterable[Action],
    static_configs: Mapping[str, str] | None = None,
    own_configs: Mapping[int, Mapping[str, str]] | None = None,
) -> ClusterState:
    """Return the state that results from applying these actions to an empty cluster."""
    state = ClusterState(cluster_id, dict(static_configs or {}), dict(own_configs or {}))
    for action in actions:
        state.apply(action)
    return state
