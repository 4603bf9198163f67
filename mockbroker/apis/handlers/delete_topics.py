"""DeleteTopics (20), by name or, from version 6, by id.

Versions: 1 throttle time; 4 flexible; 5 error messages; 6 topic ids, and a list of structs where
older versions have a list of names.
"""

from __future__ import annotations

import uuid
from collections import Counter
from typing import TypeAlias

from kproto.messages.delete_topics_request import DeleteTopicsRequest
from kproto.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from kproto.schema.model import ZERO_UUID
from mockbroker.apis.common.authorization import authorized_names, text_of
from mockbroker.apis.common.controller_queue import queued_if
from mockbroker.apis.common.mutation_quotas import mutation_quota
from mockbroker.apis.common.requirements import controller, silent
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType

__all__ = ["delete_topics"]


_NameAndId: TypeAlias = tuple[str | None, uuid.UUID]


def _requested(call: Call) -> list[_NameAndId]:
    request: DeleteTopicsRequest = call.body
    if call.version >= 6:
        return [(topic.name, topic.topic_id) for topic in request.topics]
    return [(name, ZERO_UUID) for name in request.topic_names]


def _waits(call: Call) -> bool:
    """KRaft's controller looks up what is given once, by a name or an id; the rest is refused
    before."""
    times = Counter(_requested(call))
    return any(
        count == 1 and (name is None) != (topic_id == ZERO_UUID)
        for (name, topic_id), count in times.items()
    )


@register(20, "0-6", requires=silent(controller, queued_if(_waits)))
def delete_topics(call: Call) -> DeleteTopicsResponse:
    request: DeleteTopicsRequest = call.body
    requested, refused = _sift(call, _requested(call))
    quota = mutation_quota(call)
    results = call.cluster.topics.delete(
        requested, wait_ms=request.timeout_ms, take_quota=quota.take
    )
    return DeleteTopicsResponse(
        throttle_time_ms=quota.throttle_ms,
        responses=[
            DeletableTopicResult(
                name=result.name,
                topic_id=result.topic_id,
                error_code=result.error_code,
                error_message=result.error_message,
            )
            for result in results
        ]
        + refused,
    )


def _sift(
    call: Call, requested: list[_NameAndId]
) -> tuple[list[_NameAndId], list[DeletableTopicResult]]:
    """Return the topics that the caller may delete, and the refusals of the others.

    The name of a topic is shown only to callers who may describe it. Anybody learns that an id is
    unknown.
    """
    if call.authorizes(AclOperation.DELETE):
        return requested, []
    names = {topic.topic_id: topic.name for topic in call.cluster.topics.values()}
    resolved = [name if name is not None else names.get(topic_id) for name, topic_id in requested]
    known = {name for name in resolved if name is not None}
    deletable = authorized_names(call, known, AclOperation.DELETE)
    describable = authorized_names(call, known, AclOperation.DESCRIBE)
    times = Counter(requested)
    allowed, refused = [], []
    code, text = text_of(ResourceType.TOPIC)
    for (name, topic_id), topic in zip(requested, resolved, strict=True):
        malformed = topic is None or (name is not None and topic_id != ZERO_UUID)
        missing = topic in describable and topic not in call.cluster.topics
        if malformed or missing or topic in deletable or times[name, topic_id] > 1:
            allowed.append((name, topic_id))
            continue
        shown = topic if name is not None or topic in describable else None
        refused.append(
            DeletableTopicResult(name=shown, topic_id=topic_id, error_code=code, error_message=text)
        )
    return allowed, refused
