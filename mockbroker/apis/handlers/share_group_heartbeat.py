"""ShareGroupHeartbeat (76, KIP-932): a member joins its share group, lives and leaves.

Version 1 is the first one that releases have. Without the feature ``share.version`` the broker
refuses the request in its body.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kproto.messages.share_group_heartbeat_response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.common.group_answers import client_host, coordinator_error, may_use_group
from mockbroker.apis.common.share_answers import is_member_id, share_groups_served
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.modern.heartbeats import HeartbeatResult
from mockbroker.simulation.groups.modern.partitions import by_topic
from mockbroker.simulation.groups.share.share_group import ShareHeartbeat

__all__ = ["share_group_heartbeat"]


@register(76, "1")
def share_group_heartbeat(call: Call) -> ShareGroupHeartbeatResponse:
    body: ShareGroupHeartbeatRequest = call.body
    if not share_groups_served(call):
        return _refused(ErrorCode.UNSUPPORTED_VERSION)
    if not may_use_group(call, body.group_id):
        return _refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not is_member_id(body.member_id):
        return _refused(ErrorCode.INVALID_REQUEST)
    names = frozenset(body.subscribed_topic_names or ())
    if authorized_names(call, names) != names:
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
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
    return _response(
        call.cluster.groups.share.heartbeat(request, coordinator_error(call, body.group_id))
    )


def _response(result: HeartbeatResult) -> ShareGroupHeartbeatResponse:
    assignment = None
    if result.assignment is not None:
        assignment = Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=indexes)
                for topic_id, indexes in by_topic(result.assignment)
            ]
        )
    return ShareGroupHeartbeatResponse(
        error_code=result.error_code,
        error_message=result.error_message,
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.interval_ms,
        assignment=assignment,
    )


def _refused(code: ErrorCode) -> ShareGroupHeartbeatResponse:
    """The broker refuses heartbeats without a text; the coordinator has texts."""
    return ShareGroupHeartbeatResponse(error_code=code)
