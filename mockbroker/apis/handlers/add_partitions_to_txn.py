"""AddPartitionsToTxn (24): partitions join a transaction, before a producer writes to them.

Versions: 1 response on quota violation; 2 PRODUCER_FENCED(90); 3 flexible; 4 and 5 are for brokers:
several transactions, which may be verified only (KIP-890). All partitions of a transaction are
added, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from kproto.error_codes import ErrorCode
from kproto.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from kproto.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.common.group_answers import GroupAnswer, when_answered
from mockbroker.apis.common.requirements import cluster_access, merged, transaction_access, when
from mockbroker.apis.common.transaction_codes import fenced_code
from mockbroker.apis.registry import Answer, Call, register
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_parts import INTERNAL_TOPICS, TopicPartition

__all__ = ["add_partitions_to_txn"]

_FENCED_SINCE_VERSION: Final = 2
_BROKERS_SINCE_VERSION: Final = 4


class _Row(msgspec.Struct):
    """One transaction of the request. ``codes`` has the error of each partition. Where the request
    names a transaction twice, ``topics`` are those of its last row and ``shown_topics`` those of
    its first, as in Kafka."""

    transactional_id: str
    producer_id: int
    epoch: int
    verify_only: bool
    topics: Sequence[Any]
    shown_topics: Sequence[Any]
    codes: dict[TopicPartition, ErrorCode] | None = None
    echoed: ErrorCode | None = None
    """The error with which the answer lists topics and partitions as the request does."""

    @property
    def partitions(self) -> list[TopicPartition]:
        found = ((topic.name, index) for topic in self.topics for index in topic.partitions)
        return list(dict.fromkeys(found))


def _is_from_broker(call: Call) -> bool:
    return call.version >= _BROKERS_SINCE_VERSION


def _is_from_client(call: Call) -> bool:
    return call.version < _BROKERS_SINCE_VERSION


@register(
    24,
    "0-5",
    requires=(
        when(_is_from_broker, cluster_access(AclOperation.CLUSTER_ACTION)),
        when(_is_from_client, merged(transaction_access("v3_and_below_transactional_id"))),
    ),
)
def add_partitions_to_txn(call: Call) -> Answer:
    request: AddPartitionsToTxnRequest = call.body
    rows = _rows(call, request)
    answer = GroupAnswer[list[_Row]]()
    left = list(rows)

    def finish(row: _Row, codes: dict[TopicPartition, ErrorCode]) -> None:
        row.codes = codes
        left.remove(row)
        if not left:
            answer.give(rows)

    for row in rows:
        _begin(call, row, finish)
    if not rows:
        answer.give(rows)
    return when_answered(answer, lambda done: _response(call, done))


def _rows(call: Call, request: AddPartitionsToTxnRequest) -> list[_Row]:
    if call.version >= _BROKERS_SINCE_VERSION:
        last = {each.transactional_id: each.topics for each in request.transactions}
        first = {each.transactional_id: each.topics for each in reversed(request.transactions)}
        return [
            _Row(each.transactional_id, each.producer_id, each.producer_epoch, each.verify_only,
                 last[each.transactional_id], first[each.transactional_id])
            for each in request.transactions
        ]  # fmt: skip
    topics = request.v3_and_below_topics
    return [
        _Row(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            False,
            topics,
            topics,
        )
    ]


def _begin(
    call: Call, row: _Row, finish: Callable[[_Row, dict[TopicPartition, ErrorCode]], None]
) -> None:
    partitions = row.partitions
    from_client = call.version < _BROKERS_SINCE_VERSION
    failed = _errors(call, partitions)
    if failed:
        not_tried = ErrorCode.OPERATION_NOT_ATTEMPTED
        finish(row, {tp: failed.get(tp, not_tried) for tp in partitions})
        return
    arguments = (
        call.broker_id, row.transactional_id, row.producer_id, row.epoch, partitions,
    )  # fmt: skip
    if row.verify_only:
        finish(row, call.cluster.transactions.verify_partitions(*arguments))
        return

    def done(code: ErrorCode) -> None:
        shown = fenced_code(call, code, _FENCED_SINCE_VERSION)
        if call.release.has(facts.ADDED_PARTITIONS_ECHOED):
            row.echoed = shown
        finish(row, dict.fromkeys(partitions, shown))

    call.cluster.transactions.add_partitions(*arguments, done, version=0 if from_client else 2)


def _errors(call: Call, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
    """The errors of partitions that the caller may not write to, or that do not exist."""
    view = call.cluster.controller.metadata_view(call.broker_id)
    names = {name for name, _ in partitions}
    allowed: Iterable[str] = names
    if call.version < _BROKERS_SINCE_VERSION:
        allowed = authorized_names(call, names - INTERNAL_TOPICS, AclOperation.WRITE)
    failed = {}
    for tp in partitions:
        topic = view.topics.get(tp[0])
        if tp[0] not in allowed:
            failed[tp] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic is None or topic.partition(tp[1]) is None:
            failed[tp] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return failed


def _response(call: Call, rows: list[_Row]) -> AddPartitionsToTxnResponse:
    if call.version < _BROKERS_SINCE_VERSION:
        (row,) = rows
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_topics(row))
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=row.transactional_id, topic_results=_topics(row)
            )
            for row in rows
        ]
    )


def _echoed(row: _Row, code: ErrorCode) -> list[AddPartitionsToTxnTopicResult]:
    """The topics as the request lists them, also those without partitions."""
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                for index in topic.partitions
            ],
        )
        for topic in row.shown_topics
    ]


def _topics(row: _Row) -> list[AddPartitionsToTxnTopicResult]:
    if row.echoed is not None:
        return _echoed(row, row.echoed)
    topics: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (name, index), code in (row.codes or {}).items():
        topic = topics.setdefault(
            name, AddPartitionsToTxnTopicResult(name=name, results_by_partition=[])
        )
        topic.results_by_partition.append(
            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
        )
    return list(topics.values())
