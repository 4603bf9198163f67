"""ShareGroupDescribe (77, KIP-932): members and assignments of share groups.

Version 1 is the first one that releases have. Without the feature ``share.version`` the broker
refuses the request for each group.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.messages.share_group_describe_request import ShareGroupDescribeRequest
from kproto.messages.share_group_describe_response import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeResponse,
    TopicPartitions,
)
from mockbroker.apis.authorization import authorized_names
from mockbroker.apis.authorized_operations import group_operations
from mockbroker.apis.group_answers import coordinator_error, may_use_group
from mockbroker.apis.registry import Call, register
from mockbroker.apis.share_answers import share_groups_served
from mockbroker.groups.share.model import ShareGroup, ShareMember

__all__ = ["share_group_describe"]


@register(77, "1")
def share_group_describe(call: Call) -> ShareGroupDescribeResponse:
    body: ShareGroupDescribeRequest = call.body
    if not share_groups_served(call):
        code = ErrorCode.UNSUPPORTED_VERSION
        return ShareGroupDescribeResponse(
            groups=[DescribedGroup(group_id=each, error_code=code) for each in body.group_ids]
        )
    refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
    allowed = [each for each in body.group_ids if may_use_group(call, each)]
    groups = [
        DescribedGroup(group_id=each, error_code=refused)
        for each in body.group_ids
        if each not in allowed
    ] + [_described(call, each) for each in allowed]
    return ShareGroupDescribeResponse(groups=[_visible(call, each) for each in groups])


def _described(call: Call, group_id: str) -> DescribedGroup:
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    error = coordinator_error(call, group_id)
    if error:
        return DescribedGroup(group_id=group_id, error_code=error)
    found = call.cluster.groups.share.group(group_id)
    if found is not None:
        described = _group(call, found)
        if call.body.include_authorized_operations:
            described.authorized_operations = group_operations(call, group_id)
        return described
    known = call.cluster.groups.group(group_id) is not None
    problem = "is not a share group" if known else "not found"
    return DescribedGroup(
        group_id=group_id,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"Group {group_id} {problem}.",
    )


def _group(call: Call, group: ShareGroup) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name="simple",
        members=[
            Member(
                member_id=each.member_id,
                rack_id=each.rack_id,
                member_epoch=each.epoch,
                client_id=each.client_id,
                client_host=each.client_host,
                subscribed_topic_names=sorted(each.topic_names),
                assignment=_assignment(call, each),
            )
            for each in group.members.values()
        ],
    )


def _assignment(call: Call, member: ShareMember) -> Assignment:
    topics = call.cluster.groups.share.topics
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=indexes)
            for name, indexes in topics.by_name(member.assigned)
            if (topic_id := topics.id_of(name)) is not None
        ]
    )


def _visible(call: Call, group: DescribedGroup) -> DescribedGroup:
    """The group, unless it has topics that the caller may not describe."""
    names = frozenset(
        topic.topic_name for each in group.members for topic in each.assignment.topic_partitions
    )
    if authorized_names(call, names) == names:
        return group
    return DescribedGroup(
        group_id=group.group_id,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message="The group has described topic(s) that the client is not authorized to "
        "describe.",
    )
