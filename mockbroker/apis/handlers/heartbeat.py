"""Heartbeat (12): a member shows that it lives, and learns of rebalances.

Versions: 1 throttle time; 3 instance ids (KIP-345); 4 flexible.
"""

from __future__ import annotations

from kproto.messages.heartbeat_request import HeartbeatRequest
from kproto.messages.heartbeat_response import HeartbeatResponse
from mockbroker.apis.common.group_answers import coordinator_error
from mockbroker.apis.common.requirements import group_access
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["heartbeat"]


@register(12, "0-4", requires=(group_access(AclOperation.READ),))
def heartbeat(call: Call) -> HeartbeatResponse:
    body: HeartbeatRequest = call.body
    code = call.cluster.groups.heartbeat(
        body.group_id,
        body.member_id,
        body.group_instance_id,
        body.generation_id,
        coordinator_error(call, body.group_id),
    )
    return HeartbeatResponse(error_code=code)
