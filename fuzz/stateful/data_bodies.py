"""Requests of producers, consumers and members of groups, in any released version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from kproto.messages.delete_groups_request import DeleteGroupsRequest
from kproto.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.heartbeat_request import HeartbeatRequest
from kproto.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kproto.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kproto.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kproto.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.schema.model import ZERO_UUID
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = [
    "commit",
    "delete_groups",
    "delete_offset",
    "delete_records",
    "fetch",
    "fetch_offsets",
    "heartbeat",
    "join",
    "leave",
    "list_offsets",
    "produce",
    "sync",
]

_PRODUCE_BY_ID: Final = 13
_FETCH_BY_ID: Final = 13
_COMMIT_BY_ID: Final = 10
_GROUPS_SINCE: Final = 8
_MEMBERS_SINCE: Final = 3


def _names(version: int, since: int, tp: TopicPartition, ids: Mapping[str, UUID]) -> dict[str, Any]:
    """The name of a topic, or its id from a version on."""
    return {"topic_id": ids.get(tp[0], ZERO_UUID)} if version >= since else {"name": tp[0]}


def produce(
    version: int, tp: TopicPartition, ids: Mapping[str, UUID], data: bytes, acks: int,
    transactional_id: str | None = None,
) -> ProduceRequest:  # fmt: skip
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                **_names(version, _PRODUCE_BY_ID, tp, ids),
                partition_data=[PartitionProduceData(index=tp[1], records=data)],
            )
        ],
    )


def fetch(
    version: int,
    tp: TopicPartition,
    ids: Mapping[str, UUID],
    offset: int,
    *,
    wait_ms: int,
    min_bytes: int,
    isolation: int,
) -> FetchRequest:
    named = {"topic": tp[0]}
    if version >= _FETCH_BY_ID:
        named = {"topic_id": ids.get(tp[0], ZERO_UUID)}  # type: ignore[dict-item]
    part = FetchPartition(partition=tp[1], fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 20,
        isolation_level=isolation if version >= 4 else 0,
        topics=[FetchTopic(**named, partitions=[part])],  # type: ignore[arg-type]
    )


def list_offsets(tp: TopicPartition, timestamp: int) -> ListOffsetsRequest:
    part = ListOffsetsPartition(partition_index=tp[1], timestamp=timestamp)
    topic = ListOffsetsTopic(name=tp[0], partitions=[part])
    return ListOffsetsRequest(replica_id=-1, topics=[topic])


def delete_records(tp: TopicPartition, offset: int) -> DeleteRecordsRequest:
    part = DeleteRecordsPartition(partition_index=tp[1], offset=offset)
    topic = DeleteRecordsTopic(name=tp[0], partitions=[part])
    return DeleteRecordsRequest(topics=[topic], timeout_ms=30_000)


def commit(
    version: int,
    group: str,
    member_id: str,
    generation: int,
    tp: TopicPartition,
    ids: Mapping[str, UUID],
    offset: int,
) -> OffsetCommitRequest:
    part = OffsetCommitRequestPartition(partition_index=tp[1], committed_offset=offset)
    return OffsetCommitRequest(
        group_id=group,
        member_id=member_id if version >= 1 else "",
        generation_id_or_member_epoch=generation if version >= 1 else -1,
        topics=[
            OffsetCommitRequestTopic(**_names(version, _COMMIT_BY_ID, tp, ids), partitions=[part])
        ],
    )


def fetch_offsets(version: int, group: str) -> OffsetFetchRequest:
    """For all partitions that have an offset."""
    if version >= _GROUPS_SINCE:
        return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    return OffsetFetchRequest(group_id=group, topics=None)


def delete_offset(group: str, tp: TopicPartition) -> OffsetDeleteRequest:
    part = OffsetDeleteRequestPartition(partition_index=tp[1])
    topic = OffsetDeleteRequestTopic(name=tp[0], partitions=[part])
    return OffsetDeleteRequest(group_id=group, topics=[topic])


def delete_groups(group: str) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=[group])


def join(
    group: str, member_id: str, version: int, rebalance_ms: int, instance: str | None
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=rebalance_ms if version >= 1 else -1,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


def sync(
    version: int, group: str, member_id: str, generation: int, instance: str | None,
    assignments: Sequence[tuple[str, bytes]],
) -> SyncGroupRequest:  # fmt: skip
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance,
        assignments=[
            SyncGroupRequestAssignment(member_id=each, assignment=data)
            for each, data in assignments
        ],
        protocol_type="consumer" if version >= 5 else None,
        protocol_name="range" if version >= 5 else None,
    )


def heartbeat(
    group: str, member_id: str, generation: int, instance: str | None
) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group, member_id=member_id, generation_id=generation, group_instance_id=instance
    )


def leave(version: int, group: str, member_id: str) -> LeaveGroupRequest:
    if version >= _MEMBERS_SINCE:
        return LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member_id)])
    return LeaveGroupRequest(group_id=group, member_id=member_id)
