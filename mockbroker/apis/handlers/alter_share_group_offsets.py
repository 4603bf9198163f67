"""AlterShareGroupOffsets (91, KIP-932): an empty share group begins elsewhere in its partitions.

A group that does not exist begins to.
"""

from __future__ import annotations

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
from mockbroker.apis.common.group_answers import coordinator_error, may_use_group
from mockbroker.apis.common.share_answers import share_groups_served
from mockbroker.apis.registry import Call, register

__all__ = ["alter_share_group_offsets"]


@register(91, "0")
def alter_share_group_offsets(call: Call) -> AlterShareGroupOffsetsResponse:
    body: AlterShareGroupOffsetsRequest = call.body
    group_id, groups = body.group_id, call.cluster.groups
    if not share_groups_served(call):
        return _refused(ErrorCode.UNSUPPORTED_VERSION)
    if not may_use_group(call, group_id):
        return _refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not group_id:
        return _refused(ErrorCode.INVALID_GROUP_ID)
    error = coordinator_error(call, group_id)
    if error:
        return _refused(error)
    group = groups.share.group(group_id)
    if group is None and groups.group(group_id) is not None:
        return _refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    if group is not None and group.members:
        return _refused(ErrorCode.NON_EMPTY_GROUP)
    readable = authorized_names(call, (each.topic_name for each in body.topics))
    return AlterShareGroupOffsetsResponse(
        responses=[_topic(call, each, readable) for each in body.topics]
    )


def _topic(
    call: Call, requested: AlterShareGroupOffsetsRequestTopic, readable: frozenset[str]
) -> AlterShareGroupOffsetsResponseTopic:
    groups, name = call.cluster.groups.share, requested.topic_name
    topic = call.cluster.metadata_view(call.broker_id).topics.get(name)
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


def _refused(code: ErrorCode, text: str | None = None) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=code, error_message=text or message(code))
