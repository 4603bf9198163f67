"""ListTransactions (66, KIP-664): the transactional ids that this broker coordinates.

Versions: 1 least duration (KIP-994); 2 a pattern of transactional ids (KIP-1152). All flexible.
Only transactions that the caller may describe are listed.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.messages.list_transactions_request import ListTransactionsRequest
from kproto.messages.list_transactions_response import ListTransactionsResponse
from kproto.messages.list_transactions_response import TransactionState as ListedTransaction
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.consumer.regexes import matching_names, regex_problem
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType
from mockbroker.simulation.transactions.transactional_ids import Transaction, TransactionState

__all__ = ["list_transactions"]


@register(66, "0-2")
def list_transactions(call: Call) -> ListTransactionsResponse:
    request: ListTransactionsRequest = call.body
    transactions = call.cluster.transactions
    if transactions.is_loading(call.broker_id):
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    pattern = request.transactional_id_pattern
    if pattern and regex_problem(pattern) is not None:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    known = {str(each) for each in TransactionState}
    found = [
        each
        for each in transactions.coordinated_by(call.broker_id)
        if _is_wanted(each, request, call.cluster.timers.now_ms)
        and call.authorizes(
            AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, each.transactional_id
        )
    ]
    if pattern:
        matching = matching_names(pattern, [each.transactional_id for each in found])
        found = [each for each in found if each.transactional_id in matching]
    return ListTransactionsResponse(
        unknown_state_filters=[
            each for each in dict.fromkeys(request.state_filters) if each not in known
        ],
        transaction_states=[
            ListedTransaction(
                transactional_id=each.transactional_id,
                producer_id=each.metadata.producer_id,
                transaction_state=str(each.state),
            )
            for each in found
        ],
    )


def _is_wanted(transaction: Transaction, request: ListTransactionsRequest, now_ms: int) -> bool:
    metadata = transaction.metadata
    lasts_ms = now_ms - metadata.start_ms
    return (
        (not request.state_filters or str(metadata.state) in request.state_filters)
        and (not request.producer_id_filters or metadata.producer_id in request.producer_id_filters)
        and (request.duration_filter < 0 or lasts_ms > request.duration_filter)
    )
