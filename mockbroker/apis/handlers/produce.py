"""Produce (0): appends batches to logs by the rules of ``simulation.log.producing``.

Versions: 1 throttle time; 2 magic 1; 3 transactional id, and one batch of magic 2 a partition;
5 log start offset; 7 zstd; 8 record errors (KIP-467); 9 flexible; 10 current leader and node
endpoints (KIP-951); 12 transactions of version 2 (KIP-890); 13 topic ids (KIP-516).

With acks 0 there is no answer: if a partition fails, the connection is closed. With acks -1 the
answer waits for the in-sync replicas, at most ``timeout_ms``. Partitions are answered in the
request's order. Of a partition that it names twice the last data counts that no rule about their
form refuses; if there are others, their error is the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import repeat
from typing import Final

from msgspec import structs

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode
from kproto.messages.produce_request import ProduceRequest, TopicProduceData
from kproto.messages.produce_response import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from mockbroker.apis.common.group_answers import GroupAnswer
from mockbroker.apis.common.log_waits import wait_for_replicas
from mockbroker.apis.common.refusals import refusal
from mockbroker.apis.common.request_partitions import distinct_partitions
from mockbroker.apis.registry import Answer, Call, register
from mockbroker.errors import UnreadableError
from mockbroker.simulation.log.producing.appender import AppendOutcome, ReplicationWait
from mockbroker.simulation.log.producing.produce_rules import (
    ALL_IN_SYNC,
    RequestFacts,
    has_unknown_codec,
)
from mockbroker.simulation.releases.facts import NULLS_READ
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType
from mockbroker.simulation.state.cluster_parts import Topic, TopicPartition, find_partition
from mockbroker.simulation.state.metadata_views import MetadataView
from mockbroker.simulation.state.timers import Later, wait_for_call
from mockbroker.simulation.transactions.verification import Verification, VerificationRequest

__all__ = ["produce"]

_ABORTABLE_SINCE: Final = 11
_TRIES: Final = 5
_BACKOFF_MS: Final = 20
"""A broker asks the coordinator again every 20 ms, for 100 ms at most."""
_CODECS_KNOWN_SINCE: Final = 7

_Outcomes = Sequence[tuple[TopicProduceData, Sequence[AppendOutcome]]]


@register(0, "0-13")
def produce(call: Call) -> Answer:
    request = _named_once(call)
    facts = _facts(call, call.body)
    refused = call.cluster.appender.refusal(facts)
    if refused is not None:
        if refused.disconnects:
            raise UnreadableError(refused.disconnects)
        if request.acks == 0 and any(topic.partition_data for topic in request.topic_data):
            call.session.ended = True
        return refusal(call, refused.error, refused.text, extent="everywhere")
    if facts.producers and request.transactional_id is not None:
        return _transactional(call, request, facts)
    return _append_all(call, request, facts)


def _append_all(call: Call, request: ProduceRequest, facts: RequestFacts) -> Answer:
    outcomes = _append(call, request, facts)
    wait = None
    if request.acks == ALL_IN_SYNC:
        waiting = [each for _, row in outcomes for each in row if not each.is_replicated]
        wait = call.cluster.appender.wait(waiting) if waiting else None
    held = call.cluster.appender.holds
    if request.acks and held:
        appended = {each.tp for _, row in outcomes for each in row}
        if held.covers(appended):
            return Later(lambda: _held(call, outcomes, appended, wait))
    if wait is not None and not wait.is_over:
        return Later(lambda: _later(call, outcomes, wait))
    return _response(call, outcomes)


# ---- transactions --------------------------------------------------------------------------------


def _transactional(call: Call, request: ProduceRequest, facts: RequestFacts) -> Answer:
    """Append once the transaction's coordinator confirms the partitions (KIP-890)."""
    producer_id, epoch = next(iter(facts.producers))  # since 3.6 there is one
    question = VerificationRequest(
        request.transactional_id or "",
        producer_id,
        epoch,
        facts.adds_partitions,
        knows_abortable=call.version >= _ABORTABLE_SINCE,
    )

    def ask() -> GroupAnswer[Verification]:
        answer = GroupAnswer[Verification]()
        sequences = _in_transaction(call, request, facts)
        call.cluster.verifier.verify(question, sequences, answer.give)
        return answer

    def append(found: Verification) -> Answer:
        facts.unverified = found.errors
        facts.guards = found.guards if call.cluster.verifier.guards(question) else None
        return _append_all(call, request, facts)

    answer = ask()
    found = answer.result
    if found is None or (found.is_concurrent and question.adds):
        return Later(lambda: _verified_later(call, question.adds, answer, ask, append))
    return append(found)


