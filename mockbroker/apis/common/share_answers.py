"""What the APIs of share groups (KIP-932) have in common: switches, checks, leaders' endpoints."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from kproto.error_codes import ErrorCode
from mockbroker.apis.calls import Call
from mockbroker.apis.common.partition_views import viewed_partition
from mockbroker.apis.common.requirements import Requirement, group_access, share_groups, silent
from mockbroker.simulation.groups.modern.partitions import TopicIdPartition
from mockbroker.simulation.groups.share.deliveries import BatchCheck
from mockbroker.simulation.groups.share.share_partition import AckBatch, StartedAcknowledgement
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.rows import apply_first
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_parts import Broker, find_partition

__all__ = [
    "acknowledge",
    "add_leader",
    "complete",
    "has_unnamed_topic",
    "lock_ms",
    "member_id",
    "share_session_requirements",
    "topic_name",
]

_MOST_CHARACTERS: Final = 36
LEADER_ERRORS: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class _LedPartition(Protocol):
    error_code: int
    partition_index: int
    current_leader: Any


def _member_id_error(call: Call) -> int:
    """A member id is not empty, and no longer than a UUID in text form."""
    found: str | None = call.body.member_id
    if found is None and call.release.has(facts.NULL_SHARE_MEMBERS_FAIL):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    is_valid = found is not None and 0 < len(found) <= _MOST_CHARACTERS
    return ErrorCode.NONE if is_valid else ErrorCode.INVALID_REQUEST


def _null_group_error(call: Call) -> int:
    if call.body.group_id is not None:
        return ErrorCode.NONE
    is_refused = call.release.has(facts.NULL_SHARE_GROUPS_REFUSED)
    return ErrorCode.INVALID_REQUEST if is_refused else ErrorCode.UNKNOWN_SERVER_ERROR


member_id: Final = Requirement(_member_id_error)

share_session_requirements: Final = silent(
    share_groups, Requirement(_null_group_error), group_access(AclOperation.READ), member_id
)
"""What ShareFetch and ShareAcknowledge require."""


def topic_name(call: Call, topic_id: uuid.UUID) -> str | None:
    """The name of a topic that the broker knows; None if it knows none of this id."""
    return call.cluster.fetches.topic_name(call.broker_id, topic_id)


def has_unnamed_topic(call: Call, topic_ids: Iterable[uuid.UUID]) -> bool:
    """Whether the broker does not know one of the topics. Kafka asks its authorizer about each
    topic by name, and fails without one."""
    return any(topic_name(call, each) is None for each in topic_ids)


def lock_ms(call: Call) -> int:
    """How long the group's acquisitions hold."""
    return call.cluster.share_fetches.times(call.body.group_id or "").lock_ms


def acknowledge(
    call: Call,
    partitions: Iterable[tuple[TopicIdPartition, Iterable[Any]]],
    readable: frozenset[str],
) -> dict[TopicIdPartition, StartedAcknowledgement]:
    """Check what a request acknowledges. ``complete`` makes it count."""
    found: dict[TopicIdPartition, StartedAcknowledgement] = {}
    for key, batches in partitions:
        found[key] = _acknowledged(call, key, list(batches), readable)
    return found


def complete(acknowledged: Mapping[TopicIdPartition, StartedAcknowledgement]) -> None:
    """Complete the acknowledgements that were checked."""
    for each in acknowledged.values():
        each.complete()


def _acknowledged(
    call: Call, key: TopicIdPartition, batches: list[Any], readable: frozenset[str]
) -> StartedAcknowledgement:
    name = topic_name(call, key[0])
    if name is None:
        return _error(ErrorCode.UNKNOWN_TOPIC_ID)
    if _is_invalid(call, batches):
        return _error(ErrorCode.INVALID_REQUEST)
    if name not in readable:
        return _error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if viewed_partition(call, (name, key[1])) is None:
        return _error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if not batches:
        return StartedAcknowledgement()
    return call.cluster.share_fetches.acknowledge(
        call.broker_id,
        call.body.group_id,
        call.body.member_id,
        key,
        [
            AckBatch(each.first_offset, each.last_offset, tuple(each.acknowledge_types))
            for each in batches
        ],
    )


def _error(code: ErrorCode) -> StartedAcknowledgement:
    return StartedAcknowledgement(code)


def _is_invalid(call: Call, batches: Iterable[Any]) -> bool:
    last = -1
    for each in batches:
        check = BatchCheck(
            each.first_offset,
            each.last_offset,
            tuple(each.acknowledge_types),
            last,
            call.version >= 2 and call.body.is_renew_ack,
            call.version,
        )
        apply_first(call.cluster.share_fetches.batch_rules, check, check)
        if check.refused:
            return True
        last = each.last_offset
    return False


def add_leader(
    call: Call, topic_id: uuid.UUID, row: _LedPartition, endpoints: dict[int, Broker]
) -> None:
    """Tell a client that has come to the wrong broker who leads, and where."""
    if row.error_code not in LEADER_ERRORS:
        return
    view = call.cluster.controller.metadata_view(call.broker_id)
    partition = find_partition(view.topics, (topic_name(call, topic_id) or "", row.partition_index))
    if partition is None:
        return
    row.current_leader.leader_id = partition.leader
    row.current_leader.leader_epoch = partition.leader_epoch
    broker = view.brokers.get(partition.leader)
    for each in call.reached([broker] if broker is not None and broker.live else []):
        endpoints[partition.leader] = each
