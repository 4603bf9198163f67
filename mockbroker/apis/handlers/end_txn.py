"""EndTxn (26): commit or abort a transaction.

Versions: 1 response on quota violation; 2 PRODUCER_FENCED(90); 3 flexible; 4
TRANSACTION_ABORTABLE(120) in the protocol's range; 5 transactions of version 2 (KIP-890), which
raise the epoch: the response has it. It is answered once the end is written, before the markers
are.
"""

from __future__ import annotations

from typing import Final

from kproto.messages.end_txn_request import EndTxnRequest
from kproto.messages.end_txn_response import EndTxnResponse
from mockbroker.apis.common.group_answers import GroupAnswer, when_answered
from mockbroker.apis.common.requirements import transaction_access
from mockbroker.apis.common.transaction_codes import fenced_code
from mockbroker.apis.registry import Answer, Call, register
from mockbroker.simulation.transactions.transactional_ids import ProducerResult

__all__ = ["end_txn"]

_FENCED_SINCE_VERSION: Final = 2
_VERSION_2_SINCE_VERSION: Final = 5


@register(26, "0-5", requires=(transaction_access(),))
def end_txn(call: Call) -> Answer:
    request: EndTxnRequest = call.body
    answer = GroupAnswer[ProducerResult]()
    call.cluster.transactions.end(
        call.broker_id,
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        answer.give,
        committed=request.committed,
        version=2 if call.version >= _VERSION_2_SINCE_VERSION else 0,
    )
    return when_answered(answer, lambda result: _response(call, result))


def _response(call: Call, result: ProducerResult) -> EndTxnResponse:
    return EndTxnResponse(
        error_code=fenced_code(call, result.code, _FENCED_SINCE_VERSION),
        producer_id=result.producer_id,
        producer_epoch=result.epoch,
    )
