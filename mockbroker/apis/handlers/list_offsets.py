"""ListOffsets (2): the offset that stands for a timestamp, or for a special negative one.

Versions: 0 asks for starts of segments, up to 3.9; 1 for one offset (KIP-79); 2 isolation level;
4 leader epochs (KIP-320); 5 OFFSET_NOT_AVAILABLE (KIP-207); 6 flexible; 7 to 9 and 11 more special
timestamps (KIP-734, KIP-405, KIP-1005, KIP-1023); 10 a time-out for tiered storage, which the mock
has none of.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from kproto.error_codes import ErrorCode
from kproto.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kproto.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.common.isolation_levels import ISOLATION_LEVELS, readable_isolation_level
from mockbroker.apis.common.partition_views import known_partition
from mockbroker.apis.common.request_partitions import distinct_partitions
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.fetching.list_offsets import (
    CONSUMER,
    DEBUGGER,
    TIMESTAMPS_CHECKED,
    OffsetQuery,
    is_unsupported_timestamp,
    lacks_debugged_replica,
    list_offset,
    old_timestamp_error,
    segment_starts,
)
from mockbroker.simulation.log.replicas.leadership import access_error
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release, by_release
from mockbroker.simulation.releases.rows import (
    Refusable,
    Row,
    always,
    apply_first,
    refuse,
    rows_of_release,
)
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["list_offsets"]

_EPOCH_VERSION = 4


@register(2, "0-11", requires=(readable_isolation_level,))
def list_offsets(call: Call) -> ListOffsetsResponse:
    request: ListOffsetsRequest = call.body
    allowed = authorized_names(
        call, (topic.name for topic in request.topics), AclOperation.DESCRIBE
    )
    named = Counter(
        (topic.name, each.partition_index) for topic in request.topics for each in topic.partitions
    )
    answer = _segments_of if call.version == 0 else _offset_of
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    answer(call, (topic.name, each.partition_index), each, named)
                    if topic.name in allowed
                    else _error(each.partition_index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                    for each in partitions
                ],
            )
            for topic, partitions in _partitions(call)
        ]
    )


class _Named:
    """The partitions of a request by topic, as they are answered."""

    def __init__(self, request: ListOffsetsRequest) -> None:
        self.topics: list[tuple[ListOffsetsTopic, list[ListOffsetsPartition]]] = [
            (topic, topic.partitions) for topic in request.topics
        ]
        self.isolation_level = request.isolation_level


def _answer_once(named: _Named) -> None:
    """A partition that the request names twice is answered once, a topic without partitions not at
    all."""
    named.topics = distinct_partitions(
        (topic for topic, _ in named.topics),
        lambda topic: topic.name,
        lambda topic: topic.partitions,
        lambda partition: partition.partition_index,
    )


def _has_isolation_level(named: _Named) -> bool:
    return named.isolation_level in ISOLATION_LEVELS


REPETITIONS: Final[tuple[Row[_Named, _Named], ...]] = (
    Row("DP-LISTOFF-14", always, (_answer_once,), until=(2, 7)),
    Row("DP-LISTOFF-14", _has_isolation_level, (_answer_once,), since=(4, 0)),
)


class _Isolation(NamedTuple):
    """The isolation level of a partition's query. ``duplicate``: the request names the partition
    more than once. ``unsupported``: its version has no such timestamp. ``is_client``: no
    replica sent the request."""

    level: int
    duplicate: bool
    unsupported: bool
    is_client: bool

    @property
    def is_read_in_vain(self) -> bool:
        """Whether Kafka fails as it reads the level, up to 3.9 of clients only."""
        return self.is_client and self.level not in ISOLATION_LEVELS


class _Refused(Refusable):
    code = ErrorCode.NONE


ISOLATION: Final[tuple[Row[_Isolation, _Refused], ...]] = (
    Row(
        "DP-LISTOFF-10",
        lambda at: at.is_read_in_vain and at.duplicate,
        (refuse(ErrorCode.INVALID_REQUEST),),
        until=(4, 0),
    ),
    Row(
        "DP-LISTOFF-15",
        lambda at: at.is_read_in_vain and at.unsupported,
        (refuse(ErrorCode.UNSUPPORTED_VERSION),),
        since=TIMESTAMPS_CHECKED,
        until=(4, 0),
    ),
    Row(
        "DP-LISTOFF-15",
        lambda at: at.is_read_in_vain,
        (refuse(ErrorCode.UNKNOWN_SERVER_ERROR),),
        until=(4, 0),
    ),
    Row(
        "DP-LISTOFF-15",
        lambda at: at.level not in ISOLATION_LEVELS,
        (refuse(ErrorCode.UNKNOWN_SERVER_ERROR),),
        since=(4, 0),
    ),
)
"""What decides before the offset is looked up."""


@by_release
def _isolation(release: Release) -> tuple[Row[_Isolation, _Refused], ...]:
    return rows_of_release(ISOLATION, release)


@by_release
def _repetitions(release: Release) -> tuple[Row[_Named, _Named], ...]:
    return rows_of_release(REPETITIONS, release)


def _partitions(call: Call) -> list[tuple[ListOffsetsTopic, list[ListOffsetsPartition]]]:
    named = _Named(call.body)
    apply_first(_repetitions(call.cluster.logs.release), named, named)
    return named.topics


def _error(index: int, code: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=code)


def _offset_of(
    call: Call, tp: TopicPartition, requested: ListOffsetsPartition, named: Counter[TopicPartition]
) -> ListOffsetsPartitionResponse:
    request: ListOffsetsRequest = call.body
    refused = _Refused()
    if apply_first(
        _isolation(call.cluster.logs.release),
        _Isolation(
            request.isolation_level,
            named[tp] > 1,
            is_unsupported_timestamp(requested.timestamp, call.version),
            request.replica_id == CONSUMER,
        ),
        refused,
    ):
        return _error(requested.partition_index, refused.code)
    query = OffsetQuery(
        tp,
        call.broker_id,
        requested.timestamp,
        call.version,
        requested.current_leader_epoch,
        request.replica_id,
        read_committed=request.isolation_level == 1,
        duplicate=named[tp] > 1,
    )
    found = list_offset(call.cluster.logs, known_partition(call, tp), query)
    return ListOffsetsPartitionResponse(
        partition_index=requested.partition_index,
        error_code=found.error_code,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch if call.version >= _EPOCH_VERSION else -1,
    )


def _segments_of(
    call: Call, tp: TopicPartition, requested: ListOffsetsPartition, _named: Counter[TopicPartition]
) -> ListOffsetsPartitionResponse:
    request: ListOffsetsRequest = call.body
    leader_only = request.replica_id != DEBUGGER
    release, partition = call.cluster.logs.release, known_partition(call, tp)
    code = old_timestamp_error(release, requested.timestamp)
    is_lacking = lacks_debugged_replica(partition, call.broker_id, request.replica_id)
    if not code and is_lacking and release.has(facts.DEBUGGED_REPLICAS_NAMED):
        code = ErrorCode.REPLICA_NOT_AVAILABLE
    code = code or access_error(
        partition,
        call.broker_id,
        leader_only=leader_only,
        is_failed=call.cluster.state.replica_dirs.is_failed(call.broker_id, tp),
    )
    if code:
        return _error(requested.partition_index, code)
    try:
        offsets = segment_starts(
            call.cluster.logs.log(tp),
            requested.timestamp,
            requested.max_num_offsets,
            call.cluster.timers.now_ms,
            for_consumer=request.replica_id == CONSUMER,
            knows_local=call.release.has(facts.LOCAL_START_OF_SEGMENTS),
        )
    except ValueError:
        return _error(requested.partition_index, ErrorCode.UNKNOWN_SERVER_ERROR)
    return ListOffsetsPartitionResponse(
        partition_index=requested.partition_index, old_style_offsets=offsets
    )
