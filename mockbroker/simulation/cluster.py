"""The simulated cluster: one facade over its state, its rules and its controls.

It has no sockets, files or messages: ids, names and lists go in,
``mockbroker.simulation.state.results`` come out. Nothing moves by itself: a replica joins the ISR
when ``join_isr`` is called, or at a tick of the virtual clock while auto-progress is on. Every
change is appended to ``log`` as a typed action, and replaying the log
(``mockbroker.simulation.state.cluster_state.replay``) gives the state again.

The server decides which broker received a request, who sent it and how long it may wait: it checks
``is_controller``, picks ``metadata_view(broker_id)``, and passes time in through ``advance``.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from kproto.znodes import EmbeddedStore, ZnodeStore, ZnodeTree
from kproto.znodes.kafka_znodes import broker_path
from mockbroker.errors import ClusterError
from mockbroker.simulation.brokers.auto_progress import AutoProgress
from mockbroker.simulation.brokers.inter_broker.broker_memory import BrokerMemory
from mockbroker.simulation.brokers.inter_broker.software_versions import newest_of, with_versions
from mockbroker.simulation.brokers.log_dir_steps import LogDirSteps
from mockbroker.simulation.brokers.steps import Steps
from mockbroker.simulation.brokers.turns import Turns
from mockbroker.simulation.clients.quotas.client_quotas import (
    Alteration,
    AlterationResult,
    ClientQuotas,
)
from mockbroker.simulation.clients.quotas.meters import QuotaMeters
from mockbroker.simulation.clients.quotas.throttling import Throttles
from mockbroker.simulation.clients.telemetry.receiver import Telemetry
from mockbroker.simulation.cluster_steps import ClusterSteps
from mockbroker.simulation.configs.answers import config_answers
from mockbroker.simulation.configs.changes import ConfigChanges
from mockbroker.simulation.configs.definitions import config_definitions
from mockbroker.simulation.configs.effective import EffectiveConfigs
from mockbroker.simulation.coordinators import znode_offsets
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.coordinators.offset_rules import OffsetToCommit
from mockbroker.simulation.coordinators.offset_store import FetchedOffset
from mockbroker.simulation.data_plane import DataPlane
from mockbroker.simulation.elections.answers import election_answers
from mockbroker.simulation.elections.elect import LeaderElections
from mockbroker.simulation.elections.partition_change import COMPLETION
from mockbroker.simulation.elections.queue import ElectionQueue, StartedElection
from mockbroker.simulation.features.feature_updates import FeatureResult, Features, FeatureUpdate
from mockbroker.simulation.features.quorum.voters import Outcome, Quorum
from mockbroker.simulation.features.release_features import features_of, with_levels
from mockbroker.simulation.log.cleaning.auto_retention import AutoRetention
from mockbroker.simulation.log.cleaning.record_deletion import Deletion, DeletionQuery
from mockbroker.simulation.log.log_events import MOST_EVENTS
from mockbroker.simulation.log.logs import DEFAULT_LOG_BYTES
from mockbroker.simulation.reassignment import keeps_znodes, reassignment_controller
from mockbroker.simulation.reassignment.identities import ReassignmentIdentity
from mockbroker.simulation.reassignment.partition_state import partition_state
from mockbroker.simulation.reassignment.reassignment_controller import HOOKED_CHANGES, Dependencies
from mockbroker.simulation.releases.release import NEWEST, Release, ReleaseNumber
from mockbroker.simulation.releases.rows import rows_of_release
from mockbroker.simulation.security import acls
from mockbroker.simulation.security.delegation_token_rules import TokenRequest
from mockbroker.simulation.security.delegation_tokens import DelegationTokens, TokenOffer
from mockbroker.simulation.security.scram_credentials import (
    CredentialChange,
    CredentialResult,
    ScramCredentials,
)
from mockbroker.simulation.state.actions import (
    BrokerRegistered,
    ControllerChanged,
    PartitionChanged,
)
from mockbroker.simulation.state.cluster_parts import (
    LOG_DIR,
    NO_CONTROLLER,
    Broker,
    DelegationToken,
    Partition,
    PartitionsByTopic,
    Topic,
    TopicPartition,
)
from mockbroker.simulation.state.cluster_state import ActionLog
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.metadata_views import MetadataView
from mockbroker.simulation.state.results import (
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
    ElectLeadersResult,
    ListReassignmentsResult,
    LogDir,
    NewTopic,
)
from mockbroker.simulation.topics import log_dirs
from mockbroker.simulation.topics.administration import (
    TakeQuota,
    TopicAdministration,
    fresh_cluster_id,
    no_quota,
)
from mockbroker.simulation.topics.answers import administration_answers

__all__ = ["Cluster", "ConfigOperation", "PartitionsByTopic", "ReassignmentRequest"]

ReassignmentRequest: TypeAlias = Sequence[tuple[str, Sequence[tuple[int, Sequence[int] | None]]]]
"""[(topic name, [(partition index, target broker ids or None to cancel)])]"""

ConfigOperation: TypeAlias = tuple[str, int, str | None]
"""(config name, operation: 0 SET, 1 DELETE, 2 APPEND, 3 SUBTRACT; value)"""


class Cluster(ClusterSteps):
    """N brokers, one controller, and topics. See the module's docstring for what it leaves out.

    ``brokers`` is a count (ids 1..N) or the brokers themselves; the lowest id is the controller.
    ``topics`` are texts (``parse_topic``) or (name, broker ids of each partition) pairs. ``now_ms``
    starts the virtual clock. ``broker_configs`` is the content of every broker's properties file,
    and ``own_broker_configs`` what single brokers' files have instead, by broker id. ``features``
    are levels of features that differ from those of a new cluster. ``new_topic_id`` lets a test fix
    the topic ids.

    ``reassignment`` is the kind of reassignment controller, one of
    ``mockbroker.simulation.reassignment.CONTROLLERS``. If that kind uses ZooKeeper, ``znodes`` is
    its session; None gives it a ZooKeeper of its own in this process, whose last zxid is ``zxid``.

    ``newest`` is the highest version of each request between brokers that the cluster's software
    knows (``inter_broker.software_versions``); a broker's own ranges override it.

    ``elections`` is how ElectLeaders is answered, one of
    ``mockbroker.simulation.elections.answers.DESIGNS``; None is the one of ``reassignment``. With
    ``busy_elections_fail``, KIP-183's other reading, a request fails with error 7 while another
    election is enqueued. ``config_release`` is the release whose configs and rules apply, or its
    number.

    ``log_bytes`` bounds the records that the cluster holds; past it the oldest go. ``data_actions``
    bounds the events of logs. With ``auto_retention_ms`` retention runs by itself at this interval.
    ``virtual_waits``: requests wait for records and replicas by the virtual clock. With
    ``cut_last_batch`` the limits of a fetch may cut its last batch.

    Raises ClusterError for an invalid description.
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
        own_broker_configs: Mapping[int, Mapping[str, str]] = MappingProxyType({}),
        features: Mapping[str, int] = MappingProxyType({}),
        new_topic_id: Callable[[], uuid.UUID] = uuid.uuid4,
        reassignment: str = "kraft",
        elections: str | None = None,
        busy_elections_fail: bool = False,
        config_release: Release | ReleaseNumber = NEWEST,
        znodes: ZnodeStore | None = None,
        zxid: int = 0,
        newest: Mapping[int, int] | None = None,
        log_bytes: int = DEFAULT_LOG_BYTES,
        data_actions: int = MOST_EVENTS,
        auto_retention_ms: int | None = None,
        virtual_waits: bool = False,
        cut_last_batch: bool = False,
        machine: str | None = None,
    ) -> None:
        if machine is not None:
            _warn_of_former_name("machine", "reassignment")
            reassignment = machine
        release = config_release if isinstance(config_release, Release) else Release(config_release)
        in_zookeeper = keeps_znodes(reassignment)
        if znodes is None and in_zookeeper:
            znodes = EmbeddedStore(
                ZnodeTree(now_ms=now_ms, zxid=zxid), lambda: controller.timers.now_ms
            )
        completion = () if in_zookeeper else rows_of_release(COMPLETION, release)
        controller = Controller(
            cluster_id or fresh_cluster_id(),
            broker_configs,
            now_ms,
            own_configs=own_broker_configs,
            store=znodes if in_zookeeper else None,
        )
        self._configs = EffectiveConfigs(controller.state, config_definitions(release))
        log_dirs.ReplicaPlacement(controller)
        known_features = with_levels(() if in_zookeeper else features_of(release), features)
        self.features = Features(controller, known_features, release)
        """The features and their finalized levels."""
        DataPlane.__init__(
            self,
            controller,
            self._configs,
            release,
            self._change_partition,
            self.features.level,
            log_bytes=log_bytes,
            data_actions=data_actions,
            virtual_waits=virtual_waits,
            cut_last_batch=cut_last_batch,
        )
        self.throttles = Throttles(release)
        """The clients that a tester has throttled."""
        self.quotas = ClientQuotas(controller, release)
        """The quotas of clients; ``alter_client_quotas`` changes them."""
        self.quotas.on_changed.append(lambda: self.throttles.expect_quotas(self.quotas.any))
        self.meters = QuotaMeters(
            self.quotas, lambda: controller.now_ms, release, kraft=not in_zookeeper
        )
        """What clients use of their quotas."""
        self.telemetry = Telemetry(controller, self._configs, release)
        """The metrics that clients push."""
        self.scram = ScramCredentials(controller, release)
        """The SCRAM credentials; ``alter_scram_credentials`` changes them."""
        self.tokens = DelegationTokens(
            controller,
            self._configs,
            release,
            lambda: self.features.level("metadata.version"),
        )
        """The delegation tokens; ``create_token``, ``renew_token`` and ``expire_token`` change
        them."""
        self.quorum = Quorum(controller, self.features.level)
        """The voters of the metadata quorum."""
        kraft = not in_zookeeper
        self._config_changes = ConfigChanges(
            controller, self._configs, config_answers(release, kraft=kraft), release
        )
        self._topics = TopicAdministration(
            controller,
            administration_answers(release, kraft=kraft),
            self._configs,
            self._config_changes,
            new_topic_id,
        )
        self._leader_elections = LeaderElections(
            controller,
            election_answers(elections or ("kraft" if kraft else "zookeeper"), release),
            completion,
            self._change_partition,
            self._after_election,
        )
        queue = ElectionQueue(controller, self._leader_elections, busy_is_error=busy_elections_fail)
        reassignments = reassignment_controller(
            reassignment,
            Dependencies(
                controller,
                self._configs,
                self._topics,
                queue,
                completion,
                release,
                lambda to, cause: self._steps.move_controller(to, cause),
                lambda cause, broker_id: self._log_dirs.report(cause, broker_id),
            ),
        )
        steps = Steps(controller, reassignments, self._configs, completion, self._change_partition)
        Turns.__init__(self, controller, reassignments, queue, steps)
        self._log_dirs = LogDirSteps(controller, steps, release)
        self._auto_progress = AutoProgress(controller, steps)
        self._memories: dict[int, tuple[int, BrokerMemory]] = {}
        if in_zookeeper:
            versions = newest_of(reassignment) if newest is None else newest
            controller.complete_request = partial(with_versions, controller.state, versions)
            controller.add_hooks(
                HOOKED_CHANGES,
                before=reassignments.store,
                after=reassignments.announce,
            )
        self._register([self._with_log_dirs(each) for each in _broker_list(brokers)])
        for broker_id in own_broker_configs:
            controller.broker(broker_id)
        reassignments.start()
        for topic in topics:
            self.add_topic(topic)
        if auto_progress_ms is not None:
            self.set_auto_progress(auto_progress_ms)
        if auto_retention_ms is not None:
            AutoRetention(controller, self.logs, auto_retention_ms)

    def _register(self, brokers: Sequence[Broker]) -> None:
        for broker in brokers:
            self._controller.record("start", BrokerRegistered(broker))
        live = self._controller.live_ids()
        first = live[0] if live else brokers[0].broker_id
        epoch = self._reassignment.last_epoch() + 1
        self._controller.record("start", ControllerChanged(NO_CONTROLLER, first, epoch))

    def _with_log_dirs(self, broker: Broker) -> Broker:
        text = self._state.static_config(broker.broker_id, "log.dirs")
        if text is None or broker.log_dirs != (LOG_DIR,):
            return broker
        named = tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))
        if not named:
            raise ClusterError("log.dirs names no directory")
        return replace(broker, log_dirs=named)

    def unknown_configs(self) -> list[str]:
        """Return the static configs of brokers that the mock does not define, sorted."""
        return sorted(self._static_names() - self._configs.definitions.broker.keys())

    def unread_configs(self) -> list[str]:
        """Return the static configs of brokers that the release has and no rule reads, sorted."""
        known = self._configs.definitions.broker
        return sorted(
            name for name in self._static_names() if name in known and not known[name].is_read
        )

    def _static_names(self) -> set[str]:
        return set(self._state.static_configs).union(*self._state.own_configs.values())

    def _change_partition(self, cause: str, topic: str, after: Partition) -> None:
        """Change a partition the way the controller does, unless nothing changes."""
        before = self._controller.partition((topic, after.index))
        if after != before:
            change = PartitionChanged(topic, before, after)
            self._reassignment.change_partition(cause, change)

    def _after_election(self, cause: str, tp: TopicPartition) -> None:
        self._reassignment.after_election(cause, tp)

    # ---- facts -----------------------------------------------------------------------------------

    @property
    def cluster_id(self) -> str:
        """The cluster id: a UUID in URL-safe base64, 22 characters."""
        return self._state.cluster_id

    @property
    def log(self) -> ActionLog:
        """The action log: everything that happened, oldest first."""
        return self._controller.log

    @property
    def now_ms(self) -> int:
        """The virtual clock, in milliseconds."""
        return self._controller.now_ms

    @property
    def controller_id(self) -> int:
        """The id of the controller. In KRaft mode it stays when every broker is stopped; in
        ZooKeeper mode it is -1 while there is none."""
        return self._state.controller_id

    @property
    def controller_epoch(self) -> int:
        """The epoch of the controller, which rises with each new one."""
        return self._state.controller_epoch

    @property
    def brokers(self) -> Mapping[int, Broker]:
        """All registered brokers, live or not, by id ascending."""
        return MappingProxyType(self._state.brokers)

    @property
    def topics(self) -> Mapping[str, Topic]:
        """All topics by name, as the controller knows them."""
        return MappingProxyType(self._state.topics)

    @property
    def auto_progress_ms(self) -> int | None:
        """The interval of auto-progress; None when it is off."""
        return self._state.auto_progress_ms

    @property
    def next_tick_ms(self) -> int | None:
        """The next tick of auto-progress on the virtual clock; None when it is off."""
        return self._auto_progress.next_tick_ms

    def broker_epoch(self, broker_id: int) -> int:
        """Return the czxid of the broker's znode, which differs after each start; -1 without
        one."""
        stat = self._state.znode_stats.get(broker_path(broker_id))
        return -1 if stat is None else stat.czxid

    def memory(self, broker_id: int) -> BrokerMemory:
        """Return what this broker received from controllers since it started; not in the log."""
        epoch = self.broker_epoch(broker_id)
        kept = self._memories.get(broker_id)
        if kept is None or kept[0] != epoch:
            kept = self._memories[broker_id] = (epoch, BrokerMemory())
        return kept[1]

    def is_controller(self, broker_id: int) -> bool:
        """Return whether this broker is the controller."""
        return self._state.controller_id == broker_id

    def broker(self, broker_id: int) -> Broker:
        """Return a registered broker. Raises UnknownBrokerError."""
        return self._controller.broker(broker_id)

    def partition(self, topic: str, index: int) -> Partition:
        """Return a partition. Raises UnknownPartitionError."""
        return self._controller.partition((topic, index))

    def metadata_view(self, broker_id: int) -> MetadataView:
        """Return the view that this broker answers Metadata (3), DescribeTopicPartitions (75) and
        DescribeCluster (60) from: current, held, or delayed by ``propagation_ms``.

        ``view.offset`` changes whenever the content may have changed, so it serves as a cache key.
        """
        return self._state.view(broker_id, self._controller.timers.now_ms)

    def state(self) -> dict[str, Any]:
        """Return the object of ``mockbroker ctl URL state --json``."""
        return {
            "controller": self.controller_id,
            "controller_epoch": self.controller_epoch,
            "brokers": {str(each.broker_id): self._shown(each) for each in self.brokers.values()},
            "topics": {
                name: {str(p.index): partition_state(p) for p in topic.partitions}
                for name, topic in sorted(self.topics.items())
            },
        }

    def _shown(self, broker: Broker) -> dict[str, Any]:
        failed = self._state.replica_dirs.failed.get(broker.broker_id)
        shown: dict[str, Any] = {"live": broker.live}
        return shown if failed is None else {**shown, "failed_log_dirs": sorted(failed)}

    # ---- reassignments (45, 46) ------------------------------------------------------------------

    def alter_partition_reassignments(
        self, topics: ReassignmentRequest, *, allow_replication_factor_change: bool = True
    ) -> AlterReassignmentsResult:
        """Start, change or (None) cancel reassignments: one result per requested partition."""
        with self._acting(by_controller=True):
            return self._reassignment.alter(
                topics,
                allow_replication_factor_change=allow_replication_factor_change,
            )

    def list_partition_reassignments(
        self, topics: PartitionsByTopic | None
    ) -> ListReassignmentsResult:
        """List reassignments; None lists all. Unknown and idle partitions are omitted."""
        with self.turn(by_controller=True):
            return self._reassignment.list_ongoing(topics)

    def reassignment_identities(self) -> Mapping[TopicPartition, ReassignmentIdentity]:
        """Return the identity (KIP-240) of every reassignment in progress, in order."""
        return self._reassignment.identities()

    def replication_throttle(self, side: str, tp: TopicPartition, broker_id: int) -> int:
        """As ``EffectiveConfigs.replication_throttle``."""
        return self._configs.replication_throttle(side, tp, broker_id)

    # ---- elections (43) --------------------------------------------------------------------------

    def elect_leaders(
        self, election_type: int, topics: PartitionsByTopic | None
    ) -> ElectLeadersResult:
        """Elect leaders without waiting. ``election_type`` 0 is preferred, 1 unclean; ``topics``
        None means every partition. Elections that are still pending have error 7."""
        started = self.start_election(election_type, topics, timeout_ms=0)
        assert started.result is not None, "the time-out has passed"
        return started.result

    def start_election(
        self,
        election_type: int,
        topics: PartitionsByTopic | None,
        *,
        broker_id: int | None = None,
        timeout_ms: int = 60_000,
    ) -> StartedElection:
        """As ``elect_leaders``, but the result may be set later: when the broker that received the
        request (None is the controller) knows the new leaders, or after ``timeout_ms`` of the
        virtual clock.
        """
        refusal = self.unknown_election_type(election_type, topics)
        if refusal is not None:
            return StartedElection.refused(refusal)
        receiver = self._state.controller_id if broker_id is None else broker_id
        requested = self._leader_elections.every_partition(receiver) if topics is None else topics
        with self._acting(by_controller=True):
            return self._elections.start(
                election_type, requested, topics is None, receiver, timeout_ms
            )

    def unknown_election_type(
        self, election_type: int, topics: PartitionsByTopic | None
    ) -> ElectLeadersResult | None:
        """Return the refusal of an unknown election type; None for a known one."""
        return self._leader_elections.unknown_type(election_type, topics)

    def refused_elections(
        self, topics: PartitionsByTopic | None, broker_id: int, code: int
    ) -> ElectLeadersResult:
        """Return a result with this error code for every partition that the broker knows."""
        requested = self._leader_elections.every_partition(broker_id) if topics is None else topics
        return self._leader_elections.refused(requested, code)

    def withdraw_election(self, started: StartedElection) -> None:
        """Drop an election whose client disconnected, unless it is already enqueued."""
        self._elections.withdraw(started)

    # ---- topics (19, 20, 37) ---------------------------------------------------------------------

    def create_topics(
        self,
        topics: Sequence[NewTopic],
        *,
        validate_only: bool = False,
        wait_ms: int = 60_000,
        take_quota: TakeQuota = no_quota,
    ) -> tuple[CreateTopicResult, ...]:
        """Create topics. Replicas start at broker p mod N, not at a random one.

        ``wait_ms`` is the time-out of the request, which only matters if it is 0 or less.
        """
        with self._acting(by_controller=True):
            return self._topics.create(
                topics, validate_only=validate_only, wait_ms=wait_ms, take_quota=take_quota
            )

    def auto_create_topic(self, name: str) -> int:
        """Create an unknown topic that Metadata requests; return the error code to answer.

        The code is 3 after creating the topic, as from a KRaft broker that does not know it yet, 17
        for an invalid name, and 3 without creating it unless ``auto.create.topics.enable`` is set.
        """
        enabled = self.broker_config(self.controller_id, "auto.create.topics.enable").value
        if enabled == "true":
            (result,) = self.create_topics([NewTopic(name)])
            if result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION:
                return result.error_code
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def delete_topics(
        self,
        topics: Sequence[tuple[str | None, uuid.UUID]],
        *,
        wait_ms: int = 60_000,
        take_quota: TakeQuota = no_quota,
    ) -> tuple[DeleteTopicResult, ...]:
        """Delete topics, given as (name, zero uuid) or (None, id)."""
        with self._acting(by_controller=True):
            return self._topics.delete(topics, wait_ms=wait_ms, take_quota=take_quota)

    def create_partitions(
        self,
        topics: Sequence[tuple[str, int, Sequence[Sequence[int]] | None]],
        *,
        validate_only: bool = False,
        wait_ms: int = 60_000,
        take_quota: TakeQuota = no_quota,
    ) -> tuple[CreatePartitionsResult, ...]:
        """Add partitions. Rows are (name, new total count, None or broker ids of each)."""
        with self._acting(by_controller=True):
            return self._topics.add_partitions(
                topics, validate_only=validate_only, wait_ms=wait_ms, take_quota=take_quota
            )

    def remove_topic(self, name: str) -> None:
        """Delete a topic as DeleteTopics does. Raises ClusterError if that is refused."""
        (result,) = self.delete_topics([(name, uuid.UUID(int=0))])
        if result.error_code:
            raise ClusterError(f"{name!r} was not deleted: {result.error_message}")

    def add_partitions(self, name: str, count: int) -> None:
        """Raise a topic's partitions to ``count``, as CreatePartitions does. Raises ClusterError if
        that is refused."""
        (result,) = self.create_partitions([(name, count, None)])
        if result.error_code:
            raise ClusterError(f"{name!r} has no {count} partitions: {result.error_message}")

    # ---- coordinators (10) -----------------------------------------------------------------------

    def find_coordinator(
        self,
        kind: CoordinatorKind,
        key: str,
        broker_id: int,
        *,
        view: MetadataView | None = None,
    ) -> Broker | None:
        """Return the coordinator of a key as this broker knows it; None while there is none.

        The first call for a kind creates its internal topic and returns None, as Kafka does.
        ``view`` is the broker's metadata at the beginning of the request, by default the present.
        """
        if not self.coordinators.exists(kind):
            return None
        if view is None:
            view = self.metadata_view(broker_id)
        new = self.coordinators.new_topic(kind)
        if new.name in view.topics:
            return self.coordinators.find(view, kind, key)
        if new.name not in self._state.topics and self.controller_id != NO_CONTROLLER:
            self.create_topics([new])
        return None

    @property
    def keeps_znodes(self) -> bool:
        """Whether the cluster stores its state in ZooKeeper."""
        return self._controller.keeps_znodes

    def commit_to_zookeeper(
        self, group_id: str, tp: TopicPartition, commit: OffsetToCommit
    ) -> ErrorCode:
        """Store an offset as version 0 of OffsetCommit (8) does, and return its error."""
        code = self.offsets.metadata_error(commit.metadata)
        if code:
            return code
        with self._in_zookeeper(), self._acting():
            return znode_offsets.write_offset(self._controller.znodes, group_id, tp, commit.offset)

    def offset_in_zookeeper(
        self, broker_id: int, group_id: str, tp: TopicPartition
    ) -> FetchedOffset:
        """Read an offset as version 0 of OffsetFetch (9) does."""
        topic = self.metadata_view(broker_id).topics.get(tp[0])
        if topic is None or topic.partition(tp[1]) is None:
            return FetchedOffset(tp, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        with self._in_zookeeper(), self.turn():
            return znode_offsets.read_offset(self._controller.znodes, group_id, tp)

    # ---- records (21) ----------------------------------------------------------------------------

    def delete_records(self, query: DeletionQuery) -> Deletion:
        """As ``RecordDeletions.delete``."""
        with self._acting():
            return self.deletions.delete(query)

    # ---- configs (32, 44), log dirs (35), ACLs (29, 30, 31) --------------------------------------

    def describe_configs(
        self,
        resource_type: int,
        resource_name: str,
        names: Sequence[str] | None = None,
        *,
        receiver: int | None = None,
        asked_broker: int | None = None,
    ) -> DescribeConfigsResult:
        """Describe the configs of a topic (``resource_type`` 2) or a broker (4; the name "" is the
        cluster-wide default). ``names`` None describes all.

        A broker refuses to describe another broker: ``receiver`` is the broker that received the
        request, or None to skip that check.
        """
        if asked_broker is not None:
            text = (
                "asked_broker is deprecated and will be removed in the next release; use receiver"
            )
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            receiver = asked_broker
        return self._configs.describe(resource_type, resource_name, names, receiver=receiver)

    def incremental_alter_configs(
        self,
        resources: Sequence[tuple[int, str, Sequence[ConfigOperation]]],
        *,
        validate_only: bool = False,
    ) -> tuple[AlterConfigsResult, ...]:
        """Change each resource (type, name, operations) entirely or not at all."""
        with self._acting():
            return self._config_changes.alter_incrementally(resources, validate_only=validate_only)

    def replace_configs(
        self,
        resources: Sequence[tuple[int, str, Sequence[ConfigOperation]]],
        *,
        validate_only: bool = False,
    ) -> tuple[AlterConfigsResult, ...]:
        """As ``incremental_alter_configs``; configs without an operation are deleted."""
        with self._acting():
            return self._config_changes.replace(resources, validate_only=validate_only)

    def topic_config(self, topic: str, name: str) -> ConfigEntry:
        """Return an effective topic config. Raises ClusterError for an unknown config."""
        if name not in self._configs.definitions.topic:
            raise ClusterError(f"there is no topic config {name!r}")
        return self._configs.topic(topic, name)

    def broker_config(self, broker_id: int, name: str) -> ConfigEntry:
        """Return an effective broker config. Raises ClusterError for an unknown config."""
        if name not in self._configs.definitions.broker:
            raise ClusterError(f"there is no broker config {name!r}")
        return self._configs.broker(broker_id, name)

    @property
    def has_group_configs(self) -> bool:
        """Whether groups have configs in this release."""
        return bool(self._configs.definitions.group)

    @property
    def has_client_metrics(self) -> bool:
        """Whether this release has subscriptions to clients' metrics (KIP-714)."""
        return bool(self._configs.definitions.client_metrics)

    def describe_log_dirs(
        self, broker_id: int, topics: PartitionsByTopic | None
    ) -> tuple[LogDir, ...]:
        """Return the log directories of a broker with the requested replicas; None requests all."""
        size_of = partial(self.logs.replica_size, broker_id)
        return log_dirs.describe(self._state, broker_id, topics, size_of)

    def move_replica(self, broker_id: int, tp: TopicPartition, directory: str) -> ErrorCode:
        """Move a broker's replica into a log directory and return the error."""
        with self._acting():
            return log_dirs.move(self._controller, broker_id, tp, directory)

    @property
    def acls(self) -> Collection[AclBinding]:
        """All access rules, oldest first."""
        return self._state.acls.keys()

    def create_acls(self, bindings: Sequence[AclBinding]) -> tuple[CreateAclResult, ...]:
        """Store access rules, which ``security.authorizer`` reads: one result per rule."""
        with self._acting():
            return acls.create(self._controller, bindings)

    def describe_acls(self, acl_filter: AclFilter) -> DescribeAclsResult:
        """Return the rules that a filter matches, in a fixed order."""
        return acls.describe(self._state, acl_filter)

    def delete_acls(self, filters: Sequence[AclFilter]) -> tuple[DeleteAclsResult, ...]:
        """Delete the rules that each filter matches: one result per filter, with its rules."""
        with self._acting():
            return acls.delete(self._controller, filters)

    # ---- quotas (48, 49) and SCRAM credentials (50, 51) ----------------------------------------

    def alter_client_quotas(
        self, alterations: Sequence[Alteration], *, validate_only: bool = False
    ) -> list[AlterationResult]:
        """As ``ClientQuotas.alter``."""
        with self._acting():
            return self.quotas.alter(alterations, validate_only=validate_only)

    def alter_scram_credentials(
        self, deletions: Sequence[CredentialChange], upsertions: Sequence[CredentialChange]
    ) -> list[CredentialResult]:
        """As ``ScramCredentials.alter``."""
        with self._acting():
            return self.scram.alter(deletions, upsertions)

    # ---- delegation tokens (38 to 41) ----------------------------------------------------------

    def create_token(
        self, offer: TokenOffer, *, allowed: bool, authorized: bool
    ) -> tuple[TokenRequest, DelegationToken | None]:
        """As ``DelegationTokens.create``."""
        with self._acting():
            return self.tokens.create(offer, allowed=allowed, authorized=authorized)

    def renew_token(
        self, password: bytes, caller: str, period_ms: int, *, allowed: bool
    ) -> TokenRequest:
        """As ``DelegationTokens.renew``."""
        with self._acting():
            return self.tokens.renew(password, caller, period_ms, allowed=allowed)

    def expire_token(
        self, password: bytes, caller: str, period_ms: int, *, allowed: bool
    ) -> TokenRequest:
        """As ``DelegationTokens.expire``."""
        with self._acting():
            return self.tokens.expire(password, caller, period_ms, allowed=allowed)

    # ---- features and the quorum (57, 64, 80, 81, 94) ------------------------------------------

    def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False
    ) -> tuple[FeatureResult, ...]:
        """As ``Features.update``."""
        with self._acting(by_controller=True):
            return self.features.update(updates, validate_only=validate_only)

    def unregister_broker(self, broker_id: int) -> Outcome:
        """Remove a broker's registration. It has none until it starts again."""
        if not self._state.is_registered(broker_id):
            return Outcome(
                ErrorCode.BROKER_ID_NOT_REGISTERED,
                f"Broker ID {broker_id} is not currently registered",
            )
        with self._acting():
            self._steps.unregister_broker(broker_id)
        return Outcome()

    def add_voter(
        self,
        cluster_id: str | None,
        voter_id: int,
        directory_id: uuid.UUID,
        listeners: Sequence[tuple[str, str, int]],
    ) -> Outcome:
        """Add a voter to the metadata quorum, without contacting it."""
        with self._acting():
            return self.quorum.add_voter(cluster_id, voter_id, directory_id, listeners)

    def remove_voter(
        self, cluster_id: str | None, voter_id: int, directory_id: uuid.UUID
    ) -> Outcome:
        """Remove a voter from the metadata quorum."""
        with self._acting():
            return self.quorum.remove_voter(cluster_id, voter_id, directory_id)


def _warn_of_former_name(former: str, name: str) -> None:
    text = f"{former} is deprecated and will be removed in the next release; use {name}"
    warnings.warn(text, DeprecationWarning, stacklevel=3)


def _broker_list(brokers: int | Iterable[Broker]) -> list[Broker]:
    if isinstance(brokers, int):
        brokers = [Broker(broker_id) for broker_id in range(1, brokers + 1)]
    listed = sorted(brokers, key=lambda broker: broker.broker_id)
    ids = [broker.broker_id for broker in listed]
    if not ids:
        raise ClusterError("a cluster needs at least one broker")
    if len(set(ids)) != len(ids) or ids[0] < 0:
        raise ClusterError(f"broker ids must be distinct and not negative, not {ids}")
    return listed
