"""ShareGroupHeartbeat (76, KIP-932): a member joins its share group, lives and leaves.

Version 1 is the first one that releases have. Without the feature ``share.version`` the broker
refuses the request in its body. The broker refuses heartbeats without a text; the coordinator has
texts.
"""

from __future__ import annotations

from kproto.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kproto.messages.share_group_heartbeat_response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from mockbroker.apis.common.group_answers import client_host, coordinator_error, heartbeat_response
from mockbroker.apis.common.requirements import (
    group_access,
    share_groups,
    silent,
    subscription_access,
)
from mockbroker.apis.common.share_answers import member_id
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.share.share_group import ShareHeartbeat
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["share_group_heartbeat"]


@register(
    76,
    "1",
    requires=silent(
        share_groups, group_access(AclOperation.READ), member_id, subscription_access()
    ),
)
def share_group_heartbeat(call: Call) -> ShareGroupHeartbeatResponse:
    body: ShareGroupHeartbeatRequest = call.body
    topics = body.subscribed_topic_names
    request = ShareHeartbeat(
        group_id=body.group_id,
        member_id=body.member_id,
        member_epoch=body.member_epoch,
        rack_id=body.rack_id,
        topic_names=None if topics is None else tuple(topics),
        client_id=call.client_id or "",
        client_host=client_host(call),
    )
    result = call.cluster.groups.share.heartbeat(request, coordinator_error(call, body.group_id))
    return heartbeat_response(ShareGroupHeartbeatResponse, Assignment, TopicPartitions, result)
