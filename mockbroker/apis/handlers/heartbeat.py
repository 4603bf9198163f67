"""Heartbeat (12): a member shows that it lives, and learns of rebalances.

Versions: 1 throttle time; 3 instance ids (KIP-345); 4 flexible.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.messages.heartbeat_request import HeartbeatRequest
from kproto.messages.heartbeat_response import HeartbeatResponse
from mockbroker.apis.common.group_answers import coordinator_error, may_use_group
from mockbroker.apis.registry import Call, register

__all__ = ["heartbeat"]


@register(12, "0-4")
def heartbeat(call: Call) -> HeartbeatResponse:
    body: HeartbeatRequest = call.body
    if not may_use_group(call, body.group_id):
        return HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    code = call.cluster.groups.heartbeat(
        body.group_id,
        body.member_id,
        body.group_instance_id,
        body.generation_id,
        coordinator_error(call, body.group_id),
    )
    return HeartbeatResponse(error_code=code)