async def _verified_later(
    call: Call,
    adds: bool,
    answer: GroupAnswer[Verification],
    ask: Callable[[], GroupAnswer[Verification]],
    append: Callable[[Verification], Answer],
) -> Message:
    """Wait for the coordinator. While it ends the transaction before, ask it for a while."""
    for _ in range(_TRIES):
        await wait_for_call(answer.notify)
        assert answer.result is not None, "that is what it waited for"
        if not (answer.result.is_concurrent and adds):
            break
        await wait_for_call(lambda called: None, _BACKOFF_MS, call.cluster.wait_timers)
        answer = ask()
    await wait_for_call(answer.notify)
    assert answer.result is not None, "that is what it waited for"
    answered = append(answer.result)
    return answered if isinstance(answered, Message) else await answered


def _in_transaction(
    call: Call, request: ProduceRequest, facts: RequestFacts
) -> dict[TopicPartition, int]:
    """The partitions that have to be part of the transaction, with their first sequences."""
    view = call.cluster.controller.metadata_view(call.broker_id)
    found = {}
    for topic in request.topic_data:
        name, may_write, known = _access(call, topic, view)
        for each in topic.partition_data:
            sequence = call.cluster.appender.transactional_sequence(
                call.broker_id,
                name,
                each.index,
                each.records,
                facts,
                may_write=may_write,
                is_known=known is not None and known.partition(each.index) is not None,
            )
            if sequence is not None:
                found[name or "", each.index] = sequence
    return found


# ---- waiting -------------------------------------------------------------------------------------


async def _held(
    call: Call,
    outcomes: _Outcomes,
    appended: Collection[TopicPartition],
    wait: ReplicationWait | None,
) -> ProduceResponse:
    """Wait until the tester releases the answer, then for the replicas."""
    holds = call.cluster.appender.holds
    waiting: list[Callable[[], None]] = []

    def register(released: Callable[[], None]) -> None:
        waiting.append(released)
        holds.when_released(appended, released)

    released = False
    try:
        released = await wait_for_call(register)
    finally:
        for each in waiting:
            holds.forget(each)
        if wait is not None and not released:
            wait.end()
    if wait is not None and not wait.is_over:
        return await _later(call, outcomes, wait)
    return _response(call, outcomes)


async def _later(call: Call, outcomes: _Outcomes, wait: ReplicationWait) -> ProduceResponse:
    await wait_for_replicas(wait, call.body.timeout_ms, call.cluster.wait_timers)
    return _response(call, outcomes)


def _facts(call: Call, request: ProduceRequest) -> RequestFacts:
    records = [part.records for topic in request.topic_data for part in topic.partition_data]
    if None in records and not call.release.has(NULLS_READ):
        raise UnreadableError("a partition without records, which Kafka does not read")
    facts = RequestFacts(
        request.acks, call.version, call.client_id, request.transactional_id, data=records
    )
    if call.version < _CODECS_KNOWN_SINCE:
        facts.names_unknown_codec = _names_unknown_codec(call, request)
    producers = []
    for data, layout in zip(records, facts.layouts, strict=True):
        header = layout.first_header(data)
        if header is None:
            continue
        has_producer = header.producer_id >= 0
        facts.is_idempotent = facts.is_idempotent or has_producer
        if header.is_transactional:
            facts.is_transactional = True
            if has_producer:
                producers.append((header.producer_id, header.producer_epoch))
    if facts.is_transactional:
        facts.producers = frozenset(producers)
        facts.has_authorizer = call.authorizer is not None
        facts.may_write_id = call.authorizes(
            AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id or ""
        )
    if facts.is_idempotent:
        facts.may_be_idempotent = call.authorizes(AclOperation.IDEMPOTENT_WRITE)
    return facts


def _names_unknown_codec(call: Call, request: ProduceRequest) -> bool:
    topics = call.cluster.controller.metadata_view(call.broker_id).topics
    return any(
        has_unknown_codec(partition.records)
        and topic.name in topics
        and topics[topic.name].partition(partition.index) is not None
        for topic in request.topic_data
        for partition in topic.partition_data
    )


