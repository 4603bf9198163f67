"""ConsumerGroupDescribe (69): members and assignments of groups of KIP-848.

Versions: 1 kinds of members (4.0). The mock has classic groups only, so no group is found; clients
that get this answer go on to DescribeGroups. Without the feature ``group.version``, which came with
4.0, the broker refuses the request for each group.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kproto.messages.consumer_group_describe_response import (
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from mockbroker.apis.group_answers import coordinator_error, may_use_group
from mockbroker.apis.registry import Call, register

__all__ = ["consumer_group_describe"]


@register(69, "0-1")
def consumer_group_describe(call: Call) -> ConsumerGroupDescribeResponse:
    body: ConsumerGroupDescribeRequest = call.body
    if not call.profile.has_feature("group.version"):
        code = ErrorCode.UNSUPPORTED_VERSION
        return ConsumerGroupDescribeResponse(
            groups=[DescribedGroup(group_id=each, error_code=code) for each in body.group_ids]
        )
    refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
    allowed = [each for each in body.group_ids if may_use_group(call, each)]
    return ConsumerGroupDescribeResponse(
        groups=[
            DescribedGroup(group_id=each, error_code=refused)
            for each in body.group_ids
            if each not in allowed
        ]
        + [_described(call, each) for each in allowed]
    )


def _described(call: Call, group_id: str) -> DescribedGroup:
    error = coordinator_error(call, group_id)
    if error:
        return DescribedGroup(group_id=group_id, error_code=error)
    known = call.cluster.groups.describe(group_id) is not None
    problem = "is not a consumer group" if known else "not found"
    return DescribedGroup(
        group_id=group_id,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"Group {group_id} {problem}.",
    )
