"""CreateTopics (19).

Versions: 1 validate only and error messages; 2 throttle time; 4 -1 requests the broker's
defaults (KIP-464); 5 flexible, and the response describes the new topic (KIP-525); 7 topic ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from kproto.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kproto.messages.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.common.controller_queue import queued_topics
from mockbroker.apis.common.mutation_quotas import mutation_quota
from mockbroker.apis.common.requirements import controller, silent
from mockbroker.apis.registry import Call, register
from mockbroker.errors import UnreadableError
from mockbroker.simulation.releases.facts import NULLS_READ
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.results import CreateTopicResult, NewTopic

__all__ = ["create_topics"]


def _may_create(call: Call, names: Iterable[str]) -> frozenset[str]:
    if call.authorizes(AclOperation.CREATE):
        return frozenset(names)
    return authorized_names(call, names, AclOperation.CREATE)


@register(
    19,
    "0-7",
    requires=(
        replace(controller, text=lambda _call, _code: ""),
        *silent(queued_topics(_may_create)),
    ),
)
def create_topics(call: Call) -> CreateTopicsResponse:
    request: CreateTopicsRequest = call.body
    if not call.release.has(NULLS_READ) and any(
        each.value is None for topic in request.topics for each in topic.configs
    ):
        raise UnreadableError("a config without a value, which Kafka does not read")
    times = Counter(topic.name for topic in request.topics)
    allowed = _may_create(call, times)
    # Duplicate names are refused before everything else.
    refused = [name for name in times if name not in allowed and times[name] == 1]
    quota = mutation_quota(call, validate_only=request.validate_only)
    results = call.cluster.topics.create(
        [_new_topic(topic) for topic in request.topics if topic.name not in refused],
        validate_only=request.validate_only,
        wait_ms=request.timeout_ms,
        take_quota=quota.take,
        client_id=call.client_id,
    )
    shown = authorized_names(call, times, AclOperation.DESCRIBE_CONFIGS)
    return CreateTopicsResponse(
        throttle_time_ms=quota.throttle_ms,
        topics=[
            *(_result(each) if each.name in shown else _bare_result(each) for each in results),
            *(_unauthorized(name) for name in refused),
        ],
    )


def _unauthorized(name: str) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message="Authorization failed.",
    )


def _bare_result(result: CreateTopicResult) -> CreatableTopicResult:
    """The result for a topic whose configs, and therefore size, the caller may not see
    (KIP-525)."""
    return CreatableTopicResult(
        name=result.name,
        topic_id=result.topic_id,
        error_code=result.error_code,
        error_message=result.error_message,
        topic_config_error_code=0 if result.error_code else ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    )


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=tuple(
            (each.partition_index, tuple(each.broker_ids)) for each in topic.assignments
        ),
        configs=tuple((each.name, each.value) for each in topic.configs),
    )


def _result(result: CreateTopicResult) -> CreatableTopicResult:
    row = CreatableTopicResult(
        name=result.name,
        topic_id=result.topic_id,
        error_code=result.error_code,
        error_message=result.error_message,
        num_partitions=result.num_partitions,
        replication_factor=result.replication_factor,
    )
    if not result.error_code:
        row.configs = [
            CreatableTopicConfigs(
                name=each.name,
                value=each.value,
                read_only=each.read_only,
                config_source=each.source,
                is_sensitive=each.sensitive,
            )
            for each in result.configs
        ]
    return row
