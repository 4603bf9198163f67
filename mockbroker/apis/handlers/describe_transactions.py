"""DescribeTransactions (65, KIP-664): the state of transactional ids at their coordinator.

Version 0 only; flexible. Topics that the caller may not describe are left out.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.messages.describe_transactions_request import DescribeTransactionsRequest
from kproto.messages.describe_transactions_response import (
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType

__all__ = ["describe_transactions"]


@register(65, "0")
def describe_transactions(call: Call) -> DescribeTransactionsResponse:
    request: DescribeTransactionsRequest = call.body
    return DescribeTransactionsResponse(
        transaction_states=[_row(call, each) for each in request.transactional_ids]
    )


def _row(call: Call, transactional_id: str) -> TransactionState:
    row = TransactionState(transactional_id=transactional_id)
    if not call.authorizes(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        row.error_code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return row
    found, row.error_code = call.cluster.transactions.describe(call.broker_id, transactional_id)
    if found is None:
        return row
    view = call.cluster.transactions.view(found)
    row.producer_id = view.producer_id
    row.producer_epoch = view.epoch
    row.transaction_state = view.state
    row.transaction_timeout_ms = view.timeout_ms
    row.transaction_start_time_ms = view.start_ms
    topics: dict[str, list[int]] = {}
    for name, index in view.partitions:
        topics.setdefault(name, []).append(index)
    allowed = authorized_names(call, topics, AclOperation.DESCRIBE)
    row.topics = [
        TopicData(topic=name, partitions=indexes)
        for name, indexes in topics.items()
        if name in allowed
    ]
    return row
