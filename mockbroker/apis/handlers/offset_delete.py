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
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.common.requirements import (
    Requirement,
    group_access,
    group_coordinator,
    group_id_given,
)
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_parts import Topic

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
    known = call.cluster.controller.metadata_view(call.broker_id).topics
    allowed = authorized_names(call, (topic.name for topic in request.topics), AclOperation.READ)
    topics, gone = [], []
    for topic in request.topics:
        rows = []
        for index in (each.partition_index for each in topic.partitions):
            if topic.name not in allowed:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            else:
                code = _error(call, request.group_id, topic.name, known.get(topic.name), index)
            if not code:
                gone.append((topic.name, index))
            rows.append(OffsetDeleteResponsePartition(partition_index=index, error_code=code))
        if rows:
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=rows))
    call.cluster.offsets.delete_at_request(request.group_id, gone)
    return OffsetDeleteResponse(topics=topics)


def _error(call: Call, group_id: str, name: str, topic: Topic | None, index: int) -> ErrorCode:
    if topic is None or topic.partition(index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if call.cluster.offsets.groups.is_subscribed(group_id, name):
        return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    return ErrorCode.NONE
