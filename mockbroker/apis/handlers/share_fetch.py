"""ShareFetch (78, KIP-932): a member of a share group acquires records, if need be after a wait.

Versions: 1 limits of records (``max_records``, ``batch_size``) and the time that locks hold; 2
acquire mode (KIP-1206) and renewal of locks (KIP-1222). Acknowledgements come along.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from functools import partial

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode
from kproto.messages.share_fetch_request import ShareFetchRequest
from kproto.messages.share_fetch_response import (
    AcquiredRecords,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.common.refusals import refusal
from mockbroker.apis.common.requirements import Requirement, silent
from mockbroker.apis.common.share_answers import (
    acknowledge,
    add_leader,
    complete,
    has_unnamed_topic,
    lock_ms,
    share_session_requirements,
    topic_name,
)
from mockbroker.apis.registry import Answer, Call, register
from mockbroker.simulation.groups.modern.partitions import TopicIdPartition
from mockbroker.simulation.groups.share.share_fetches import (
    ShareAnswer,
    ShareQuery,
    StartedShareFetch,
)
from mockbroker.simulation.groups.share.share_partition import StartedAcknowledgement
from mockbroker.simulation.groups.share.share_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    ShareSession,
)
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_parts import Broker
from mockbroker.simulation.state.timers import Later, sleep, wait_for_call

__all__ = ["share_fetch"]

_BATCH_OPTIMIZED = 0
_RECORD_LIMIT = 1
"""The acquire mode in which no more records than ``max_records`` are acquired."""


def _is_renewal(call: Call) -> bool:
    return call.version >= 2 and bool(call.body.is_renew_ack)


def _renewal_error(call: Call) -> int:
    body: ShareFetchRequest = call.body
    fetches = body.max_bytes or body.min_bytes or body.max_records or body.max_wait_ms
    return ErrorCode.INVALID_REQUEST if _is_renewal(call) and fetches else ErrorCode.NONE


@register(78, "1-2", requires=(*share_session_requirements, *silent(Requirement(_renewal_error))))
def share_fetch(call: Call) -> Answer:
    body: ShareFetchRequest = call.body
    code, session = _open(call)
    if code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
        return Later(partial(_later_refusal, call, code))
    if code:
        return refusal(call, code)
    if call.authorizer is not None and _has_unnamed_topic(call, session):
        return refusal(call, ErrorCode.UNKNOWN_SERVER_ERROR)
    acknowledged = acknowledge(call, _acknowledgements(body), _readable(call, _requested(body)))
    if session is None or _is_renewal(call):
        complete(acknowledged)
        return _response(call, session, [], acknowledged)
    failed, query = _query(call, session)
    # Kafka reads the mode only once there is something to fetch.
    if query.partitions and not _is_acquire_mode(call):
        complete(acknowledged)
        return refusal(call, ErrorCode.UNKNOWN_SERVER_ERROR)
    started = call.cluster.share_fetches.start(query)
    answers = started.answer() if started.wait is None else []
    # Kafka stores acknowledgements while it looks for records: those that the request releases are
    # available once there was nothing else to acquire.
    complete(acknowledged)
    if started.wait is None:
        return _response(call, session, [*failed, *answers], acknowledged)
    return Later(partial(_later, call, session, started, failed, acknowledged))


async def _later_refusal(call: Call, code: ErrorCode) -> Message:
    """A client that gets no session is to come back only after a while."""
    await sleep(max(call.body.max_wait_ms, 0) / 1000)
    return refusal(call, code)


async def _later(
    call: Call,
    session: ShareSession,
    started: StartedShareFetch,
    failed: list[ShareAnswer],
    acknowledged: Mapping[TopicIdPartition, StartedAcknowledgement],
) -> Message:
    """If the client disconnects, the wait is withdrawn."""
    fetches, wait = call.cluster.share_fetches, started.wait
    assert wait is not None, "a fetch that needs no wait is answered at once"
    try:
        await wait_for_call(
            partial(fetches.begin_wait, wait), call.body.max_wait_ms, call.cluster.wait_timers
        )
    finally:
        fetches.end_wait(wait)
    return _response(call, session, [*failed, *started.answer()], acknowledged)


# ---- the request ---------------------------------------------------------------------------------


def _is_acquire_mode(call: Call) -> bool:
    return call.version < 2 or call.body.share_acquire_mode in (_BATCH_OPTIMIZED, _RECORD_LIMIT)


def _open(call: Call) -> tuple[ErrorCode, ShareSession | None]:
    body: ShareFetchRequest = call.body
    fetches, connection_id = call.cluster.share_fetches, call.session.connection_id
    group_id, member_id = body.group_id or "", body.member_id or ""
    code, session = fetches.open(
        call.broker_id,
        group_id,
        member_id,
        body.share_session_epoch,
        connection_id,
        acknowledges=any(batches for _, batches in _acknowledgements(body)),
        added=_requested(body),
        forgotten=[
            (topic.topic_id, index)
            for topic in body.forgotten_topics_data
            for index in topic.partitions
        ],
    )
    if session is not None and body.share_session_epoch == INITIAL_EPOCH:
        call.session.at_close["share session"] = partial(
            fetches.connection_closed, call.broker_id, connection_id, group_id
        )
    return code, session


def _requested(body: ShareFetchRequest) -> list[TopicIdPartition]:
    return [
        (topic.topic_id, each.partition_index) for topic in body.topics for each in topic.partitions
    ]


def _acknowledgements(body: ShareFetchRequest) -> list[tuple[TopicIdPartition, list[object]]]:
    return [
        ((topic.topic_id, each.partition_index), list(each.acknowledgement_batches))
        for topic in body.topics
        for each in topic.partitions
        if each.acknowledgement_batches
    ]


def _has_unnamed_topic(call: Call, session: ShareSession | None) -> bool:
    """Whether the request or its session has a topic that the broker has never known."""
    known = session.names if session is not None else {}
    partitions = [*_requested(call.body), *(session.partitions if session is not None else ())]
    return has_unnamed_topic(call, (id_ for id_, _ in partitions if id_ not in known))


def _readable(call: Call, partitions: Iterable[TopicIdPartition]) -> frozenset[str]:
    names = {topic_name(call, topic_id) for topic_id, _ in partitions}
    return authorized_names(call, (name for name in names if name is not None), AclOperation.READ)


def _query(call: Call, session: ShareSession) -> tuple[list[ShareAnswer], ShareQuery]:
    """The partitions of the session that can be fetched, and the errors of the others."""
    body: ShareFetchRequest = call.body
    for topic_id, _ in session.partitions:
        name = topic_name(call, topic_id)
        if name is not None:
            session.names[topic_id] = name
    readable = authorized_names(call, session.names.values(), AclOperation.READ)
    failed: list[ShareAnswer] = []
    partitions: list[tuple[str, TopicIdPartition]] = []
    view = call.cluster.controller.metadata_view(call.broker_id)
    for key in session.partitions:
        name = topic_name(call, key[0]) or session.names.get(key[0])
        topic = view.topics.get(name or "")
        if name is None:
            failed.append(ShareAnswer(key, ErrorCode.UNKNOWN_TOPIC_ID))
        elif name not in readable:
            failed.append(ShareAnswer(key, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif topic is None or topic.partition(key[1]) is None:
            failed.append(ShareAnswer(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        else:
            partitions.append((name, key))
    return failed, ShareQuery(
        broker_id=call.broker_id,
        group_id=body.group_id or "",
        member_id=body.member_id or "",
        session_epoch=body.share_session_epoch,
        partitions=partitions,
        max_wait_ms=body.max_wait_ms,
        min_bytes=body.min_bytes,
        max_bytes=body.max_bytes,
        max_records=body.max_records,
        batch_size=body.batch_size,
        strict=call.version >= 2 and body.share_acquire_mode == _RECORD_LIMIT,
    )


# ---- the response --------------------------------------------------------------------------------


def _response(
    call: Call,
    session: ShareSession | None,
    answers: Iterable[ShareAnswer],
    acknowledged: Mapping[TopicIdPartition, StartedAcknowledgement],
) -> Message:
    body: ShareFetchRequest = call.body
    rows: dict[TopicIdPartition, PartitionData] = {
        each.partition: _partition(each) for each in answers if _is_sent(call, session, each)
    }
    unknown = has_unnamed_topic(call, (topic_id for topic_id, _ in rows))
    code = call.cluster.share_fetches.answer_error(names_unknown_topic=unknown)
    if code:
        return refusal(call, code)
    for key, each in acknowledged.items():
        row = rows.setdefault(key, PartitionData(partition_index=key[1], records=b""))
        row.acknowledge_error_code, row.acknowledge_error_message = each.code, each.text
    topics: dict[uuid.UUID, ShareFetchableTopicResponse] = {}
    endpoints: dict[int, Broker] = {}
    for (topic_id, _), row in rows.items():
        topic = topics.setdefault(
            topic_id, ShareFetchableTopicResponse(topic_id=topic_id, partitions=[])
        )
        topic.partitions.append(row)
        add_leader(call, topic_id, row, endpoints)
    if body.share_session_epoch == FINAL_EPOCH:
        call.cluster.share_fetches.end_session(
            call.broker_id, body.group_id or "", body.member_id or ""
        )
    return ShareFetchResponse(
        acquisition_lock_timeout_ms=lock_ms(call),
        responses=list(topics.values()),
        node_endpoints=[
            NodeEndpoint(node_id=each.broker_id, host=each.host, port=each.port, rack=each.rack)
            for each in endpoints.values()
        ],
    )


def _is_sent(call: Call, session: ShareSession | None, answer: ShareAnswer) -> bool:
    """Partitions without news are left out, but in the first answer of a session."""
    if session is None or call.body.share_session_epoch == 0:
        return True
    owed = session.partitions.get(answer.partition, False)
    if answer.partition in session.partitions:
        session.partitions[answer.partition] = bool(answer.error_code)
    return owed or bool(answer.records) or bool(answer.error_code)


def _partition(answer: ShareAnswer) -> PartitionData:
    return PartitionData(
        partition_index=answer.partition[1],
        error_code=answer.error_code,
        error_message=answer.error_message,
        records=answer.records,
        acquired_records=[
            AcquiredRecords(first_offset=first, last_offset=last, delivery_count=times)
            for first, last, times in answer.acquired
        ],
    )
