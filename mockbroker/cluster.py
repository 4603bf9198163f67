"""The simulated cluster: one facade over its state, its rules and its controls.

No sockets, no files, no messages: ids, names and lists in, ``mockbroker.results`` out. Nothing
moves by itself: a replica joins the ISR when ``join_isr`` says so, or at a tick of the virtual
clock while auto-progress is on. Every change is appended to ``log`` as a typed action, and
replaying the log gives the state again.

Which broker was asked, who is asking and how long they wait is the server's business: it checks
``is_controller``, picks ``metadata_view(broker_id)``, and passes time in through ``advance``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from mockbroker.model import Broker, Partition, Topic, TopicPartition
from mockbroker.results import (
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
    DescribeConfigsResult,
    ElectLeadersResult,
    ListReassignmentsResult,
    LogDir,
    NewTopic,
)

if TYPE_CHECKING:
    from mockbroker.actions import ActionLog
    from mockbroker.metadata_views import MetadataView

__all__ = ["Cluster"]

ReassignmentRequest: TypeAlias = Sequence[tuple[str, Sequence[tuple[int, Sequence[int] | None]]]]
"""[(topic name, [(partition index, target broker ids, or None to cancel)])]"""

PartitionsByTopic: TypeAlias = Sequence[tuple[str, Sequence[int]]]
"""[(topic name, [partition index])]"""

ConfigOperation: TypeAlias = tuple[str, int, str | None]
"""(config name, operation: 0 SET, 1 DELETE, 2 APPEND, 3 SUBTRACT; value)"""


class Cluster:
    """N brokers, one controller, topics; see the module's docstring for what it refuses to know.

    ``brokers`` is a count (ids 1..N) or the brokers themselves; ``topics`` are ``--topic`` texts
    (see ``parse_topic``) or (name, assignment) pairs. ``now_ms`` starts the virtual clock.
    ``new_topic_id`` exists so that a test can fix the ids.
    """

    def __init__(
        self,
        brokers: int | Iterable[Broker] = 3,
        *,
        cluster_id: str | None = None,
        topics: Iterable[str | tuple[str, Sequence[Sequence[int]]]] = (),
        now_ms: int = 0,
        auto_progress_ms: int | None = None,
        new_topic_id: Callable[[], uuid.UUID] = uuid.uuid4,
    ) -> None:
        raise NotImplementedError

    # ---- facts -------------------------------------------------------------------------------

    cluster_id: str
    log: ActionLog

    @property
    def now_ms(self) -> int:
        """The virtual clock, in milliseconds."""
        raise NotImplementedError

    @property
    def controller_id(self) -> int:
        raise NotImplementedError

    @property
    def controller_epoch(self) -> int:
        raise NotImplementedError

    @property
    def brokers(self) -> Mapping[int, Broker]:
        """Every registered broker by id, live or not, ids ascending."""
        raise NotImplementedError

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The controller's own, always current, view."""
        raise NotImplementedError

    def is_controller(self, broker_id: int) -> bool:
        raise NotImplementedError

    def broker(self, broker_id: int) -> Broker:
        """Raises UnknownBrokerError."""
        raise NotImplementedError

    def partition(self, topic: str, index: int) -> Partition:
        """Raises UnknownPartitionError."""
        raise NotImplementedError

    def set_endpoint(self, broker_id: int, host: str, port: int) -> None:
        """Where Metadata and DescribeCluster send clients for this broker."""
        raise NotImplementedError

    def metadata_view(self, broker_id: int) -> MetadataView:
        """What this broker would answer to Metadata (3), DescribeTopicPartitions (75) and
        DescribeCluster (60): current, or as of ``hold_metadata``. ``view.offset`` changes whenever
        the content may have: use it as a cache key."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """The object of ``mockbroker ctl URL state --json``."""
        raise NotImplementedError

    # ---- reassignments and elections (45, 46, 43) ----------------------------------------------

    def alter_partition_reassignments(
        self, topics: ReassignmentRequest, *, allow_replication_factor_change: bool = True
    ) -> AlterReassignmentsResult:
        raise NotImplementedError

    def list_partition_reassignments(
        self, topics: PartitionsByTopic | None
    ) -> ListReassignmentsResult:
        """None lists everything; unknown and idle partitions are omitted."""
        raise NotImplementedError

    def elect_leaders(
        self, election_type: int, topics: PartitionsByTopic | None
    ) -> ElectLeadersResult:
        """``election_type`` 0 is preferred, 1 unclean; None means every partition."""
        raise NotImplementedError

    # ---- topics (19, 20, 37) -------------------------------------------------------------------

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> tuple[CreateTopicResult, ...]:
        raise NotImplementedError

    def auto_create_topic(self, name: str) -> int:
        """What Metadata does about an unknown topic when it may create it: the error code to
        answer this time (3 after creating it, as a KRaft broker does; 17 for a bad name)."""
        raise NotImplementedError

    def delete_topics(
        self, topics: Sequence[tuple[str | None, uuid.UUID]]
    ) -> tuple[DeleteTopicResult, ...]:
        """(name, zero uuid) by name, (None, id) by id."""
        raise NotImplementedError

    def create_partitions(
        self,
        topics: Sequence[tuple[str, int, Sequence[Sequence[int]] | None]],
        *,
        validate_only: bool = False,
    ) -> tuple[CreatePartitionsResult, ...]:
        """(name, new total count, None or one assignment for each new partition)"""
        raise NotImplementedError

    # ---- configs (32, 44), log dirs (35), ACLs (29, 30, 31) -------------------------------------

    def describe_configs(
        self, resource_type: int, resource_name: str, names: Sequence[str] | None = None
    ) -> DescribeConfigsResult:
        """``resource_type`` 2 topic, 4 broker ("" is the cluster-wide default); None = all."""
        raise NotImplementedError

    def incremental_alter_configs(
        self,
        resources: Sequence[tuple[int, str, Sequence[ConfigOperation]]],
        *,
        validate_only: bool = False,
    ) -> tuple[AlterConfigsResult, ...]:
        raise NotImplementedError

    def topic_config(self, topic: str, name: str) -> ConfigEntry:
        """One effective topic config."""
        raise NotImplementedError

    def broker_config(self, broker_id: int, name: str) -> ConfigEntry:
        """One effective broker config."""
        raise NotImplementedError

    def describe_log_dirs(
        self, broker_id: int, topics: PartitionsByTopic | None
    ) -> tuple[LogDir, ...]:
        """The directories of this broker, with the replicas asked for (None = all)."""
        raise NotImplementedError

    def create_acls(self, bindings: Sequence[AclBinding]) -> tuple[CreateAclResult, ...]:
        raise NotImplementedError

    def describe_acls(self, acl_filter: AclFilter) -> tuple[AclBinding, ...]:
        raise NotImplementedError

    def delete_acls(self, filters: Sequence[AclFilter]) -> tuple[DeleteAclsResult, ...]:
        raise NotImplementedError

    # ---- controls ------------------------------------------------------------------------------

    def join_isr(self, tp: TopicPartition, broker_id: int) -> Partition:
        """The replica has caught up. Raises ClusterError if it is no replica or not live."""
        raise NotImplementedError

    def leave_isr(self, tp: TopicPartition, broker_id: int) -> Partition:
        """The replica fell behind. Raises ClusterError for the leader and for a non-member."""
        raise NotImplementedError

    def stop_broker(self, broker_id: int) -> None:
        raise NotImplementedError

    def start_broker(self, broker_id: int) -> None:
        raise NotImplementedError

    def failover(self, to: int) -> None:
        """Another live broker becomes the controller; the controller epoch rises by one."""
        raise NotImplementedError

    def hold_metadata(self, broker_id: int) -> None:
        """From now on this broker answers from what it knows at this moment."""
        raise NotImplementedError

    def release_metadata(self, broker_id: int) -> None:
        raise NotImplementedError

    def advance(self, milliseconds: int) -> None:
        """Let time pass; ticks of auto-progress that fall due happen, in order."""
        raise NotImplementedError

    def set_auto_progress(self, interval_ms: int | None) -> None:
        """One replica joins an ISR every ``interval_ms`` from now on; None switches it off."""
        raise NotImplementedError
