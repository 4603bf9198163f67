"""Metadata (3): brokers, controller and topics in the receiving broker's view.

Versions: 0 an empty list of topics means all topics, later null does; 1 controller, racks,
internal topics; 2 cluster id; 3 throttle time; 4 the client may forbid auto-creation; 5 offline
replicas; 7 leader epochs; 8 authorized operations (of the cluster: 8 to 10 only); 9 flexible;
10 topic ids in the response, 12 in the request; 13 a top-level error.
"""

from __future__ import annotations

import contextlib
import uuid
from typing import Final

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode
from kproto.messages.metadata_request import MetadataRequest
from kproto.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kproto.schema.model import ZERO_UUID
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.common.authorized_operations import cluster_operations, topic_operations
from mockbroker.apis.common.refusals import refusal
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.releases import facts, fixes
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType
from mockbroker.simulation.state.cluster_parts import INTERNAL_TOPICS, NO_LEADER, Partition, Topic
from mockbroker.simulation.state.metadata_views import MetadataView
from mockbroker.simulation.state.topic_names import name_problem

__all__ = ["metadata"]


_UNAUTHORIZED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@register(3, "0-13", cacheable=True)
def metadata(call: Call) -> Message:
    request: MetadataRequest = call.body
    if call.version in (10, 11) and _asks_by_id(request):
        return refusal(call, ErrorCode.INVALID_REQUEST)
    if not _ids(request) and any(each.name is None for each in request.topics or ()):
        return _failed(request)
    view = call.cluster.controller.metadata_view(call.broker_id)
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=b.broker_id, host=b.host, port=b.port, rack=b.rack)
            for b in call.reached(view.live_brokers())
        ],
        cluster_id=view.cluster_id,
        controller_id=call.named_controller() if call.version else -1,
        topics=_topics(call, request, view),
    )
    if call.version >= 8 and call.release.has(facts.UNREQUESTED_OPERATIONS_ZERO):
        response.cluster_authorized_operations = 0
        for topic in response.topics:
            topic.topic_authorized_operations = 0
    if 8 <= call.version <= 10 and request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(call)
    if call.version >= 8 and request.include_topic_authorized_operations:
        for topic in response.topics:
            # Unknown topics have operations as well, because they are looked up by name.
            if topic.name is not None and topic.error_code != _UNAUTHORIZED:
                topic.topic_authorized_operations = topic_operations(call, topic.name)
    return response


def _failed(request: MetadataRequest) -> MetadataResponse:
    """Kafka fails as it looks up a topic without a name."""
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    rows = [
        MetadataResponseTopic(error_code=code, name=each.name or "", topic_id=each.topic_id)
        for each in request.topics or ()
    ]
    return MetadataResponse(controller_id=-1, topics=rows, error_code=code)


def _asks_by_id(request: MetadataRequest) -> bool:
    return any(t.name is None or t.topic_id != ZERO_UUID for t in request.topics or ())


def _ids(request: MetadataRequest) -> dict[uuid.UUID, None]:
    """The ids that are asked for, each once. If there is one, topics without an id are ignored."""
    return {each.topic_id: None for each in request.topics or () if each.topic_id != ZERO_UUID}


def _topics(
    call: Call, request: MetadataRequest, view: MetadataView
) -> list[MetadataResponseTopic]:
    requested = request.topics
    if requested is None or (call.version == 0 and not requested):
        # Topics that the caller may not describe are omitted.
        allowed = authorized_names(call, view.topics, AclOperation.DESCRIBE)
        return [_topic(call, view, each) for each in view.topics.values()
                if each.name in allowed]  # fmt: skip
    ids = _ids(request)
    if ids:  # the Java client sends an empty name besides
        return [_by_id(call, view, each) for each in ids]
    # Kafka lists each name once, even if it was requested several times.
    names = dict.fromkeys(each.name for each in requested if each.name is not None)
    allowed = authorized_names(call, names, AclOperation.DESCRIBE)
    # All new topics are one step: a controller then reads the list of topics once, not after each.
    with (
        contextlib.nullcontext()
        if names.keys() <= view.topics.keys()
        else call.cluster.turns.step()
    ):
        return [
            MetadataResponseTopic(error_code=_UNAUTHORIZED, name=name)
            if name not in allowed
            else _topic(call, view, view.topics[name])
            if name in view.topics
            else _missing(call, name, may_create=request.allow_auto_topic_creation)
            for name in names
        ]


def _by_id(call: Call, view: MetadataView, topic_id: uuid.UUID) -> MetadataResponseTopic:
    topic = view.topic_by_id(topic_id)
    if topic is not None and call.authorizes(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name):
        return _topic(call, view, topic)
    if topic is not None:
        return MetadataResponseTopic(error_code=_UNAUTHORIZED, name=None, topic_id=topic_id)
    return MetadataResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id
    )


def _missing(call: Call, name: str, *, may_create: bool) -> MetadataResponseTopic:
    code: int = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    names_checked = call.release.has(facts.NAMES_OF_UNKNOWN_TOPICS_CHECKED)
    if names_checked and name_problem(name) is not None:
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    elif may_create and not _may_create(call, name):
        code = _UNAUTHORIZED
    elif may_create:
        code = call.cluster.topics.auto_create(name)
    return MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def _may_create(call: Call, name: str) -> bool:
    """Return whether the caller may create the topic; True if brokers create none, because then the
    topic is just unknown."""
    broker_id, create = call.cluster.state.controller_id, AclOperation.CREATE
    enabled = call.cluster.configs.broker(broker_id, "auto.create.topics.enable").value == "true"
    return (
        not enabled or call.authorizes(create) or call.authorizes(create, ResourceType.TOPIC, name)
    )


def _topic(call: Call, view: MetadataView, topic: Topic) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.internal,
        partitions=[_partition(call, view, topic.name, each) for each in topic.partitions],
    )


def _mistakes_missing_leaders(release: Release) -> bool:
    return release.has(facts.MISSING_LEADER_HAS_NO_LISTENER) and not release.has(fixes.KAFKA_10312)


def _partition(
    call: Call, view: MetadataView, topic: str, partition: Partition
) -> MetadataResponsePartition:
    listener = call.session.listener
    offline = view.offline_replicas(topic, partition, listener)
    row = MetadataResponsePartition(
        error_code=view.partition_error(partition),
        partition_index=partition.index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=list(offline),
    )
    if listener and not row.error_code and not view.reaches(partition.leader, listener):
        row.leader_id = NO_LEADER
        row.error_code = (
            ErrorCode.LISTENER_NOT_FOUND if call.version >= 6 else ErrorCode.LEADER_NOT_AVAILABLE
        )
    elif row.error_code:
        if call.version >= 6 and _mistakes_missing_leaders(call.release):
            row.error_code = ErrorCode.LISTENER_NOT_FOUND
        if call.release.has(facts.MISSING_LEADER_HAS_NO_EPOCH):
            row.leader_epoch = -1
    if call.version == 0 and offline:
        # Clients of version 0 fail on ids of brokers that are not listed.
        row.replica_nodes = [r for r in partition.replicas if r not in offline]
        row.isr_nodes = [r for r in partition.isr if r not in offline]
        row.error_code = row.error_code or ErrorCode.REPLICA_NOT_AVAILABLE
    return row
