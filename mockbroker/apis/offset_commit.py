"""OffsetCommit (8): store the offsets of a group.

Versions: 0 goes to ZooKeeper; 1 member, generation and a timestamp for each partition; 2 a
retention time instead of the timestamps, until 4; 3 throttle time; 6 leader epochs (KIP-320);
7 instance ids (KIP-345); 8 flexible; 9 error GROUP_ID_NOT_FOUND and member epochs (KIP-848); 10
topic ids (KIP-848). Each partition has an error of its own. Partitions that the broker does not
know are refused before the coordinator is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode
from kproto.messages.offset_commit_request import OffsetCommitRequest
from kproto.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from mockbroker.apis.authorization import authorized_names, may
from mockbroker.apis.registry import Answer, Call, register
from mockbroker.coordinators.offset_rules import OffsetToCommit
from mockbroker.coordinators.offsets import Commitment
from mockbroker.security.authorizer import ResourceType
from mockbroker.state.metadata_views import MetadataView
from mockbroker.timers import wait_for_call

__all__ = ["offset_commit"]

_IDS_SINCE_VERSION: Final = 10


@dataclass(slots=True)
class _Row:
    """One partition of the request; ``error`` is NONE as long as nothing speaks against it."""

    topic: str
    partition: Any
    error: ErrorCode = ErrorCode.NONE

    @property
    def tp(self) -> tuple[str, int]:
        return self.topic, self.partition.partition_index


@dataclass(slots=True)
class _Topic:
    """One topic of the request. ``is_refused``: it is unknown, or not the caller's; only such a
    topic is answered if it has no partitions."""

    is_refused: bool
    rows: list[_Row]


@register(8, "0-10")
def offset_commit(call: Call) -> Answer:
    request: OffsetCommitRequest = call.body
    if not may(call, ResourceType.GROUP, request.group_id):
        return _refused(request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    topics = _checked(call, request)
    valid = _valid(topics)
    if not valid:
        return _response(request, topics)
    if call.version == 0 and not call.cluster.keeps_znodes:
        return _refused(request, ErrorCode.UNSUPPORTED_VERSION)
    if call.version == 0:
        for row in valid:
            row.error = call.cluster.commit_to_zookeeper(
                request.group_id, row.tp, _offset(row.partition)
            )
        return _response(request, topics)
    code = call.cluster.coordinators.group_error(request.group_id, call.broker_id)
    code = code or call.cluster.offsets.groups.validate_commit(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        version=call.version,
        partitions=[row.tp for row in valid],
    )
    if code:
        return _finished(request, topics, [code] * len(valid))
    commitment = call.cluster.offsets.commit(
        request.group_id,
        [(row.tp, _offset(row.partition)) for row in valid],
        retention_ms=request.retention_time_ms,
    )
    if commitment.results is None:
        return _later(request, topics, commitment)
    return _finished(request, topics, commitment.results)


def _valid(topics: Iterable[_Topic]) -> list[_Row]:
    return [row for topic in topics for row in topic.rows if not row.error]


def _checked(call: Call, request: OffsetCommitRequest) -> list[_Topic]:
    """The partitions by topic, with what is wrong with them as far as this broker knows."""
    view = call.cluster.metadata_view(call.broker_id)
    names = [_name(call, view, topic) for topic in request.topics]
    allowed = authorized_names(call, (name for name in names if name is not None))
    topics = []
    for name, topic in zip(names, request.topics, strict=True):
        known = None if name is None else view.topics.get(name)
        error = ErrorCode.NONE
        if name is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        elif name not in allowed:
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        found = [_Row(name or "", partition, error) for partition in topic.partitions]
        for row in found:
            if not error and (known is None or known.partition(row.tp[1]) is None):
                row.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topics.append(_Topic(bool(error) or known is None, found))
    return topics


def _name(call: Call, view: MetadataView, topic: Any) -> str | None:
    if call.version < _IDS_SINCE_VERSION:
        name: str = topic.name
        return name
    found = view.topic_by_id(topic.topic_id)
    return None if found is None else found.name


def _offset(partition: Any) -> OffsetToCommit:
    return OffsetToCommit(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
        partition.commit_timestamp,
    )


async def _later(
    request: OffsetCommitRequest, topics: list[_Topic], commitment: Commitment
) -> Message:
    await wait_for_call(commitment.when_done)
    assert commitment.results is not None, "that is what it was waited for"
    return _finished(request, topics, commitment.results)


def _finished(
    request: OffsetCommitRequest, topics: list[_Topic], codes: Iterable[ErrorCode]
) -> Message:
    """Give the partitions that were valid their results."""
    for row, code in zip(_valid(topics), codes, strict=True):
        row.error = code
    return _response(request, topics)


def _refused(request: OffsetCommitRequest, code: ErrorCode) -> Message:
    """Return the error in every partition."""
    topics = [
        _Topic(True, [_Row("", partition, code) for partition in topic.partitions])
        for topic in request.topics
    ]
    return _response(request, topics)


def _response(request: OffsetCommitRequest, topics: list[_Topic]) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=row.partition.partition_index, error_code=row.error
                    )
                    for row in found.rows
                ],
            )
            for topic, found in zip(request.topics, topics, strict=True)
            if found.rows or found.is_refused
        ]
    )
