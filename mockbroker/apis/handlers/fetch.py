"""Fetch (1): records from the offsets that a client or a replica has, if need be after a wait.

Versions: 1 throttle time; 2 messages of magic 1; 3 a limit for the whole answer; 4 magic 2,
isolation level, aborted transactions; 5 log start offset; 7 sessions (KIP-227); 9 leader epoch
(KIP-320); 10 zstd (KIP-110); 11 rack and preferred read replica (KIP-392); 12 flexible, diverging
epoch (KIP-595); 13 topic ids (KIP-516); 15 replica state (KIP-903); 16 node endpoints (KIP-951); 17
directory id (KIP-853); 18 the replica's high watermark (KIP-1166).

Records are slices of the log, which large answers hand to the socket without a copy; nothing is
decoded, unless an old version needs older messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final, cast

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode
from kproto.messages.fetch_request import FetchRequest
from kproto.messages.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from mockbroker.apis.common.isolation_levels import ISOLATION_LEVELS, readable_isolation_level
from mockbroker.apis.common.share_answers import LEADER_ERRORS
from mockbroker.apis.registry import Answer, Call, register
from mockbroker.simulation.clients.quotas.throttling import Throttle
from mockbroker.simulation.fetching.fetches import StartedFetch
from mockbroker.simulation.fetching.query import FetchQuery, PartitionAnswer, PartitionPosition
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType
from mockbroker.simulation.state.cluster_parts import find_partition
from mockbroker.simulation.state.timers import Later, wait_for_call

__all__ = ["fetch"]

_MAX_BYTES_SINCE = 3
_RACK_SINCE = 11
_TOPIC_IDS_SINCE = 13
_REPLICA_STATE_SINCE = 15
_ENDPOINTS_SINCE = 16
_LARGE: Final = 64 * 1024
"""Bytes of records that cost more to copy than to write in parts."""


@register(1, "0-18", requires=(readable_isolation_level,))
def fetch(call: Call) -> Answer:
    started = call.cluster.fetches.start(_query(call))
    if started.fails or (
        call.body.isolation_level not in ISOLATION_LEVELS and started.reads_partitions
    ):
        return _failure(call)
    if started.wait is None:
        return _response(call, started)
    return Later(partial(_later, call, started))


async def _later(call: Call, started: StartedFetch) -> Message:
    """If the client disconnects, the wait is withdrawn."""
    fetches, wait = call.cluster.fetches, started.wait
    assert wait is not None, "a fetch that needs no wait is answered at once"
    try:
        await wait_for_call(
            partial(fetches.begin_wait, wait), call.body.max_wait_ms, call.cluster.wait_timers
        )
    finally:
        fetches.end_wait(wait)
    return _response(call, started)


def _failure(call: Call) -> FetchResponse:
    """Fail as a broker does on a request that it cannot make sense of: as a whole, and for clients
    that know topics by name in each partition too."""
    request: FetchRequest = call.body
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    response = FetchResponse(error_code=code, session_id=request.session_id)
    if call.version < _TOPIC_IDS_SINCE:
        positions = _positions(call, request, by_id=False)
        if call.release.has(facts.FAILED_FETCHES_MERGED):
            positions = list({each.key: each for each in positions}.values())
        response.responses = _topics(map(call.cluster.fetches.failed, positions))
    return response


# ---- the request ---------------------------------------------------------------------------------


def _query(call: Call) -> FetchQuery:
    request: FetchRequest = call.body
    version = call.version
    by_id = version >= _TOPIC_IDS_SINCE
    replica_id = _replica_id(call)
    return FetchQuery(
        broker_id=call.broker_id,
        positions=_positions(call, request, by_id),
        max_bytes=request.max_bytes,
        min_bytes=request.min_bytes,
        max_wait_ms=request.max_wait_ms,
        replica_id=replica_id,
        read_committed=request.isolation_level == 1,
        session_id=request.session_id,
        session_epoch=request.session_epoch,
        forgotten=[
            (topic.topic_id if by_id else topic.topic, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        ],
        by_id=by_id,
        rack=request.rack_id if version >= _RACK_SINCE else None,
        cuts_batches=version < _MAX_BYTES_SINCE,
        refused=replica_id >= 0 and not call.authorizes(AclOperation.CLUSTER_ACTION),
        may_read=partial(_may_read, call, replica_id),
        version=version,
    )


def _replica_id(call: Call) -> int:
    """The follower that asks; below 0 if none does."""
    request: FetchRequest = call.body
    if call.version >= _REPLICA_STATE_SINCE:
        return request.replica_state.replica_id
    return request.replica_id


def _may_read(call: Call, replica_id: int, topic: str) -> bool:
    """Replicas need the cluster's permission instead of the topic's."""
    return (
        call.authorizer is None
        or replica_id >= 0
        or call.authorizes(AclOperation.READ, ResourceType.TOPIC, topic)
    )


def _positions(call: Call, request: FetchRequest, by_id: bool) -> list[PartitionPosition]:
    positions = []
    for topic in request.topics:
        name: str | None = topic.topic
        if by_id:
            name = call.cluster.fetches.topic_name(call.broker_id, topic.topic_id)
        positions += [
            PartitionPosition(
                name,
                topic.topic_id,
                each.partition,
                each.fetch_offset,
                each.partition_max_bytes,
                each.current_leader_epoch,
                each.last_fetched_epoch,
            )
            for each in topic.partitions
        ]
    return positions


# ---- the response --------------------------------------------------------------------------------


def _response(call: Call, started: StartedFetch) -> FetchResponse:
    throttle = call.cluster.throttles.of(call.client_id)
    if throttle is not None and throttle.empties_fetches and call.session.owes_records:
        throttle = None  # it has waited
    throttle = throttle or _over_quota(call, started)
    withheld = throttle is not None and throttle.empties_fetches
    result = started.withhold() if withheld else started.answer()
    call.in_parts = call.takes_parts and sum([each.size for each in result.partitions]) >= _LARGE
    response = FetchResponse(
        throttle_time_ms=0 if throttle is None else throttle.milliseconds,
        error_code=result.error_code,
        session_id=result.session_id,
        responses=_topics(result.partitions, in_parts=call.in_parts),
    )
    if call.version >= _ENDPOINTS_SINCE:
        _add_leaders(call, response, result.partitions)
    return response


def _over_quota(call: Call, started: StartedFetch) -> Throttle | None:
    """Return the throttle of a consumer that exceeds its quota with these records."""
    cluster = call.cluster
    if not cluster.quotas.any or _replica_id(call) >= 0:
        return None
    if started.wait is not None:
        started.read_again()
    milliseconds = cluster.meters.fetch(call.session.user, call.client_id or "", started.size)
    return cluster.throttles.lasting(milliseconds) if milliseconds else None


def _topics(
    answers: Iterable[PartitionAnswer], *, in_parts: bool = False
) -> list[FetchableTopicResponse]:
    """Neighbours of one topic share an element, as in Kafka."""
    topics: list[FetchableTopicResponse] = []
    last: object = None
    for answer in answers:
        position = answer.position
        topic = position.key[0]
        if topic != last:
            last = topic
            topics.append(
                FetchableTopicResponse(
                    topic=position.topic or "", topic_id=position.topic_id, partitions=[]
                )
            )
        topics[-1].partitions.append(_partition(answer, in_parts=in_parts))
    return topics


def _partition(answer: PartitionAnswer, *, in_parts: bool) -> PartitionData:
    slices = answer.records
    records = None
    if slices is not None:
        records = cast(bytes, tuple(slices)) if in_parts else b"".join(slices)
    row = PartitionData(
        partition_index=answer.position.partition,
        error_code=answer.error_code,
        high_watermark=answer.high_watermark,
        last_stable_offset=answer.last_stable_offset,
        log_start_offset=answer.log_start_offset,
        aborted_transactions=None
        if answer.aborted is None
        else [
            AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
            for each in answer.aborted
        ],
        preferred_read_replica=answer.preferred_replica,
        records=records,
    )
    if answer.diverging is not None:
        epoch, end_offset = answer.diverging
        row.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return row


def _add_leaders(call: Call, response: FetchResponse, answers: Iterable[PartitionAnswer]) -> None:
    """Tell clients that have come to the wrong broker who leads, and where (KIP-951)."""
    rows = (row for topic in response.responses for row in topic.partitions)
    endpoints: dict[int, NodeEndpoint] = {}
    for answer, row in zip(answers, rows, strict=True):
        if row.error_code not in LEADER_ERRORS:
            continue
        view = call.cluster.controller.metadata_view(call.broker_id)
        partition = find_partition(
            view.topics, (answer.position.topic or "", answer.position.partition)
        )
        if partition is None:
            continue
        leader = partition.leader
        row.current_leader = LeaderIdAndEpoch(leader_id=leader, leader_epoch=partition.leader_epoch)
        broker = view.brokers.get(leader)
        for each in call.reached([broker] if broker is not None and broker.live else []):
            endpoints[leader] = NodeEndpoint(
                node_id=leader, host=each.host, port=each.port, rack=each.rack
            )
    if _replica_id(call) < 0:  # followers know where brokers are
        response.node_endpoints = list(endpoints.values())
