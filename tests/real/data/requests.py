"""The requests of the data plane, as short as they can be said. Topic ids are filled in beside
names: each version sends what it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kproto.messages import (
    DeleteRecordsRequest,
    FetchRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    SyncGroupRequest,
)
from kproto.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsTopic
from kproto.messages.fetch_request import FetchPartition, FetchTopic, ForgottenTopic, ReplicaState
from kproto.messages.join_group_request import JoinGroupRequestProtocol
from kproto.messages.leave_group_request import MemberIdentity
from kproto.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsTopic
from kproto.messages.offset_commit_request import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.offset_fetch_request import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kproto.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.messages.sync_group_request import SyncGroupRequestAssignment
from kproto.schema.model import ZERO_UUID
from tests.real.data.side import Side

__all__ = [
    "commit", "committed", "delete_records", "epoch_end", "fetch", "fetch_row", "heartbeat",
    "join", "leave", "list_offsets", "produce", "produce_rows", "read_log", "sync",
]  # fmt: skip


def produce_rows(
    k: Side, *rows: tuple[str, int, bytes | None], acks: int = -1, timeout_ms: int = 10_000,
    transactional_id: str | None = None,
) -> ProduceRequest:  # fmt: skip
    """(topic, partition, records) rows; adjoining ones share a topic."""
    topics: list[TopicProduceData] = []
    for topic, partition, records in rows:
        if not topics or topics[-1].name != topic:
            topic_id = k.topic_ids.get(topic, ZERO_UUID)
            topics.append(TopicProduceData(name=topic, topic_id=topic_id, partition_data=[]))
        topics[-1].partition_data.append(PartitionProduceData(index=partition, records=records))
    return ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=topics
    )


def produce(k: Side, records: bytes | None, partition: int = 0, **arguments: Any) -> ProduceRequest:
    return produce_rows(k, (k.topic, partition, records), **arguments)


def fetch_row(
    partition: int = 0, offset: int = 0, *, leader_epoch: int = -1, fetched_epoch: int = -1,
    partition_max_bytes: int = 1 << 20, log_start: int = -1,
) -> FetchPartition:  # fmt: skip
    return FetchPartition(
        partition=partition,
        current_leader_epoch=leader_epoch,
        fetch_offset=offset,
        last_fetched_epoch=fetched_epoch,
        log_start_offset=log_start,
        partition_max_bytes=partition_max_bytes,
    )


def fetch(
    k: Side, *rows: FetchPartition, topics: Sequence[tuple[str, Sequence[FetchPartition]]] = (),
    max_wait_ms: int = 0, min_bytes: int = 1, max_bytes: int = 50 << 20, isolation: int = 0,
    session: tuple[int, int] = (0, -1), forget: Sequence[tuple[str, Sequence[int]]] = (),
    replica: int = -1, version: int | None = None, rack: str = "",
) -> FetchRequest:  # fmt: skip
    """Fetch rows of the session's topic, and of others by name; ``replica`` is where the version
    carries it."""
    version = k.version_of(1) if version is None else version
    named = [*topics, (k.topic, rows)] if rows else topics
    body = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation,
        session_id=session[0],
        session_epoch=session[1],
        rack_id=rack,
        topics=[
            FetchTopic(
                topic=name, topic_id=k.topic_ids.get(name, ZERO_UUID), partitions=list(partitions)
            )
            for name, partitions in named
        ],
        forgotten_topics_data=[
            ForgottenTopic(
                topic=name, topic_id=k.topic_ids.get(name, ZERO_UUID), partitions=list(indexes)
            )
            for name, indexes in forget
        ],
    )
    if replica >= 0 and version >= 15:
        body.replica_state = ReplicaState(replica_id=replica, replica_epoch=-1)
    elif replica >= 0:
        body.replica_id = replica
    return body


def list_offsets(
    k: Side, *timestamps: int, partition: int = 0, topic: str | None = None, isolation: int = 0,
    leader_epoch: int = -1, replica: int = -1,
) -> ListOffsetsRequest:  # fmt: skip
    """One row for each timestamp, so more than one names the partition twice."""
    return ListOffsetsRequest(
        replica_id=replica,
        isolation_level=isolation,
        timeout_ms=10_000,
        topics=[
            ListOffsetsTopic(
                name=topic or k.topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=partition,
                        timestamp=timestamp,
                        current_leader_epoch=leader_epoch,
                    )
                    for timestamp in timestamps
                ],
            )
        ],
    )


def epoch_end(
    k: Side, *epochs: int, partition: int = 0, topic: str | None = None, current: int = -1,
) -> OffsetForLeaderEpochRequest:  # fmt: skip
    return OffsetForLeaderEpochRequest(
        topics=[
            OffsetForLeaderTopic(
                topic=topic or k.topic,
                partitions=[
                    OffsetForLeaderPartition(
                        partition=partition, current_leader_epoch=current, leader_epoch=epoch
                    )
                    for epoch in epochs
                ],
            )
        ]
    )


def delete_records(
    k: Side, *rows: tuple[int, int], topic: str | None = None
) -> DeleteRecordsRequest:
    """(partition, offset) rows."""
    return DeleteRecordsRequest(
        timeout_ms=10_000,
        topics=[
            DeleteRecordsTopic(
                name=topic or k.topic,
                partitions=[
                    DeleteRecordsPartition(partition_index=index, offset=offset)
                    for index, offset in rows
                ],
            )
        ],
    )


async def read_log(k: Side, partition: int = 0, topic: str | None = None) -> None:
    """Note what the partition holds, from its start to its end."""
    name = topic or k.topic
    start = await k.ask(list_offsets(k, -2, partition=partition, topic=name))
    await k.ask(list_offsets(k, -1, partition=partition, topic=name))
    first = start.topics[0].partitions[0].offset
    await k.ask(fetch(k, topics=[(name, [fetch_row(partition, first)])]))


# ---- groups ----------------------------------------------------------------------------------


def join(
    k: Side, member: str = "", *, protocols: Sequence[tuple[str, bytes]] = (("range", b"m"),),
    group: str | None = None, kind: str = "consumer", session_ms: int = 30_000,
    rebalance_ms: int = 30_000, instance: str | None = None,
) -> JoinGroupRequest:  # fmt: skip
    return JoinGroupRequest(
        group_id=k.group if group is None else group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member,
        group_instance_id=instance,
        protocol_type=kind,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols],
    )


def sync(
    k: Side, member: str, generation: int, assignments: Sequence[tuple[str, bytes]] = (), *,
    instance: str | None = None, kind: str | None = None, protocol: str | None = None,
    group: str | None = None,
) -> SyncGroupRequest:  # fmt: skip
    """From version 5 on, kind and protocol are "consumer" and "range" unless they are given."""
    if k.version_of(14) >= 5:
        kind, protocol = kind or "consumer", protocol or "range"
    return SyncGroupRequest(
        group_id=k.group if group is None else group,
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
        protocol_type=kind,
        protocol_name=protocol,
        assignments=[
            SyncGroupRequestAssignment(member_id=each, assignment=data)
            for each, data in assignments
        ],
    )


def heartbeat(
    k: Side, member: str, generation: int, *, instance: str | None = None, group: str | None = None
) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=k.group if group is None else group,
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
    )


def leave(k: Side, *members: tuple[str, str | None], group: str | None = None) -> LeaveGroupRequest:
    """(member id, instance id) rows; below version 3 there is one, by its member id."""
    name = k.group if group is None else group
    if k.version_of(13) < 3:
        return LeaveGroupRequest(group_id=name, member_id=members[0][0])
    return LeaveGroupRequest(
        group_id=name,
        members=[
            MemberIdentity(member_id=member, group_instance_id=instance)
            for member, instance in members
        ],
    )


def commit(
    k: Side, *rows: tuple[int, int, str | None], member: str = "", generation: int = -1,
    topic: str | None = None, group: str | None = None, instance: str | None = None,
    leader_epoch: int = -1, retention_ms: int = -1,
) -> OffsetCommitRequest:  # fmt: skip
    """(partition, offset, metadata) rows."""
    name = topic or k.topic
    return OffsetCommitRequest(
        group_id=k.group if group is None else group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        group_instance_id=instance,
        retention_time_ms=retention_ms,
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                topic_id=k.topic_ids.get(name, ZERO_UUID),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_leader_epoch=leader_epoch,
                        committed_metadata=metadata,
                    )
                    for index, offset, metadata in rows
                ],
            )
        ],
    )


def committed(
    k: Side, *partitions: int, topic: str | None = None, groups: Sequence[str] = (),
    everything: bool = False, stable: bool = False,
) -> OffsetFetchRequest:  # fmt: skip
    """OffsetFetch of these partitions, by group from version 8 on."""
    name = topic or k.topic
    version = k.version_of(9)
    names = list(groups) or [k.group]
    if version < 8:
        body = OffsetFetchRequest(
            group_id=names[0],
            topics=None
            if everything
            else [OffsetFetchRequestTopic(name=name, partition_indexes=list(partitions))],
        )
    else:
        topic_id = k.topic_ids.get(name, ZERO_UUID)
        body = OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id=each,
                    topics=None
                    if everything
                    else [
                        OffsetFetchRequestTopics(
                            name=name, topic_id=topic_id, partition_indexes=list(partitions)
                        )
                    ],
                )
                for each in names
            ]
        )
    if stable:
        body.require_stable = True
    return body
