"""ShareAcknowledge (79, KIP-932): a member of a share group acknowledges records that it acquired.

Version 2 has renewal of locks (KIP-1222) and tells how long they hold.
"""

from __future__ import annotations

import uuid

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode
from kproto.messages.share_acknowledge_request import ShareAcknowledgeRequest
from kproto.messages.share_acknowledge_response import (
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.common.refusals import refusal
from mockbroker.apis.common.share_answers import (
    acknowledge,
    add_leader,
    complete,
    has_unnamed_topic,
    lock_ms,
    share_session_requirements,
    topic_name,
)
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.share.share_sessions import FINAL_EPOCH
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_parts import Broker

__all__ = ["share_acknowledge"]


@register(79, "1-2", requires=share_session_requirements)
def share_acknowledge(call: Call) -> Message:
    body: ShareAcknowledgeRequest = call.body
    fetches, epoch = call.cluster.share_fetches, body.share_session_epoch
    assert body.group_id is not None, "that is required"
    assert body.member_id is not None, "that is required"
    code = fetches.continue_session(call.broker_id, body.group_id, body.member_id, epoch)
    if code:
        return refusal(call, code)
    named = (topic.topic_id for topic in body.topics if topic.partitions)
    if call.authorizer is not None and has_unnamed_topic(call, named):
        return refusal(call, ErrorCode.UNKNOWN_SERVER_ERROR)
    response = _response(call)
    if epoch == FINAL_EPOCH:
        fetches.end_session(call.broker_id, body.group_id, body.member_id)
    return response


def _response(call: Call) -> ShareAcknowledgeResponse:
    body: ShareAcknowledgeRequest = call.body
    names = {topic_name(call, topic.topic_id) for topic in body.topics}
    readable = authorized_names(
        call, (name for name in names if name is not None), AclOperation.READ
    )
    results = acknowledge(
        call,
        [
            ((topic.topic_id, partition.partition_index), partition.acknowledgement_batches)
            for topic in body.topics
            for partition in topic.partitions
        ],
        readable,
    )
    complete(results)
    topics: dict[uuid.UUID, ShareAcknowledgeTopicResponse] = {}
    endpoints: dict[int, Broker] = {}
    for (topic_id, index), each in results.items():
        row = PartitionData(partition_index=index, error_code=each.code, error_message=each.text)
        topic = topics.setdefault(
            topic_id, ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=[])
        )
        topic.partitions.append(row)
        add_leader(call, topic_id, row, endpoints)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=lock_ms(call) if call.version >= 2 else 0,
        responses=list(topics.values()),
        node_endpoints=[
            NodeEndpoint(node_id=at.broker_id, host=at.host, port=at.port, rack=at.rack)
            for at in endpoints.values()
        ],
    )
