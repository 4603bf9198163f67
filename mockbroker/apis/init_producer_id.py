"""InitProducerId (22): a producer id for idempotent producers.

Versions: 1 response on quota violation; 2 flexible; 3 the id and epoch to recover (KIP-360);
4 PRODUCER_FENCED(90); 5 transactions of version 2 (KIP-890); 6 two-phase commit (KIP-939).
Transactional ids need a transaction coordinator, which no broker has here: they get
COORDINATOR_NOT_AVAILABLE(15), which clients retry until their own timeout.
"""

from __future__ import annotations

from typing import Final

from kproto.error_codes import ErrorCode
from kproto.messages.init_producer_id_request import InitProducerIdRequest
from kproto.messages.init_producer_id_response import InitProducerIdResponse
from mockbroker.apis.authorization import may
from mockbroker.apis.registry import Call, register
from mockbroker.security.authorizer import AclOperation, ResourceType

__all__ = ["init_producer_id"]

_NONE: Final = -1
_ANY_TOPIC_SINCE: Final = (2, 8)
"""Since this release a producer that may write to any topic may be idempotent (KIP-679)."""


@register(
    22,
    "0-6",
    gap="the mock has no transaction coordinators, so clients with a transactional id retry until "
    "their time-out",
    gap_of=lambda request: request.transactional_id is not None,
)
def init_producer_id(call: Call) -> InitProducerIdResponse:
    request: InitProducerIdRequest = call.body
    error = _error(call, request)
    if error:
        return InitProducerIdResponse(error_code=error, producer_id=_NONE, producer_epoch=_NONE)
    return InitProducerIdResponse(
        producer_id=call.cluster.producer_ids.next_id(call.broker_id), producer_epoch=0
    )


def _error(call: Call, request: InitProducerIdRequest) -> ErrorCode:
    name = request.transactional_id
    if name is not None and not may(call, ResourceType.TRANSACTIONAL_ID, name):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if name is None and not _may_be_idempotent(call):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if call.version >= 3 and (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        return ErrorCode.INVALID_REQUEST
    if name is None:
        return ErrorCode.NONE
    return ErrorCode.INVALID_REQUEST if not name else ErrorCode.COORDINATOR_NOT_AVAILABLE


def _may_be_idempotent(call: Call) -> bool:
    if may(call, ResourceType.CLUSTER):
        return True
    if call.profile.line < _ANY_TOPIC_SINCE:
        return False
    named = {each.resource_name for each in call.cluster.acls}
    return any(
        call.authorizes(AclOperation.WRITE, ResourceType.TOPIC, name)
        for name in {*call.cluster.topics, *named}
    )
