"""OffsetCommit (8): store the offsets of a group.

Versions: 0 goes to ZooKeeper; 1 member, generation and a timestamp for each partition; 2 a
retention time instead of the timestamps, until 4; 3 throttle time; 6 leader epochs (KIP-320);
7 instance ids (KIP-345); 8 flexible; 9 error GROUP_ID_NOT_FOUND and member epochs (KIP-848); 10
topic ids (KIP-848). Each partition has an error of its own. Partitions that the broker does not
know are refused before the coordinator is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode
from kproto.messages.offset_commit_request import OffsetCommitRequest
from kproto.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from mockbroker.apis.common.offset_rows import OffsetRows
from mockbroker.apis.common.refusals import refusal
from mockbroker.apis.common.requirements import group_access
from mockbroker.apis.registry import Answer, Call, register
from mockbroker.simulation.coordinators.group_facts import GroupCommit
from mockbroker.simulation.coordinators.offset_rules import OffsetToCommit
from mockbroker.simulation.coordinators.offset_store import Commitment
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.timers import wait_for_call

__all__ = ["offset_commit"]

_IDS_SINCE_VERSION: Final = 10


@register(8, "0-10", requires=(group_access(AclOperation.READ),))
def offset_commit(call: Call) -> Answer:
    request: OffsetCommitRequest = call.body
    rows = OffsetRows(
        call,
        request.topics,
        by_id=call.version >= _IDS_SINCE_VERSION,
        in_znodes=call.version == 0,
    )
    valid = rows.valid
    if not valid:
        return _response(rows)
    if call.version == 0 and not call.cluster.controller.keeps_znodes:
        return refusal(call, ErrorCode.UNSUPPORTED_VERSION)
    if call.version == 0:
        for row in valid:
            row.error = call.cluster.znode_offsets.commit(
                request.group_id, row.tp, _offset(row.partition)
            )
        return _response(rows)
    code = call.cluster.coordinators.group_error(request.group_id, call.broker_id)
    code = code or call.cluster.offsets.groups.validate_commit(
        GroupCommit(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            call.version,
            partitions=[row.tp for row in valid],
            stores=call.cluster.offsets.accepts_any(_offset(row.partition) for row in valid),
        )
    )
    if code:
        return _finished(rows, [code] * len(valid))
    commitment = call.cluster.offsets.commit(
        request.group_id,
        [(row.tp, _offset(row.partition)) for row in valid],
        retention_ms=request.retention_time_ms,
    )
    if commitment.results is None:
        return _later(rows, commitment)
    return _finished(rows, commitment.results)


def _offset(partition: Any) -> OffsetToCommit:
    return OffsetToCommit(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
        partition.commit_timestamp,
    )


async def _later(rows: OffsetRows, commitment: Commitment) -> Message:
    await wait_for_call(commitment.when_done)
    assert commitment.results is not None, "that is what it was waited for"
    return _finished(rows, commitment.results)


def _finished(rows: OffsetRows, codes: Iterable[ErrorCode]) -> Message:
    rows.set_codes(codes)
    return _response(rows)


def _response(rows: OffsetRows) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=name,
                topic_id=topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=row.partition.partition_index, error_code=row.error
                    )
                    for row in found
                ],
            )
            for (name, topic_id), found in rows.by_topic()
        ]
    )
