"""DeleteRecords (21, KIP-107): removes the records before an offset, at the leader of a partition.

Versions: 1 throttle time as since KIP-219; 2 flexible. The answer waits until all live replicas
have moved their start, in real time at most ``timeout_ms``. Partitions are answered in the
request's order; of a partition that it names twice the last offset counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from kproto.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kproto.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.common.log_waits import wait_for_replicas
from mockbroker.apis.common.partition_views import known_partition
from mockbroker.apis.common.request_partitions import distinct_partitions
from mockbroker.apis.registry import Answer, Call, register
from mockbroker.simulation.log.cleaning.record_deletion import Deletion, DeletionQuery, DeletionWait
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.timers import Later

__all__ = ["delete_records"]

_Deletions = Sequence[tuple[DeleteRecordsTopic, Sequence[Deletion]]]


@register(21, "0-2")
def delete_records(call: Call) -> Answer:
    request: DeleteRecordsRequest = call.body
    allowed = authorized_names(call, (topic.name for topic in request.topics), AclOperation.DELETE)
    deletions = [
        (
            topic,
            [call.cluster.deletions.delete(each) for each in _queries(call, topic, rows, allowed)],
        )
        for topic, rows in _distinct(request)
    ]
    wait = call.cluster.deletions.wait(each for _, row in deletions for each in row)
    if wait.is_over:
        return _response(deletions)
    return Later(lambda: _later(call, deletions, wait))


def _distinct(
    request: DeleteRecordsRequest,
) -> list[tuple[DeleteRecordsTopic, list[DeleteRecordsPartition]]]:
    return distinct_partitions(
        request.topics,
        lambda topic: topic.name,
        lambda topic: topic.partitions,
        lambda partition: partition.partition_index,
    )


def _queries(
    call: Call,
    topic: DeleteRecordsTopic,
    rows: Sequence[DeleteRecordsPartition],
    allowed: frozenset[str],
) -> list[DeletionQuery]:
    partitions = [(topic.name, each.partition_index) for each in rows]
    return [
        DeletionQuery(
            tp, call.broker_id, known_partition(call, tp), each.offset, topic.name in allowed
        )
        for tp, each in zip(partitions, rows, strict=True)
    ]


async def _later(call: Call, deletions: _Deletions, wait: DeletionWait) -> DeleteRecordsResponse:
    await wait_for_replicas(wait, call.body.timeout_ms, call.cluster.wait_timers)
    return _response(deletions)


def _response(deletions: _Deletions) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=each.tp[1],
                        low_watermark=each.low_watermark,
                        error_code=each.error,
                    )
                    for each in row
                ],
            )
            for topic, row in deletions
        ]
    )
