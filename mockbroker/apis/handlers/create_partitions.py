"""CreatePartitions (37, KIP-195): raise a topic's number of partitions.

Versions: 2 flexible; 3 quota errors. ``count`` is the new total. Null assignments let the
controller choose the brokers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode
from kproto.messages.create_partitions_request import CreatePartitionsRequest
from kproto.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.common.controller_queue import queued_topics
from mockbroker.apis.common.mutation_quotas import mutation_quota
from mockbroker.apis.common.refusals import refusal
from mockbroker.apis.common.requirements import controller, silent
from mockbroker.apis.registry import Call, register
from mockbroker.errors import Refusal
from mockbroker.simulation.releases import fixes
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["create_partitions"]


def _may_grow(call: Call, names: Iterable[str]) -> frozenset[str]:
    by_cluster = call.profile.forwarding and not call.release.has(fixes.KAFKA_13661)
    if by_cluster and call.authorizes(AclOperation.CREATE):
        return frozenset(names)
    return authorized_names(call, names, AclOperation.ALTER)


@register(37, "0-3", requires=silent(controller, queued_topics(_may_grow)))
def create_partitions(call: Call) -> Message:
    request: CreatePartitionsRequest = call.body
    times = Counter(topic.name for topic in request.topics)
    allowed = _may_grow(call, times)
    quota = mutation_quota(call, validate_only=request.validate_only)
    wanted = [
        (
            topic.name,
            topic.count,
            None if topic.assignments is None else [each.broker_ids for each in topic.assignments],
        )
        for topic in request.topics
        if topic.name in allowed or times[topic.name] > 1
    ]
    try:
        results = call.cluster.topics.add_partitions(
            wanted,
            validate_only=request.validate_only,
            wait_ms=request.timeout_ms,
            take_quota=quota.take,
        )
    except Refusal as failure:
        return refusal(call, failure.code, failure.message)
    return CreatePartitionsResponse(
        throttle_time_ms=quota.throttle_ms,
        results=[
            CreatePartitionsTopicResult(
                name=each.name, error_code=each.error_code, error_message=each.error_message
            )
            for each in results
        ]
        + [
            CreatePartitionsTopicResult(
                name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=None
            )
            for name in times
            if name not in allowed and times[name] == 1
        ],
    )
