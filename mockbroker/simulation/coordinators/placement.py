"""The placement of coordinators, and their moves.

The coordinator of a key is the leader of the key's partition of an internal topic. Elections,
stopped brokers and reassignments move leaders, so they move coordinators without any rule here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.errors import ClusterError
from mockbroker.simulation.configs.effective import EffectiveConfigs
from mockbroker.simulation.coordinators.coordinator_kinds import (
    INTERNAL_TOPIC_OF,
    CoordinatorKind,
    partition_for,
)
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.state.actions import Change, PartitionChanged, TopicDeleted
from mockbroker.simulation.state.cluster_parts import (
    NO_CONTROLLER,
    NO_LEADER,
    Broker,
    TopicPartition,
    find_partition,
)
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.metadata_views import MetadataView
from mockbroker.simulation.state.results import NewTopic
from mockbroker.simulation.topics.administration import Topics

__all__ = ["Coordinators"]

_KIND_OF: Final = {topic.name: kind for kind, topic in INTERNAL_TOPIC_OF.items()}


class _Listener(msgspec.Struct, frozen=True):
    known: Callable[[], Iterable[str]]
    on_unload: Callable[[Sequence[str]], None]
    on_load: Callable[[Sequence[str]], None]


class Coordinators:
    """The coordinators of one cluster, which runs ``release``."""

    def __init__(
        self,
        controller: Controller,
        configs: EffectiveConfigs,
        release: Release,
        topics: Topics,
        *,
        ready: bool = False,
    ) -> None:
        self._ready = ready
        self._controller = controller
        self._configs = configs
        self._release = release
        self._topics = topics
        self._listeners: dict[CoordinatorKind, list[_Listener]] = {
            kind: [] for kind in CoordinatorKind
        }
        self._loading: set[TopicPartition] = set()
        controller.add_hooks(
            (TopicDeleted,), before=self._before_deletion, after=self._after_deletion
        )
        controller.add_hooks((PartitionChanged,), after=self._partition_changed)

    # ---- finding ---------------------------------------------------------------------------------

    def exists(self, kind: CoordinatorKind) -> bool:
        """Whether the release has coordinators of this kind."""
        return self._release.is_within(INTERNAL_TOPIC_OF[kind].since, until=None)

    def partition_of(self, kind: CoordinatorKind, key: str) -> TopicPartition:
        """The partition of the internal topic whose leader is the coordinator of ``key``."""
        internal = INTERNAL_TOPIC_OF[kind]
        topic = self._controller.state.topics.get(internal.name)
        count = self._configured(internal.partitions) if topic is None else len(topic.partitions)
        return internal.name, partition_for(key, count)

    def find(
        self, kind: CoordinatorKind, key: str, broker_id: int, *, view: MetadataView | None = None
    ) -> Broker | None:
        """Return the coordinator of a key as this broker knows it; None while there is none that is
        live.

        The first call for a kind creates its internal topic and returns None, as Kafka does, unless
        the coordinators are to be ready at once.
        ``view`` is the broker's metadata at the beginning of the request, by default the present.
        """
        if not self.exists(kind):
            return None
        if view is None:
            view = self._controller.metadata_view(broker_id)
        new = self.new_topic(kind)
        if new.name in view.topics:
            return self._known(view, kind, key)
        if new.name not in self._topics and self._controller.state.controller_id != NO_CONTROLLER:
            self._topics.create([new])
            if self._ready:
                return self._known(self._controller.metadata_view(broker_id), kind, key)
        return None

    def _known(self, view: MetadataView, kind: CoordinatorKind, key: str) -> Broker | None:
        name, index = self.partition_of(kind, key)
        partition = find_partition(view.topics, (name, index))
        broker = None if partition is None else view.brokers.get(partition.leader)
        return broker if broker is not None and broker.live else None

    def error(self, kind: CoordinatorKind, key: str, broker_id: int) -> ErrorCode:
        """Return the error of a request for ``key`` at this broker: NOT_COORDINATOR (16) unless it
        leads the partition, COORDINATOR_LOAD_IN_PROGRESS (14) while it loads the partition."""
        tp = self.partition_of(kind, key)
        if self.leader(tp) != broker_id:
            return ErrorCode.NOT_COORDINATOR
        if tp in self._loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NONE

    def is_active(self, kind: CoordinatorKind, key: str) -> bool:
        """Whether the key has a coordinator that has loaded its partition."""
        tp = self.partition_of(kind, key)
        return self.leader(tp) != NO_LEADER and tp not in self._loading

    def group_error(self, group_id: str, broker_id: int) -> ErrorCode:
        """As ``error``, for a group."""
        return self.error(CoordinatorKind.GROUP, group_id, broker_id)

    def transaction_error(self, transactional_id: str, broker_id: int) -> ErrorCode:
        """As ``error``, for a transactional id."""
        return self.error(CoordinatorKind.TRANSACTION, transactional_id, broker_id)

    def new_topic(self, kind: CoordinatorKind) -> NewTopic:
        """Describe the internal topic as brokers create it.

        Kafka refuses a replication factor above the number of live brokers; here it is lowered, and
        min.insync.replicas with it, so that small clusters need no configs.
        """
        internal = INTERNAL_TOPIC_OF[kind]
        live = len(self._controller.live_ids())
        factor = max(1, min(self._configured(internal.replication_factor), live))
        configs = dict(internal.configs)
        for name, broker_config in internal.from_broker.items():
            configs[name] = self._configs.controller_value(broker_config)
        if internal.min_isr is not None:
            configs["min.insync.replicas"] = str(min(self._configured(internal.min_isr), factor))
        return NewTopic(
            internal.name,
            self._configured(internal.partitions),
            factor,
            configs=tuple(sorted(configs.items())),
        )

    def _configured(self, name: str) -> int:
        return int(self._configs.controller_value(name))

    def leader(self, tp: TopicPartition) -> int:
        """The leader of a partition of the internal topics, NO_LEADER if there is none."""
        partition = find_partition(self._controller.state.topics, tp)
        return NO_LEADER if partition is None else partition.leader

    # ---- moving and loading ----------------------------------------------------------------------

    def attach(
        self,
        kind: CoordinatorKind,
        keys: Callable[[], Iterable[str]],
        *,
        on_unload: Callable[[Sequence[str]], None],
        on_load: Callable[[Sequence[str]], None],
    ) -> None:
        """Call these functions when a coordinator gives up keys, and when one has loaded them.

        ``keys`` returns all keys that the caller knows; the functions are given those concerned.
        The committed state is in the internal topic, so a new coordinator has it at once.
        """
        self._listeners[kind].append(_Listener(keys, on_unload, on_load))

    def move(self, kind: CoordinatorKind, key: str, broker_id: int) -> None:
        """Make a broker the coordinator of ``key``, and of all keys of its partition.

        Raises ClusterError if the broker is not a live in-sync replica of the partition.
        """
        tp = self.partition_of(kind, key)
        partition = self._controller.partition(tp)
        live = [replica for replica in partition.isr if self._controller.is_online(tp, replica)]
        if broker_id not in live:
            raise ClusterError(
                f"broker {broker_id} cannot lead {tp[0]}-{tp[1]}: "
                f"its live in-sync replicas are "
                f"{', '.join(map(str, live))}"
            )
        if broker_id != partition.leader:
            moved = replace(
                partition,
                leader=broker_id,
                leader_epoch=partition.leader_epoch + 1,
                partition_epoch=partition.partition_epoch + 1,
            )
            self._controller.change_partition("move_coordinator", tp[0], moved)

    def load(self, kind: CoordinatorKind, key: str) -> None:
        """Put the coordinator of ``key`` into the loading state until ``finish_loading``: its
        requests are answered with error 14. Raises ClusterError if it is loading already."""
        tp = self.partition_of(kind, key)
        self._controller.partition(tp)
        if tp in self._loading:
            raise ClusterError(f"{tp[0]}-{tp[1]} is being loaded already")
        self._loading.add(tp)
        self._unload(tp)

    def finish_loading(self, kind: CoordinatorKind, key: str) -> None:
        """End what ``load`` began. Raises ClusterError if nothing is being loaded."""
        tp = self.partition_of(kind, key)
        if tp not in self._loading:
            raise ClusterError(f"{tp[0]}-{tp[1]} is not being loaded")
        self._loading.remove(tp)
        if self.leader(tp) != NO_LEADER:
            self._loaded(tp)

    @property
    def loading(self) -> frozenset[TopicPartition]:
        """The partitions that ``load`` keeps in loading."""
        return frozenset(self._loading)

    def _before_deletion(self, cause: str, change: Change) -> None:
        if isinstance(change, TopicDeleted) and change.name in _KIND_OF:
            for partition in self._controller.state.topics[change.name].partitions:
                self._unload((change.name, partition.index))

    def _after_deletion(self, cause: str, change: Change) -> None:
        if isinstance(change, TopicDeleted):
            self._loading = {tp for tp in self._loading if tp[0] != change.name}

    def _partition_changed(self, cause: str, change: Change) -> None:
        if isinstance(change, PartitionChanged) and change.topic in _KIND_OF:
            before, after = change.before.leader, change.after.leader
            tp = (change.topic, change.after.index)
            if before == after:
                return
            if before != NO_LEADER and tp not in self._loading:
                self._unload(tp)
            if after != NO_LEADER and tp not in self._loading:
                self._loaded(tp)

    def _unload(self, tp: TopicPartition) -> None:
        self._tell(tp, lambda listener: listener.on_unload)

    def _loaded(self, tp: TopicPartition) -> None:
        self._tell(tp, lambda listener: listener.on_load)

    def _tell(
        self, tp: TopicPartition, function: Callable[[_Listener], Callable[[Sequence[str]], None]]
    ) -> None:
        kind = _KIND_OF[tp[0]]
        for listener in self._listeners[kind]:
            keys = [key for key in listener.known() if self.partition_of(kind, key) == tp]
            if keys:
                function(listener)(keys)
