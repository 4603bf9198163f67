"""AddOffsetsToTxn (25): a group's partition of ``__consumer_offsets`` joins a transaction.

Versions: 1 response on quota violation; 2 PRODUCER_FENCED(90); 3 flexible; 4
TRANSACTION_ABORTABLE(120) in the protocol's range. Clients of transactions of version 2 leave it to
TxnOffsetCommit.
"""

from __future__ import annotations

from typing import Final

from kproto.error_codes import ErrorCode
from kproto.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kproto.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from mockbroker.apis.common.group_answers import GroupAnswer, when_answered
from mockbroker.apis.common.requirements import group_access, transaction_access
from mockbroker.apis.common.transaction_codes import fenced_code
from mockbroker.apis.registry import Answer, Call, register
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["add_offsets_to_txn"]

_FENCED_SINCE_VERSION: Final = 2


@register(25, "0-4", requires=(transaction_access(), group_access(AclOperation.READ)))
def add_offsets_to_txn(call: Call) -> Answer:
    request: AddOffsetsToTxnRequest = call.body
    answer = GroupAnswer[ErrorCode]()
    tp = call.cluster.coordinators.partition_of(CoordinatorKind.GROUP, request.group_id)
    call.cluster.transactions.add_partitions(
        call.broker_id,
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [tp],
        answer.give,
    )
    return when_answered(answer, lambda code: _response(call, code))


def _response(call: Call, code: ErrorCode) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=fenced_code(call, code, _FENCED_SINCE_VERSION))
