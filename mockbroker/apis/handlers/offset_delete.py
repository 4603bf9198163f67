"""OffsetDelete (47, KIP-496): delete committed offsets of a group.

An error of the group is on top, and then there are no topics. Offsets of a topic to which a member
subscribes stay, with error 86.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.messages.offset_delete_request import OffsetDeleteRequest
from kproto.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from mockbroker.apis.common.offset_rows import OffsetRows
from mockbroker.apis.common.requirements import (
    Requirement,
    group_access,
    group_coordinator,
    group_id_given,
)
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["offset_delete"]


def _group_error(call: Call) -> int:
    return call.cluster.offsets.groups.validate_offset_delete(call.body.group_id)


@register(
    47,
    "0",
    requires=(
        group_access(AclOperation.DELETE),
        group_id_given,
        group_coordinator,
        Requirement(_group_error),
    ),
)
def offset_delete(call: Call) -> OffsetDeleteResponse:
    request: OffsetDeleteRequest = call.body
    rows = OffsetRows(call, request.topics)
    rows.set_codes([_error(call, request.group_id, row.topic) for row in rows.valid])
    gone = [row.tp for row in rows.valid if not row.error]
    call.cluster.offsets.delete_at_request(request.group_id, gone)
    topics = [
        OffsetDeleteResponseTopic(
            name=name,
            partitions=[
                OffsetDeleteResponsePartition(
                    partition_index=row.partition.partition_index, error_code=row.error
                )
                for row in found
            ],
        )
        for (name, _), found in rows.by_topic()
    ]
    if call.release.has(facts.DELETED_OFFSETS_REPEATED):
        topics = [topic for topic in topics for _ in topic.partitions]
    return OffsetDeleteResponse(topics=topics)


def _error(call: Call, group_id: str, name: str) -> ErrorCode:
    if call.cluster.offsets.groups.is_subscribed(group_id, name):
        return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    return ErrorCode.NONE
