"""DeleteShareGroupOffsets (92, KIP-932): an empty share group forgets topics."""

from __future__ import annotations

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode, message
from kproto.messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from kproto.messages.delete_share_group_offsets_response import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
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
from mockbroker.simulation.groups.share.share_group import ShareGroup
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["delete_share_group_offsets"]


@register(
    92,
    "0",
    requires=(share_groups, group_access(AclOperation.DELETE), group_id_given, group_coordinator),
)
def delete_share_group_offsets(call: Call) -> Message:
    body: DeleteShareGroupOffsetsRequest = call.body
    group_id, groups = body.group_id, call.cluster.groups
    group = groups.share.group(group_id)
    if group is None:
        problem = "not found" if groups.group(group_id) is None else "is not a share group"
        return refusal(call, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {problem}.")
    if group.members:
        return refusal(call, ErrorCode.NON_EMPTY_GROUP, message(ErrorCode.NON_EMPTY_GROUP))
    names = list(dict.fromkeys(each.topic_name for each in body.topics))
    readable = authorized_names(call, names, AclOperation.READ)
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return DeleteShareGroupOffsetsResponse(
        responses=[
            DeleteShareGroupOffsetsResponseTopic(
                topic_name=each, error_code=refused, error_message=message(refused)
            )
            for each in names
            if each not in readable
        ]
        + [_deleted(call, group, each) for each in names if each in readable]
    )


def _deleted(call: Call, group: ShareGroup, name: str) -> DeleteShareGroupOffsetsResponseTopic:
    topic = call.cluster.controller.metadata_view(call.broker_id).topics.get(name)
    answer = DeleteShareGroupOffsetsResponseTopic(topic_name=name)
    if topic is None:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        answer.error_message = message(answer.error_code)
        return answer
    held = frozenset(key for key in group.initialized if key[0] == topic.topic_id)
    if not held:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        answer.error_message = "There is no offset information to delete."
        return answer
    answer.topic_id = topic.topic_id
    call.cluster.groups.share.forget_topics(group, held)
    return answer
