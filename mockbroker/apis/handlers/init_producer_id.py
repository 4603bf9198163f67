"""InitProducerId (22): a producer id and epoch, for idempotent and for transactional producers.

Versions: 1 response on quota violation; 2 flexible; 3 the id and epoch to recover (KIP-360);
4 PRODUCER_FENCED(90); 5 transactions of version 2 (KIP-890); 6 two-phase commit (KIP-939).
"""

from __future__ import annotations

from typing import Final

from kproto.error_codes import ErrorCode
from kproto.messages.init_producer_id_request import InitProducerIdRequest
from kproto.messages.init_producer_id_response import InitProducerIdResponse
from mockbroker.apis.common.group_answers import GroupAnswer, when_answered
from mockbroker.apis.common.requirements import Requirement, transaction_access
from mockbroker.apis.common.transaction_codes import fenced_code
from mockbroker.apis.registry import Answer, Call, register
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType
from mockbroker.simulation.transactions.transaction_events import InitRequest
from mockbroker.simulation.transactions.transactional_ids import ProducerResult

__all__ = ["init_producer_id"]

_NONE: Final = -1
_FENCED_SINCE_VERSION: Final = 4


def _access_error(call: Call) -> int:
    name = call.body.transactional_id
    if name is None:
        return 0 if _may_be_idempotent(call) else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if error := transaction_access().check(call):
        return error
    may_prepare = not call.body.enable2_pc or call.authorizes(
        AclOperation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID, name
    )
    return 0 if may_prepare else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def _producer_error(call: Call) -> int:
    """An id to recover has an epoch, since version 3."""
    has_id, has_epoch = call.body.producer_id != _NONE, call.body.producer_epoch != _NONE
    return ErrorCode.INVALID_REQUEST if call.version >= 3 and has_id != has_epoch else 0


@register(22, "0-6", requires=(Requirement(_access_error), Requirement(_producer_error)))
def init_producer_id(call: Call) -> Answer:
    request: InitProducerIdRequest = call.body
    if request.transactional_id is None:
        producer_id = call.cluster.producer_ids.next_id(call.broker_id)
        return _response(call, ProducerResult(ErrorCode.NONE, producer_id, 0))
    answer = GroupAnswer[ProducerResult]()
    wanted = InitRequest(
        request.transactional_id,
        request.transaction_timeout_ms,
        request.producer_id,
        request.producer_epoch,
        request.enable2_pc,
        request.keep_prepared_txn,
    )
    call.cluster.transactions.init_producer_id(call.broker_id, wanted, answer.give)
    return when_answered(answer, lambda result: _response(call, result))


def _response(call: Call, result: ProducerResult) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=fenced_code(call, result.code, _FENCED_SINCE_VERSION),
        producer_id=result.producer_id,
        producer_epoch=result.epoch,
    )


def _may_be_idempotent(call: Call) -> bool:
    if call.authorizes(AclOperation.IDEMPOTENT_WRITE):
        return True
    if not call.release.has(facts.ANY_TOPIC_MAKES_IDEMPOTENT):
        return False
    named = {each.resource_name for each in call.cluster.acls}
    return any(
        call.authorizes(AclOperation.WRITE, ResourceType.TOPIC, name)
        for name in {*call.cluster.topics, *named}
    )
