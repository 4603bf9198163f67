"""Results of requests as plain values: error codes, texts, names and lists.

Each class uses the terms of the response that it becomes; ``mockbroker.apis`` turns it into a
message of some version. ``error_message`` is None where Kafka sends null.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import msgspec

from kproto.schema.model import ZERO_UUID

__all__ = [
    "AclBinding",
    "AclFilter",
    "AlterConfigsResult",
    "AlterReassignmentsResult",
    "ConfigEntry",
    "ConfigSynonym",
    "CreateAclResult",
    "CreatePartitionsResult",
    "CreateTopicResult",
    "DeleteAclsResult",
    "DeleteTopicResult",
    "DescribeAclsResult",
    "DescribeConfigsResult",
    "ElectLeadersResult",
    "ListReassignmentsResult",
    "LogDir",
    "LogDirReplica",
    "NewTopic",
    "OngoingReassignment",
    "OngoingTopic",
    "PartitionResult",
    "TopicResult",
]


class PartitionResult(msgspec.Struct, frozen=True):
    """The result of one requested partition (43, 45)."""

    partition_index: int
    error_code: int = 0
    error_message: str | None = None


class TopicResult(msgspec.Struct, frozen=True):
    """A requested topic and the results of its partitions, in request order."""

    name: str
    partitions: tuple[PartitionResult, ...]


class AlterReassignmentsResult(msgspec.Struct, frozen=True):
    """AlterPartitionReassignments (45). ``error_message`` is "" for an empty request."""

    error_code: int
    error_message: str | None
    allow_replication_factor_change: bool
    topics: tuple[TopicResult, ...]


class OngoingReassignment(msgspec.Struct, frozen=True):
    partition_index: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


class OngoingTopic(msgspec.Struct, frozen=True):
    name: str
    partitions: tuple[OngoingReassignment, ...]


class ListReassignmentsResult(msgspec.Struct, frozen=True):
    """ListPartitionReassignments (46)."""

    error_code: int
    error_message: str | None
    topics: tuple[OngoingTopic, ...]


class ElectLeadersResult(msgspec.Struct, frozen=True):
    """ElectLeaders (43). The top-level error code exists from version 1."""

    error_code: int
    topics: tuple[TopicResult, ...]


class NewTopic(msgspec.Struct, frozen=True):
    """A topic to create (19). -1 means the broker's default (KIP-464).

    ``assignments`` pairs a partition index with its broker ids; when given, the two counts are -1.
    ``configs`` pairs a config name with its value.
    """

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    configs: tuple[tuple[str, str | None], ...] = ()


class ConfigSynonym(msgspec.Struct, frozen=True):
    name: str
    value: str | None
    source: int


class ConfigEntry(msgspec.Struct, frozen=True):
    """One config of DescribeConfigs. ``source`` and ``config_type`` are the wire's numbers.

    ``synonyms`` is always filled; the handler omits them unless they are requested.
    """

    name: str
    value: str | None
    read_only: bool
    source: int
    sensitive: bool
    config_type: int
    documentation: str | None
    synonyms: tuple[ConfigSynonym, ...] = ()

    @property
    def is_default(self) -> bool:
        """Whether the value is a default: version 0 of DescribeConfigs has this instead of a
        source."""
        return self.source == 5


class CreateTopicResult(msgspec.Struct, frozen=True):
    name: str
    error_code: int = 0
    error_message: str | None = None
    topic_id: uuid.UUID = ZERO_UUID
    num_partitions: int = -1
    replication_factor: int = -1
    configs: tuple[ConfigEntry, ...] = ()


class DeleteTopicResult(msgspec.Struct, frozen=True):
    """The result of one topic (20). ``name`` is None if the requested id does not exist."""

    name: str | None
    topic_id: uuid.UUID
    error_code: int = 0
    error_message: str | None = None


class CreatePartitionsResult(msgspec.Struct, frozen=True):
    name: str
    error_code: int = 0
    error_message: str | None = None


class DescribeConfigsResult(msgspec.Struct, frozen=True):
    resource_type: int
    resource_name: str
    error_code: int = 0
    error_message: str | None = None
    configs: tuple[ConfigEntry, ...] = ()


class AlterConfigsResult(msgspec.Struct, frozen=True):
    resource_type: int
    resource_name: str
    error_code: int = 0
    error_message: str | None = None


class LogDirReplica(msgspec.Struct, frozen=True):
    partition_index: int
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False


class LogDir(msgspec.Struct, frozen=True):
    """One log directory of a broker (35). Sizes of replicas are bytes of batches.

    ``topics`` pairs topic names with their replicas here. -1 bytes means unknown, as on the wire.
    """

    log_dir: str
    topics: tuple[tuple[str, tuple[LogDirReplica, ...]], ...]
    error_code: int = 0
    total_bytes: int = -1
    usable_bytes: int = -1


class AclBinding(msgspec.Struct, frozen=True, order=True):
    """One access rule, with the numbers of the protocol (AclOperation, ResourceType, ...)."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class AclFilter(msgspec.Struct, frozen=True):
    """Selects rules to describe or delete. None and ANY (1) match everything; the pattern type
    MATCH (2) matches every rule that applies to the resource name."""

    resource_type: int = 1
    resource_name: str | None = None
    pattern_type: int = 1
    principal: str | None = None
    host: str | None = None
    operation: int = 1
    permission_type: int = 1


class CreateAclResult(msgspec.Struct, frozen=True):
    error_code: int = 0
    error_message: str | None = None


class DescribeAclsResult(msgspec.Struct, frozen=True):
    """The rules that a filter matched; iterates over them."""

    error_code: int = 0
    error_message: str | None = None
    bindings: tuple[AclBinding, ...] = ()

    def __iter__(self) -> Iterator[AclBinding]:
        return iter(self.bindings)


class DeleteAclsResult(msgspec.Struct, frozen=True):
    """The result of one filter."""

    error_code: int = 0
    error_message: str | None = None
    matching: tuple[AclBinding, ...] = ()
