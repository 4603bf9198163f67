"""TxnOffsetCommit (28): store offsets of a group that count once a transaction commits.

Versions: 1 response on quota violation; 2 leader epochs; 3 flexible, the consumer's member and
generation (KIP-447); 4 TRANSACTION_ABORTABLE(120); 5 the group's partition joins the transaction by
itself (KIP-890); 6 topic ids. Each partition has an error of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kproto.error_codes import ErrorCode
from kproto.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
)
from kproto.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from mockbroker.apis.common.group_answers import GroupAnswer, coordinator_error, when_answered
from mockbroker.apis.common.offset_rows import (
    OffsetRow,
    OffsetTopic,
    checked_topics,
    set_codes,
    valid_rows,
)
from mockbroker.apis.common.requirements import group_access, transaction_access
from mockbroker.apis.registry import Answer, Call, register
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.coordinators.group_facts import GroupCommit
from mockbroker.simulation.coordinators.offset_rules import OffsetToCommit
from mockbroker.simulation.log.logs import InternalProducer
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.transactions.verification import Verification, VerificationRequest

__all__ = ["txn_offset_commit"]

_LOADING_SINCE_VERSION: Final = 2
_ABORTABLE_SINCE_VERSION: Final = 4
_ADDS_SINCE_VERSION: Final = 5
_IDS_SINCE_VERSION: Final = 6
_Codes = Sequence[ErrorCode]


@register(28, "0-6", requires=(transaction_access(), group_access(AclOperation.READ)))
def txn_offset_commit(call: Call) -> Answer:
    request: TxnOffsetCommitRequest = call.body
    topics = checked_topics(call, request.topics, by_id=call.version >= _IDS_SINCE_VERSION)
    valid = valid_rows(topics)
    if not valid:
        return _response(call, topics)
    answer = GroupAnswer[_Codes]()
    code = _group_error(call, request.group_id)
    if code:
        answer.give([code] * len(valid))
    else:
        _verify(call, valid, answer)

    def respond(codes: _Codes) -> TxnOffsetCommitResponse:
        set_codes(topics, codes)
        return _response(call, topics)

    return when_answered(answer, respond)


def _group_error(call: Call, group_id: str) -> ErrorCode:
    if not group_id and call.release.has(facts.TRANSACTIONAL_OFFSETS_NEED_GROUP):
        return ErrorCode.INVALID_GROUP_ID
    return coordinator_error(call, group_id)


def _verify(call: Call, valid: list[OffsetRow], answer: GroupAnswer[_Codes]) -> None:
    """Ask the transaction's coordinator, then commit."""
    request: TxnOffsetCommitRequest = call.body
    question = VerificationRequest(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        adds=call.version >= _ADDS_SINCE_VERSION,
        knows_abortable=call.version >= _ABORTABLE_SINCE_VERSION,
    )
    tp = call.cluster.coordinators.partition_of(CoordinatorKind.GROUP, request.group_id)

    def verified(found: Verification) -> None:
        if tp in found.errors:
            answer.give([found.errors[tp][0]] * len(valid))
            return
        producer = InternalProducer(
            request.producer_id,
            request.producer_epoch,
            call.cluster.verifier.guards(question),
            found.guards.get(tp),
        )
        _commit(call, valid, producer, answer)

    call.cluster.verifier.verify(question, [tp], verified, produces=False)


def _commit(
    call: Call, valid: list[OffsetRow], producer: InternalProducer, answer: GroupAnswer[_Codes]
) -> None:
    request: TxnOffsetCommitRequest = call.body
    code = call.cluster.offsets.groups.validate_commit(
        GroupCommit(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            call.version,
            transactional=True,
            partitions=[row.tp for row in valid],
            stores=call.cluster.offsets.accepts_any(_offset(row.partition) for row in valid),
        )
    )
    if code:
        answer.give([code] * len(valid))
        return
    commitment = call.cluster.offsets.commit(
        request.group_id, [(row.tp, _offset(row.partition)) for row in valid], producer=producer
    )
    commitment.when_done(lambda: answer.give(commitment.results or []))


def _offset(partition: TxnOffsetCommitRequestPartition) -> OffsetToCommit:
    return OffsetToCommit(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
    )


def _response(call: Call, topics: list[OffsetTopic]) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=row.partition.partition_index, error_code=_shown(call, row)
                    )
                    for row in found.rows
                ],
            )
            for topic, found in zip(call.body.topics, topics, strict=True)
            if found.is_answered
        ]
    )


def _shown(call: Call, row: OffsetRow) -> ErrorCode:
    """Clients of the first versions crash when they read that a coordinator loads."""
    is_loading = row.error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if is_loading and call.version < _LOADING_SINCE_VERSION:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return row.error
