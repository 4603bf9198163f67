"""The simulated cluster: one facade over its state, its rules and its controls.

No sockets, no files, no messages: ids, names and lists in, ``mockbroker.state.results`` out.
Nothing moves by itself: a replica joins the ISR when ``join_isr`` says so, or at a tick of the
virtual clock while auto-progress is on. Every change is appended to ``log`` as a typed action, and
replaying the log (``mockbroker.state.controller.replay``) gives the state again.

Which broker was asked, who is asking and how long they wait is the server's business: it checks
``is_controller``, picks ``metadata_view(broker_id)``, and passes time in through ``advance``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from kproto.error_codes import ErrorCode
from kproto.znodes import EmbeddedStore, ZnodeStore, ZnodeTree
from kproto.znodes.kafka_znodes import broker_path
from mockbroker import steps
from mockbroker.configs import changes as config_changes
from mockbroker.configs import effective as configs
from mockbroker.configs.definitions import config_definitions
from mockbroker.elections.calls import ElectionCalls
from mockbroker.elections.eras import election_era
from mockbroker.elections.partition_change import Completion
from mockbroker.elections.queue import ElectionQueue
from mockbroker.errors import ClusterError
from mockbroker.inter_broker.broker_memory import BrokerMemory
from mockbroker.inter_broker.software_versions import newest_of
from mockbroker.reassignment import reassignment_controller
from mockbroker.security import acls
from mockbroker.state.actions import (
    ActionLog,
    BrokerRegistered,
    ControllerChanged,
)
from mockbroker.state.controller import Controller
from mockbroker.state.metadata_views import MetadataView
from mockbroker.state.model import Broker, Partition, Topic
from mockbroker.state.partition_state import partition_state
from mockbroker.state.reassignment_ids import ReassignmentFacts
from mockbroker.state.results import (
    AclBinding,
    AclFilter,
    AlterConfigsResult,
    AlterReassignmentsResult,
    ConfigEntry,
    CreateAclResult,
    CreatePartitionsResult,
    CreateTopicResult,
    DeleteAclsResult,
    DeleteTopicResult,
    DescribeAclsResult,
    DescribeConfigsResult,
    ListReassignmentsResult,
    LogDir,
    NewTopic,
)
from mockbroker.topics import administration as topic_rules
from mockbroker.topics import log_dirs
from mockbroker.topics.eras import administration_era

__all__ = ["Cluster", "ConfigOperation", "PartitionsByTopic", "ReassignmentRequest"]

ReassignmentRequest: TypeAlias = Sequence[tuple[str, Sequence[tuple[int, Sequence[int] | None]]]]
"""[(topic name, [(partition index, target broker ids, or None to cancel)])]"""

PartitionsByTopic: TypeAlias = Sequence[tuple[str, Sequence[int]]]
"""[(topic name, [partition index])]"""

ConfigOperation: TypeAlias = tuple[str, int, str | None]
"""(config name, operation: 0 SET, 1 DELETE, 2 APPEND, 3 SUBTRACT; value)"""


class Cluster(ElectionCalls, ReassignmentFacts):
    """N brokers, one controller, topics; see the module's docstring for what it refuses to know.

    ``brokers`` is a count (ids 1..N) or the brokers themselves; the lowest id is the controller.
    ``topics`` are texts (``parse_topic``) or (name, broker ids of each partition) pairs.
    ``now_ms`` starts the virtual clock. ``broker_configs`` are what every broker's properties file
    says. ``new_topic_id`` exists so that a test can fix the ids. ``completion`` is the release's.
    ``machine`` is how the controller reassigns partitions, one of
    ``mockbroker.reassignment.CONTROLLERS``; where that one keeps znodes it does so in ``znodes``,
    a session of its own, or else in a ZooKeeper of its own in this process. ``newest`` is the
    highest version of each request between brokers that the cluster's software knows
    (``inter_broker.software_versions``); a broker's own ranges override it.

    ``administration`` is how topics and configs are administered, one of
    ``mockbroker.topics.eras.ERAS``; None is the newest that goes with the machine.
    ``config_release`` is the line whose configs there are.

    ``elections`` is how ElectLeaders is answered, one of ``mockbroker.elections.eras.ERAS``; None
    is the newest that goes with the machine. ``busy_elections_fail`` is KIP-183's other reading:
    while an election is enqueued, others are told 7 at once.

    ``zxid`` is the last one before this cluster's, where it keeps its znodes itself.

    Raises ClusterError for a description that makes no sense.
    """

    def __init__(
        self,
        brokers: int | Iterable[Broker] = 3,
        *,
        cluster_id: str | None = None,
        topics: Iterable[str | tuple[str, Sequence[Sequence[int]]]] = (),
        now_ms: int = 0,
        auto_progress_ms: int | None = None,
        broker_configs: Mapping[str, str] = MappingProxyType({}),
        new_topic_id: Callable[[], uuid.UUID] = uuid.uuid4,
        completion: Completion = Completion.ALL,
        machine: str = "kraft",
        elections: str | None = None,
        busy_elections_fail: bool = False,
        administration: str | None = None,
        config_release: tuple[int, int] = (4, 4),
        znodes: ZnodeStore | None = None,
        zxid: int = 0,
        newest: Mapping[int, int] | None = None,
    ) -> None:
        chosen = reassignment_controller(machine)
        if znodes is None and chosen.keeps_znodes:
            znodes = EmbeddedStore(ZnodeTree(now_ms=now_ms, zxid=zxid), lambda: self.now_ms)
        self._controller = Controller(
            cluster_id or topic_rules.fresh_cluster_id(),
            broker_configs,
            now_ms,
            Completion.SEPARATE if chosen.keeps_znodes else completion,
            machine=chosen,
            store=znodes if chosen.keeps_znodes else None,
            newest=newest_of(machine) if newest is None else newest,
        )
        era = election_era(elections or ("zookeeper-2.6" if chosen.keeps_znodes else "kraft"))
        self._controller.elections = ElectionQueue(
            self._controller, era, busy_is_error=busy_elections_fail
        )
        self._memories: dict[int, tuple[int, BrokerMemory]] = {}
        kind = "zookeeper" if chosen.keeps_znodes else "kraft-4.3"
        self._controller.administration = administration_era(administration or kind)
        self._state.definitions = config_definitions(config_release)
        self._auto_progress = steps.AutoProgress(self._controller)
        self._controller.on_session_expired = lambda: steps.session_expired(self._controller)
        self._new_topic_id = new_topic_id
        self._register(_broker_list(brokers))
        chosen.start(self._controller)
        for topic in topics:
            self.add_topic(topic)
        if auto_progress_ms is not None:
            self.set_auto_progress(auto_progress_ms)

    def _register(self, brokers: Sequence[Broker]) -> None:
        for broker in brokers:
            self._controller.record("start", BrokerRegistered(broker))
        live = self._controller.live_ids()
        first = live[0] if live else brokers[0].broker_id
        epoch = self._controller.machine.last_epoch(self._controller) + 1
        self._controller.record("start", ControllerChanged(-1, first, epoch))

    # ---- facts -----------------------------------------------------------------------------------

    @property
    def cluster_id(self) -> str:
        """22 characters: a uuid in URL-safe base64, as KRaft makes them."""
        return self._state.cluster_id

    @property
    def log(self) -> ActionLog:
        """Everything that happened, oldest first."""
        return self._controller.log

    @property
    def now_ms(self) -> int:
        """The virtual clock, in milliseconds."""
        return self._controller.now_ms

    @property
    def controller_id(self) -> int:
        """The broker that is the controller; KRaft's stays so when every broker is stopped. -1
        while there is none (ZooKeeper only)."""
        return self._state.controller_id

    @property
    def controller_epoch(self) -> int:
        """Counts the controllers there have been."""
        return self._state.controller_epoch

    @property
    def brokers(self) -> Mapping[int, Broker]:
        """Every registered broker by id, live or not, ids ascending."""
        return MappingProxyType(self._state.brokers)

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The controller's own, always current, view."""
        return MappingProxyType(self._state.topics)

    @property
    def auto_progress_ms(self) -> int | None:
        """The interval of auto-progress; None when it is off."""
        return self._state.auto_progress_ms

    @property
    def next_tick_ms(self) -> int | None:
        """When auto-progress is due next on the virtual clock; None when it is off."""
        return self._auto_progress.next_tick_ms

    def broker_epoch(self, broker_id: int) -> int:
        """Which life of a broker this is: the czxid of its znode, -1 without one."""
        stat = self._state.znode_stats.get(broker_path(broker_id))
        return -1 if stat is None else stat.czxid

    def memory(self, broker_id: int) -> BrokerMemory:
        """What this broker has got from controllers, in its present life. No part of the log."""
        epoch = self.broker_epoch(broker_id)
        kept = self._memories.get(broker_id)
        if kept is None or kept[0] != epoch:
            kept = self._memories[broker_id] = (epoch, BrokerMemory())
        return kept[1]

    def is_controller(self, broker_id: int) -> bool:
        """Whether this broker is the controller."""
        return self._state.controller_id == broker_id

    def partition(self, topic: str, index: int) -> Partition:
        """Raises UnknownPartitionError."""
        return steps.find_partition(self._controller, (topic, index))

    def metadata_view(self, broker_id: int) -> MetadataView:
        """What this broker would answer to Metadata (3), DescribeTopicPartitions (75) and
        DescribeCluster (60): current, or as of ``hold_metadata``, or as of ``propagation_ms`` ago.
        ``view.offset`` changes whenever the content may have: use it as a cache key."""
        return self._state.view(broker_id, self.now_ms)

    def state(self) -> dict[str, Any]:
        """The object of ``mockbroker ctl URL state --json``: keys are text, as JSON has them. A
        partition that KIP-236's newer draft can roll back also says where to: ``original``."""
        return {
            "controller": self.controller_id,
            "controller_epoch": self.controller_epoch,
            "brokers": {str(i): {"live": broker.live} for i, broker in self.brokers.items()},
            "topics": {
                name: {str(p.index): partition_state(p) for p in topic.partitions}
                for name, topic in sorted(self.topics.items())
            },
        }

    # ---- reassignments (45, 46) ------------------------------------------------------------------

    def alter_partition_reassignments(
        self, topics: ReassignmentRequest, *, allow_replication_factor_change: bool = True
    ) -> AlterReassignmentsResult:
        """Start, change or (None) cancel reassignments; one row a requested partition, in order."""
        with self._acting(by_controller=True):
            return self._controller.machine.alter(
                self._controller,
                topics,
                allow_replication_factor_change=allow_replication_factor_change,
            )

    def list_partition_reassignments(
        self, topics: PartitionsByTopic | None
    ) -> ListReassignmentsResult:
        """None lists everything; unknown and idle partitions are omitted."""
        with self.turn(by_controller=True):
            return self._controller.machine.list_ongoing(self._controller, topics)

    # ---- topics (19, 20, 37) ---------------------------------------------------------------------

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False, wait_ms: int = 60_000
    ) -> tuple[CreateTopicResult, ...]:
        """One result a distinct name. Replicas start at broker p mod N, not at a random one.
        ``wait_ms`` is how long the caller would wait; the answer comes at once all the same."""
        with self._acting(by_controller=True):
            return topic_rules.create(
                self._controller,
                topics,
                self._new_topic_id,
                validate_only=validate_only,
                wait_ms=wait_ms,
            )

    def auto_create_topic(self, name: str) -> int:
        """What Metadata does about an unknown topic when it may create it: the error code to
        answer this time. After creating it that is 3, as a KRaft broker that has not yet heard of
        it answers; 17 for a bad name; 3 and nothing created unless ``auto.create.topics.enable``.
        """
        enabled = self.broker_config(self.controller_id, "auto.create.topics.enable").value
        if enabled == "true":
            (result,) = self.create_topics([NewTopic(name)])
            if result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION:
                return result.error_code
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def delete_topics(
        self, topics: Sequence[tuple[str | None, uuid.UUID]], *, wait_ms: int = 60_000
    ) -> tuple[DeleteTopicResult, ...]:
        """(name, zero uuid) by name, (None, id) by id."""
        with self._acting(by_controller=True):
            return topic_rules.delete(self._controller, topics, wait_ms=wait_ms)

    def create_partitions(
        self,
        topics: Sequence[tuple[str, int, Sequence[Sequence[int]] | None]],
        *,
        validate_only: bool = False,
        wait_ms: int = 60_000,
    ) -> tuple[CreatePartitionsResult, ...]:
        """(name, new total count, None or the broker ids of each new partition)"""
        with self._acting(by_controller=True):
            return topic_rules.add_partitions(
                self._controller, topics, validate_only=validate_only, wait_ms=wait_ms
            )

    # ---- configs (32, 44), log dirs (35), ACLs (29, 30, 31) --------------------------------------

    def describe_configs(
        self,
        resource_type: int,
        resource_name: str,
        names: Sequence[str] | None = None,
        *,
        asked_broker: int | None = None,
    ) -> DescribeConfigsResult:
        """``resource_type`` 2 topic, 4 broker ("" is the cluster-wide default); None = all.

        A broker refuses to describe another broker: ``asked_broker`` is the one the request
        reached, None to skip that check.
        """
        return configs.describe(
            self._state, resource_type, resource_name, names, asked_broker=asked_broker
        )

    def incremental_alter_configs(
        self,
        resources: Sequence[tuple[int, str, Sequence[ConfigOperation]]],
        *,
        validate_only: bool = False,
    ) -> tuple[AlterConfigsResult, ...]:
        """Each resource (type, name, operations) is changed wholly or not at all."""
        with self._acting():
            return config_changes.alter_incrementally(
                self._controller, resources, validate_only=validate_only
            )

    def topic_config(self, topic: str, name: str) -> ConfigEntry:
        """One effective topic config. Raises ClusterError for a name Kafka does not have."""
        if name not in self._state.definitions.topic:
            raise ClusterError(f"no topic config {name!r}")
        return configs.topic_entry(self._state, topic, name)

    def broker_config(self, broker_id: int, name: str) -> ConfigEntry:
        """One effective broker config. Raises ClusterError for a name this mock does not have."""
        if name not in self._state.definitions.broker:
            raise ClusterError(f"no broker config {name!r}")
        return configs.broker_entry(self._state, broker_id, name)

    def describe_log_dirs(
        self, broker_id: int, topics: PartitionsByTopic | None
    ) -> tuple[LogDir, ...]:
        """The directories of this broker, with the replicas asked for (None = all)."""
        return log_dirs.describe(self._state, broker_id, topics)

    @property
    def acls(self) -> Collection[AclBinding]:
        """The access rules there are, oldest first."""
        return self._state.acls.keys()

    def create_acls(self, bindings: Sequence[AclBinding]) -> tuple[CreateAclResult, ...]:
        """One result a rule. Rules are only stored here; ``security.authorizer`` reads them."""
        with self._acting():
            return acls.create(self._controller, bindings)

    def describe_acls(self, acl_filter: AclFilter) -> DescribeAclsResult:
        """The rules a filter matches, in a fixed order."""
        return acls.describe(self._state, acl_filter)

    def delete_acls(self, filters: Sequence[AclFilter]) -> tuple[DeleteAclsResult, ...]:
        """One result a filter, with the rules it matched."""
        with self._acting():
            return acls.delete(self._controller, filters)


def _broker_list(brokers: int | Iterable[Broker]) -> list[Broker]:
    if isinstance(brokers, int):
        brokers = [Broker(broker_id) for broker_id in range(1, brokers + 1)]
    listed = sorted(brokers, key=lambda broker: broker.broker_id)
    ids = [broker.broker_id for broker in listed]
    if not ids:
        raise ClusterError("a cluster needs at least one broker")
    if len(set(ids)) != len(ids) or ids[0] < 0:
        raise ClusterError(f"broker ids must be distinct and not negative: {ids}")
    return listed
