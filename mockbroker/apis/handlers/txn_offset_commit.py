"""TxnOffsetCommit (28): store offsets of a group that count once a transaction commits.

Versions: 1 response on quota violation; 2 leader epochs; 3 flexible, the consumer's member and
generation (KIP-447); 4 TRANSACTION_ABORTABLE(120); 5 the group's partition joins the transaction by
itself (KIP-890); 6 topic ids. Each partition has an error of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from kproto.codec.message import Message
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
from kproto.records.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from mockbroker.apis.common.group_answers import GroupAnswer, coordinator_error, when_answered
from mockbroker.apis.common.offset_rows import OffsetRow, OffsetRows
from mockbroker.apis.common.refusals import refusal
from mockbroker.apis.common.requirements import group_access, transaction_access
from mockbroker.apis.registry import Answer, Call, register
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.coordinators.group_facts import GroupCommit
from mockbroker.simulation.coordinators.offset_rules import OffsetToCommit
from mockbroker.simulation.log.logs import InternalProducer
from mockbroker.simulation.releases import facts, fixes
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.transactions.verification import Verification, VerificationRequest

__all__ = ["txn_offset_commit"]

_LOADING_SINCE_VERSION: Final = 2
_ABORTABLE_SINCE_VERSION: Final = 4
_ADDS_SINCE_VERSION: Final = 5
_IDS_SINCE_VERSION: Final = 6
_Outcome: TypeAlias = Sequence[ErrorCode] | ErrorCode
"""The results of the partitions, or the error of the whole request."""


@register(28, "0-6", requires=(transaction_access(), group_access(AclOperation.READ)))
def txn_offset_commit(call: Call) -> Answer:
    request: TxnOffsetCommitRequest = call.body
    rows = OffsetRows(call, request.topics, by_id=call.version >= _IDS_SINCE_VERSION)
    valid = rows.valid
    if not valid:
        return _response(call, rows)
    answer = GroupAnswer[_Outcome]()
    code = _group_error(call, request.group_id)
    if code:
        answer.give([code] * len(valid))
    else:
        if call.release.has(facts.TRANSACTIONAL_COMMITS_MAKE_GROUPS):
            call.cluster.groups.classic.make_simple(request.group_id)
        _verify(call, valid, answer)

    def respond(outcome: _Outcome) -> Message:
        if isinstance(outcome, ErrorCode):
            return refusal(call, outcome, extent="everywhere")
        rows.set_codes(outcome)
        return _response(call, rows)

    return when_answered(answer, respond)


def _group_error(call: Call, group_id: str) -> ErrorCode:
    if not group_id and call.release.has(facts.TRANSACTIONAL_OFFSETS_NEED_GROUP):
        return ErrorCode.INVALID_GROUP_ID
    return coordinator_error(call, group_id)


def _verify(call: Call, valid: list[OffsetRow], answer: GroupAnswer[_Outcome]) -> None:
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
            call.cluster.verifier.guards(question, produces=False),
            found.guards.get(tp),
        )
        _commit(call, valid, producer, answer)

    call.cluster.verifier.verify(question, {tp: NO_SEQUENCE}, verified, produces=False)


def _commit(
    call: Call, valid: list[OffsetRow], producer: InternalProducer, answer: GroupAnswer[_Outcome]
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
    stores_any = call.release.has(facts.OFFSETS_WITHOUT_PRODUCER_STORED)
    is_plain = stores_any and request.producer_id == NO_PRODUCER_ID
    if stores_any and not is_plain and request.producer_epoch == NO_PRODUCER_EPOCH:
        answer.give(ErrorCode.UNKNOWN_SERVER_ERROR)
        return
    commitment = call.cluster.offsets.commit(
        request.group_id,
        [(row.tp, _offset(row.partition)) for row in valid],
        producer=None if is_plain else producer,
    )
    commitment.when_done(lambda: answer.give(commitment.results or []))


def _offset(partition: TxnOffsetCommitRequestPartition) -> OffsetToCommit:
    return OffsetToCommit(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
    )


def _response(call: Call, rows: OffsetRows) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=name,
                topic_id=topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=row.partition.partition_index, error_code=_shown(call, row)
                    )
                    for row in found
                ],
            )
            for (name, topic_id), found in rows.by_topic()
        ]
    )


def _shown(call: Call, row: OffsetRow) -> ErrorCode:
    """Clients of the first versions crash when they read that a coordinator loads."""
    is_loading = row.error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    older = call.version < _LOADING_SINCE_VERSION and call.release.has(fixes.KAFKA_9656)
    if is_loading and older:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return row.error
