"""ConsumerGroupHeartbeat (68, KIP-848): a member joins its group, lives, reconciles and leaves.

Versions: 1 regular expressions, and member ids that clients make (KIP-1082). Without the feature
``group.version``, which came with 4.0, or with ``consumer`` taken out of
``group.coordinator.rebalance.protocols``, the broker refuses the request in its body.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from kproto.error_codes import ErrorCode, message
from kproto.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kproto.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.common.group_answers import client_host, coordinator_error, heartbeat_response
from mockbroker.apis.common.requirements import (
    consumer_groups,
    group_access,
    silent,
    subscription_access,
)
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.consumer.consumer_group import HeartbeatRequest
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["consumer_group_heartbeat"]


def _text(call: Call, code: int) -> str | None:
    return message(ErrorCode(code)) if call.release.has(facts.CONSUMER_HEARTBEAT_TEXTS) else None


@register(
    68,
    "0-1",
    requires=(
        replace(consumer_groups, text=_text),
        replace(group_access(AclOperation.READ), text=_text),
        *silent(subscription_access()),
    ),
)
def consumer_group_heartbeat(call: Call) -> ConsumerGroupHeartbeatResponse:
    body: ConsumerGroupHeartbeatRequest = call.body
    result = call.cluster.groups.consumer.heartbeat(
        _request(call, body), coordinator_error(call, body.group_id)
    )
    return heartbeat_response(ConsumerGroupHeartbeatResponse, Assignment, TopicPartitions, result)


def _request(call: Call, body: ConsumerGroupHeartbeatRequest) -> HeartbeatRequest:
    def visible(names: Iterable[str]) -> frozenset[str]:
        return authorized_names(call, names, AclOperation.DESCRIBE)

    names, owned = body.subscribed_topic_names, body.topic_partitions
    return HeartbeatRequest(
        group_id=body.group_id,
        member_id=body.member_id,
        member_epoch=body.member_epoch,
        instance_id=body.instance_id,
        rack_id=body.rack_id,
        rebalance_timeout_ms=body.rebalance_timeout_ms,
        topic_names=None if names is None else tuple(names),
        topic_regex=body.subscribed_topic_regex,
        assignor=body.server_assignor,
        owned=(
            None
            if owned is None
            else frozenset((each.topic_id, index) for each in owned for index in each.partitions)
        ),
        has_empty_rows=any(not each.partitions for each in owned or ()),
        client_id=call.client_id or "",
        client_host=client_host(call),
        needs_member_id=call.version >= 1,
        visible=visible,
    )
