"""DescribeProducers (61, KIP-664): the idempotent producers that a replica of a partition knows.

Version 0 only; flexible. Brokers without a replica return an error. Producers are listed by id.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode, message
from kproto.messages.describe_producers_request import DescribeProducersRequest
from kproto.messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from mockbroker.apis.common.authorization import text_of
from mockbroker.apis.common.partition_views import viewed_partition
from mockbroker.apis.registry import Call, register
from mockbroker.errors import Refusal
from mockbroker.simulation.log.producing.producer_states import Producer
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType
from mockbroker.simulation.state.cluster_parts import find_partition
from mockbroker.simulation.state.topic_names import check_topic_name

__all__ = ["describe_producers"]

_NO_TRANSACTION = -1


@register(61, "0")
def describe_producers(call: Call) -> DescribeProducersResponse:
    request: DescribeProducersRequest = call.body
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _partition(call, topic.name, index) for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _partition(call: Call, name: str, index: int) -> PartitionResponse:
    if not call.authorizes(AclOperation.READ, ResourceType.TOPIC, name):
        code, text = text_of(ResourceType.TOPIC)
        return PartitionResponse(partition_index=index, error_code=code, error_message=text)
    explained = call.release.has(facts.PRODUCER_ERRORS_EXPLAINED)
    if explained:
        try:
            check_topic_name(name, call.release)
        except Refusal as refusal:
            return PartitionResponse(
                partition_index=index, error_code=refusal.code, error_message=refusal.message
            )
    error = _error(call, name, index)
    if error:
        is_topic_known = name in call.cluster.controller.metadata_view(call.broker_id).topics
        return PartitionResponse(
            partition_index=index,
            error_code=error,
            error_message=message(error) if explained and not is_topic_known else None,
        )
    tp, logs = (name, index), call.cluster.logs
    producers = logs.log(tp).producers_before(logs.end_of(tp, call.broker_id))
    return PartitionResponse(
        partition_index=index, active_producers=[_producer(each) for each in producers]
    )


def _error(call: Call, name: str, index: int) -> ErrorCode:
    if viewed_partition(call, (name, index)) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partition = find_partition(call.cluster.topics, (name, index))
    if partition is None or call.broker_id not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if call.cluster.state.replica_dirs.is_failed(call.broker_id, (name, index)):
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE


def _producer(producer: Producer) -> ProducerState:
    start = producer.transaction_start
    return ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=_NO_TRANSACTION if start is None else start,
    )
