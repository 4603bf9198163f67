"""DescribeTopicPartitions (75, KIP-966): topics page by page, sorted by name.

Version 0 only; flexible. KRaft brokers only. An empty list of topics means all. ``cursor`` is
the end of the previous page. Like Metadata, it shows the receiving broker's view.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode
from kproto.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from kproto.messages.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.common.authorized_operations import topic_operations
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_parts import INTERNAL_TOPICS, Partition, Topic
from mockbroker.simulation.state.metadata_views import MetadataView
from mockbroker.simulation.state.topic_names import name_problem

__all__ = ["describe_topic_partitions"]

_MAX_PARTITIONS: Final = 2000
"""Kafka's ``max.request.partition.size.limit``, the maximum length of a page."""


@register(75, "0", cacheable=True)
def describe_topic_partitions(call: Call) -> Message:
    request: DescribeTopicPartitionsRequest = call.body
    cursor = request.cursor
    listed = [topic.name for topic in request.topics]
    if cursor is None and "" in listed:
        return _refused(listed, ErrorCode.UNKNOWN_SERVER_ERROR)
    if cursor is not None and (
        cursor.partition_index < 0 or (listed and cursor.topic_name not in listed)
    ):
        return _refused(listed, ErrorCode.INVALID_REQUEST)
    view = call.cluster.controller.metadata_view(call.broker_id)
    names = listed or list(view.topics)
    from_name = "" if cursor is None else cursor.topic_name
    response = DescribeTopicPartitionsResponse()
    room = max(1, min(_MAX_PARTITIONS, request.response_partition_limit))
    allowed = authorized_names(call, names, AclOperation.DESCRIBE)
    requested = {name for name in names if name >= from_name}
    for name in sorted(requested & allowed):
        if room <= 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = view.topics.get(name)
        if topic is None:
            response.topics.append(_unknown(call, name))
            continue
        start = cursor.partition_index if cursor is not None and name == from_name else 0
        page = topic.partitions[start : start + room]
        response.topics.append(_topic(call, view, topic, page))
        room -= len(page)
        if start + len(page) < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=start + len(page))
            break
    # Other topics are refused on every page, and omitted if all topics were requested.
    response.topics += [
        _unauthorized(name) for name in sorted(requested - allowed) if request.topics
    ]
    return response


def _refused(names: Iterable[str], code: ErrorCode) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[DescribeTopicPartitionsResponseTopic(error_code=code, name=name) for name in names]
    )


def _unauthorized(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name
    )


def _unknown(call: Call, name: str) -> DescribeTopicPartitionsResponseTopic:
    legal = name_problem(name) is None
    return DescribeTopicPartitionsResponseTopic(
        error_code=(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if legal else ErrorCode.INVALID_TOPIC_EXCEPTION
        ),
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=topic_operations(call, name),
    )


def _topic(
    call: Call, view: MetadataView, topic: Topic, page: tuple[Partition, ...]
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.internal,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                partition_index=partition.index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                # A broker without eligible leader replicas sends empty lists, not null.
                eligible_leader_replicas=[],
                last_known_elr=[],
                offline_replicas=list(
                    view.offline_replicas(topic.name, partition, call.session.listener)
                ),
            )
            for partition in page
        ],
        topic_authorized_operations=topic_operations(call, topic.name),
    )
