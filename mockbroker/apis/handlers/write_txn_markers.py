"""WriteTxnMarkers (27): a coordinator, or an administrator (KIP-664), ends transactions in
partitions that this broker leads.

Versions: 1 flexible; 2 transaction version (KIP-1228). It is answered once the replicas have all
markers.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import takewhile

from kproto.error_codes import ErrorCode
from kproto.messages.write_txn_markers_request import WritableTxnMarker, WriteTxnMarkersRequest
from kproto.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from mockbroker.apis.common.group_answers import GroupAnswer, when_answered
from mockbroker.apis.common.requirements import cluster_access, merged
from mockbroker.apis.registry import Answer, Call, register
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_parts import TopicPartition
from mockbroker.simulation.transactions.markers import MarkerToWrite

__all__ = ["write_txn_markers"]

_Results = dict[int, dict[TopicPartition, ErrorCode]]
"""Producer id -> error of each partition."""


@register(
    27, "0-2", requires=(merged(cluster_access(AclOperation.ALTER, AclOperation.CLUSTER_ACTION)),)
)
def write_txn_markers(call: Call) -> Answer:
    request: WriteTxnMarkersRequest = call.body
    found: _Results = {}
    writer = call.cluster.marker_writer
    # Kafka names only producers for which it writes something.
    markers = [
        (each.producer_id, partitions, _marker(each))
        for each in request.markers
        if (partitions := _partitions(each))
    ]
    made = list(
        takewhile(
            lambda each: all(writer.can_make(call.broker_id, tp, each[2]) for tp in each[1]),
            markers,
        )
    )
    if len(made) < len(markers):
        for _, partitions, marker in made:
            for tp in partitions:
                writer.write(call.broker_id, tp, marker, lambda _: None)
        return _response(
            {
                producer_id: dict.fromkeys(partitions, ErrorCode.UNKNOWN_SERVER_ERROR)
                for producer_id, partitions, _ in markers
            }
        )
    answer = GroupAnswer[_Results]()
    left = 0
    for producer_id, partitions, _ in markers:
        found.setdefault(producer_id, {}).update(dict.fromkeys(partitions, ErrorCode.NONE))
        left += len(partitions)
    if not left:
        answer.give(found)

    def finish(producer_id: int, tp: TopicPartition, code: ErrorCode) -> None:
        nonlocal left
        found[producer_id][tp] = code
        left -= 1
        if not left:
            answer.give(found)

    for producer_id, partitions, marker in markers:
        for tp in partitions:
            writer.write(call.broker_id, tp, marker, partial(finish, producer_id, tp))
    return when_answered(answer, _response)


def _partitions(marker: WritableTxnMarker) -> list[TopicPartition]:
    return [(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]


def _marker(marker: WritableTxnMarker) -> MarkerToWrite:
    return MarkerToWrite(
        marker.producer_id,
        marker.producer_epoch,
        marker.coordinator_epoch,
        marker.transaction_result,
        marker.transaction_version,
    )


def _response(found: _Results) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(producer_id=producer_id, topics=_topics(codes.items()))
            for producer_id, codes in found.items()
        ]
    )


def _topics(
    codes: Iterable[tuple[TopicPartition, ErrorCode]],
) -> list[WritableTxnMarkerTopicResult]:
    topics: dict[str, WritableTxnMarkerTopicResult] = {}
    for (name, index), code in codes:
        topic = topics.setdefault(name, WritableTxnMarkerTopicResult(name=name, partitions=[]))
        topic.partitions.append(
            WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
        )
    return list(topics.values())
