"""DescribeProducers (61, KIP-664): the mock has no producers, so every list is empty.

Version 0 only; flexible. Only the leader of a partition lists them; other brokers return an error.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.messages.describe_producers_request import DescribeProducersRequest
from kproto.messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    TopicResponse,
)
from mockbroker.apis.authorization import may, text_of
from mockbroker.apis.registry import Call, register
from mockbroker.security.authorizer import ResourceType

__all__ = ["describe_producers"]


@register(61, "0", cacheable=True)
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
    if may(call, ResourceType.TOPIC, name):
        return PartitionResponse(partition_index=index, error_code=_error(call, name, index))
    code, text = text_of(ResourceType.TOPIC)
    return PartitionResponse(partition_index=index, error_code=code, error_message=text)


def _error(call: Call, name: str, index: int) -> ErrorCode:
    topic = call.cluster.metadata_view(call.broker_id).topics.get(name)
    partition = None if topic is None else topic.partition(index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.leader != call.broker_id:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE
