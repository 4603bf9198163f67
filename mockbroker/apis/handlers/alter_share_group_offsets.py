"""AlterShareGroupOffsets (91, KIP-932): an empty share group begins elsewhere in its partitions.

A group that does not exist begins to.
"""

from __future__ import annotations

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode, message
from kproto.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
)
from kproto.messages.alter_share_group_offsets_response import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.common.refusals import refusal
from mockbroker.apis.common.requirements import (
    group_access,
    group_coordinator,
    group_id_given,
    share_groups,
)
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["alter_share_group_offsets"]


@register(
    91,
    "0",
    requires=(share_groups, group_access(AclOperation.READ), group_id_given, group_coordinator),
)
def alter_share_group_offsets(call: Call) -> Message:
    body: AlterShareGroupOffsetsRequest = call.body
    group_id, groups = body.group_id, call.cluster.groups
    group = groups.share.group(group_id)
    if group is None and groups.group(group_id) is not None:
        text = f"Group {group_id} is not a share group."
        return refusal(call, ErrorCode.GROUP_ID_NOT_FOUND, text)
    if group is not None and group.members:
        return refusal(call, ErrorCode.NON_EMPTY_GROUP, message(ErrorCode.NON_EMPTY_GROUP))
    readable = authorized_names(call, (each.topic_name for each in body.topics), AclOperation.READ)
    return AlterShareGroupOffsetsResponse(
        responses=[_topic(call, each, readable) for each in body.topics]
    )


def _topic(
    call: Call, requested: AlterShareGroupOffsetsRequestTopic, readable: frozenset[str]
) -> AlterShareGroupOffsetsResponseTopic:
    groups, name = call.cluster.groups.share, requested.topic_name
    topic = call.cluster.controller.metadata_view(call.broker_id).topics.get(name)
    answer = AlterShareGroupOffsetsResponseTopic(topic_name=name)
    if topic is not None:
        answer.topic_id = topic.topic_id
    code = ErrorCode.NONE if name in readable else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    for each in requested.partitions:
        index = each.partition_index
        problem = code
        if not problem and (topic is None or topic.partition(index) is None):
            problem = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        answer.partitions.append(
            AlterShareGroupOffsetsResponsePartition(
                partition_index=index,
                error_code=problem,
                error_message=message(problem) if problem else None,
            )
        )
        if not problem and topic is not None:
            group, key = groups.make_empty(call.body.group_id), (topic.topic_id, index)
            call.cluster.share_fetches.initialize(
                group.group_id, frozenset({key}), group.epoch, each.start_offset
            )
            groups.initialize_at(group, frozenset({key}))
    return answer