def _named_once(call: Call) -> ProduceRequest:
    """The request without the data that a later row of the same partition replaces. Data that are
    refused for their form replace no others: a partition may have a row of each."""
    request: ProduceRequest = call.body
    topics = request.topic_data
    by_id = call.version >= 13
    keys = [topic.topic_id if by_id else topic.name for topic in topics]
    if len(set(keys)) == len(keys) and all(map(_has_distinct_partitions, topics)):
        return request
    has_valid_form = call.cluster.appender.has_valid_form
    distinct = distinct_partitions(
        topics,
        lambda topic: topic.topic_id if by_id else topic.name,
        lambda topic: topic.partition_data,
        lambda partition: (partition.index, has_valid_form(call.version, partition.records)),
    )
    topics = [structs.replace(topic, partition_data=rows) for topic, rows in distinct]
    return structs.replace(request, topic_data=topics)


def _has_distinct_partitions(topic: TopicProduceData) -> bool:
    """Whether there are partitions, and none is named twice."""
    rows = topic.partition_data
    return len(rows) == 1 or 0 < len({each.index for each in rows}) == len(rows)


def _append(call: Call, request: ProduceRequest, facts: RequestFacts) -> _Outcomes:
    broker_id = call.session.broker_id
    view = call.cluster.controller.metadata_view(broker_id)
    append = call.cluster.appender.append
    has_valid_form = call.cluster.appender.has_valid_form
    layouts = iter(facts.layouts) if request is call.body else repeat(None)
    outcomes = []
    for topic in request.topic_data:
        name, may_write, found = _access(call, topic, view)
        row: dict[int, AppendOutcome] = {}
        for each in topic.partition_data:
            outcome = append(
                broker_id,
                name,
                each.index,
                each.records,
                facts,
                may_write=may_write,
                is_known=found is not None and found.partition(each.index) is not None,
                knows_topic=found is not None,
                layout=next(layouts),
            )
            if each.index not in row or not has_valid_form(call.version, each.records):
                row[each.index] = outcome
        outcomes.append((topic, list(row.values())))
    return outcomes


def _access(
    call: Call, topic: TopicProduceData, view: MetadataView
) -> tuple[str | None, bool, Topic | None]:
    """The topic's name, None if its id is unknown; whether the caller may write to it; the topic as
    this broker knows it."""
    name: str | None = topic.name
    if call.version >= 13:
        found = view.topic_by_id(topic.topic_id)
        name = None if found is None else found.name
    else:
        found = view.topics.get(topic.name)
    return (
        name,
        name is None or call.authorizes(AclOperation.WRITE, ResourceType.TOPIC, name),
        found,
    )


def _response(call: Call, outcomes: _Outcomes) -> ProduceResponse:
    response = ProduceResponse(responses=[])
    has_failed = False
    for topic, row in outcomes:
        answers = []
        for each in row:
            answers.append(_partition(each))
            has_failed = has_failed or each.error != 0
        response.responses.append(
            TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=answers
            )
        )
    if has_failed and call.body.acks == 0:
        call.session.ended = True
    if has_failed and call.version >= 10:
        _add_leaders(call, response, outcomes)
    return response


def _partition(outcome: AppendOutcome) -> PartitionProduceResponse:
    response = PartitionProduceResponse(
        index=outcome.tp[1],
        error_code=int(outcome.error),  # the native codec leaves enums to the slow one
        base_offset=outcome.base_offset,
        log_append_time_ms=outcome.log_append_time_ms,
        log_start_offset=outcome.log_start_offset,
    )
    if outcome.text is not None:
        response.error_message = outcome.text
        response.record_errors = [
            BatchIndexAndErrorMessage(
                batch_index=each.batch_index, batch_index_error_message=each.text
            )
            for each in outcome.record_errors
        ]
    return response


def _add_leaders(call: Call, response: ProduceResponse, outcomes: _Outcomes) -> None:
    """Tell clients that came to the wrong broker which one leads (KIP-951)."""
    view = call.cluster.controller.metadata_view(call.broker_id)
    leaders: dict[int, None] = {}
    for topic, (_, row) in zip(response.responses, outcomes, strict=True):
        for partition, outcome in zip(topic.partition_responses, row, strict=True):
            if outcome.error != ErrorCode.NOT_LEADER_OR_FOLLOWER:
                continue
            found = find_partition(view.topics, outcome.tp)
            if found is not None:
                partition.current_leader = LeaderIdAndEpoch(
                    leader_id=found.leader, leader_epoch=found.leader_epoch
                )
                leaders[found.leader] = None
    if leaders:
        response.node_endpoints = [
            NodeEndpoint(node_id=each.broker_id, host=each.host, port=each.port, rack=each.rack)
            for each in call.reached(view.live_brokers())
            if each.broker_id in leaders
        ]
