"""DeleteTopics (20), by name or, from version 6, by id.

Versions: 1 throttle time; 4 flexible; 5 error messages; 6 topic ids, and a list of structs where
older versions have a list of names.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.messages.delete_topics_request import DeleteTopicsRequest
from kproto.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from kproto.schema.model import ZERO_UUID
from mockbroker.apis.registry import Call, register

__all__ = ["delete_topics"]


@register(20, "0-6")
def delete_topics(call: Call) -> DeleteTopicsResponse:
    request: DeleteTopicsRequest = call.body
    if call.version >= 6:
        asked = [(topic.name, topic.topic_id) for topic in request.topics]
    else:
        asked = [(name, ZERO_UUID) for name in request.topic_names]
    if call.refused_as_not_controller:
        return DeleteTopicsResponse(
            responses=[
                DeletableTopicResult(
                    name=name, topic_id=topic_id, error_code=ErrorCode.NOT_CONTROLLER
                )
                for name, topic_id in asked
            ]
        )
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=result.name,
                topic_id=result.topic_id,
                error_code=result.error_code,
                error_message=result.error_message,
            )
            for result in call.cluster.delete_topics(asked)
        ]
    )
