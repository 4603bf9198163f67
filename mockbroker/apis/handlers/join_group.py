"""JoinGroup (11): a member joins its group, or joins again as a rebalance asks it to.

Versions: 1 rebalance time-out of its own; 2 throttle time; 4 members without an id get one first
(KIP-394); 5 instance ids (KIP-345); 6 flexible; 7 protocol type, and a null protocol name; 8 reason
(KIP-800); 9 ``skip_assignment`` (KIP-814). The answer waits until all members have joined.
"""

from __future__ import annotations

from kproto.messages.join_group_request import JoinGroupRequest
from kproto.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from mockbroker.apis.common.group_answers import (
    GroupAnswer,
    client_host,
    coordinator_error,
    when_answered,
)
from mockbroker.apis.common.requirements import group_access
from mockbroker.apis.registry import Answer, Call, register
from mockbroker.simulation.groups.classic.classic_group import JoinRequest, JoinResult
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["join_group"]


@register(11, "0-9", requires=(group_access(AclOperation.READ),))
def join_group(call: Call) -> Answer:
    body: JoinGroupRequest = call.body
    answer = GroupAnswer[JoinResult]()
    error = coordinator_error(call, body.group_id)
    call.cluster.groups.join(_request(call, body), answer.give, error)
    return when_answered(answer, lambda result: _response(call, result))


def _request(call: Call, body: JoinGroupRequest) -> JoinRequest:
    has_rebalance_timeout = call.version >= 1
    return JoinRequest(
        group_id=body.group_id,
        member_id=body.member_id,
        protocol_type=body.protocol_type,
        protocols=tuple((each.name, bytes(each.metadata)) for each in body.protocols),
        session_timeout_ms=body.session_timeout_ms,
        rebalance_timeout_ms=(
            body.rebalance_timeout_ms if has_rebalance_timeout else body.session_timeout_ms
        ),
        instance_id=body.group_instance_id,
        client_id=call.client_id or "",
        client_host=client_host(call),
        needs_member_id=call.version >= 4,
        can_skip_assignment=call.version >= 9,
        reason=body.reason,
    )


def _generation(call: Call, result: JoinResult) -> int:
    if result.error_code and call.release.has(facts.REFUSED_JOINS_AT_ZERO):
        return 0
    return result.generation


def _response(call: Call, result: JoinResult) -> JoinGroupResponse:
    name = result.protocol_name
    if call.version < 7:
        name = name or ""
    elif name == "" and call.release.has(facts.EMPTY_PROTOCOL_NAMES_NULL):
        name = None
    return JoinGroupResponse(
        error_code=result.error_code,
        generation_id=_generation(call, result),
        protocol_type=result.protocol_type,
        protocol_name=name,
        leader=result.leader,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=each.member_id, group_instance_id=each.instance_id, metadata=each.metadata
            )
            for each in result.members
        ],
    )
