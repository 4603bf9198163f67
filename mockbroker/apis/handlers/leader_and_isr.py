"""LeaderAndIsr (4): the controller tells a broker which partitions to lead and follow.

Versions: 1 ``is_new``; 2 broker epochs, and partitions grouped by topic; 3 adding and removing
replicas; 4 flexible; 5 topic ids, by which the response is grouped; 6 leader recovery; 7 the
controller marks itself as KRaft. In the drafts of KIP-455 version 3 is the last, and has target
replicas instead. The error of a whole request is repeated in each partition.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any, Final

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode
from kproto.messages.leader_and_isr_request import LeaderAndIsrRequest
from kproto.messages.leader_and_isr_response import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from mockbroker.apis.common.requirements import cluster_access, current_controller, everywhere
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.brokers.inter_broker.broker_memory import HostedReplica
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["leader_and_isr", "leader_and_isr_of_drafts"]

_GROUPED_SINCE = 2
_BY_TOPIC_ID_SINCE = 5


_REQUIRES: Final = (
    everywhere(cluster_access(AclOperation.CLUSTER_ACTION)),
    everywhere(current_controller),
)


@register(4, "0-7", requires=_REQUIRES)
def leader_and_isr(call: Call) -> LeaderAndIsrResponse:
    request: LeaderAndIsrRequest = call.body
    if call.version < _GROUPED_SINCE:
        rows = [((s.topic_name, s.partition_index), s) for s in request.ungrouped_partition_states]
    else:
        rows = [
            ((topic.topic_name, state.partition_index), state)
            for topic in request.topic_states
            for state in topic.partition_states
        ]
    replicas = [
        (
            tp,
            HostedReplica(
                state.leader,
                state.leader_epoch,
                tuple(state.isr),
                tuple(state.replicas),
                None,
                tuple(state.adding_replicas),
                tuple(state.removing_replicas),
            ),
        )
        for tp, state in rows
    ]
    codes = _apply(call, replicas)
    if call.version < _BY_TOPIC_ID_SINCE:
        errors = [
            LeaderAndIsrPartitionError(topic_name=tp[0], partition_index=tp[1], error_code=code)
            for (tp, _), code in zip(rows, codes, strict=True)
        ]
        return LeaderAndIsrResponse(partition_errors=errors)
    return LeaderAndIsrResponse(topics=_by_topic_id(request, codes))


def _by_topic_id(request: LeaderAndIsrRequest, codes: list[int]) -> list[LeaderAndIsrTopicError]:
    """Group the partitions by topic id, which is a map key in the response."""
    topics: dict[uuid.UUID, LeaderAndIsrTopicError] = {}
    remaining = iter(codes)
    for topic in request.topic_states:
        row = topics.setdefault(topic.topic_id, LeaderAndIsrTopicError(topic_id=topic.topic_id))
        for state in topic.partition_states:
            error = LeaderAndIsrPartitionError(
                partition_index=state.partition_index, error_code=next(remaining)
            )
            row.partition_errors.append(error)
    return list(topics.values())


@register(4, "0-3", requires=_REQUIRES, dialects=("kip-455-old", "kip-455-new"))
def leader_and_isr_of_drafts(call: Call) -> Message:
    rows = list(_rows_of_drafts(call))
    codes = _apply(call, rows)
    response: Any = call.api.response
    entry: Any = call.api.response.STRUCTS["LeaderAndIsrResponsePartition"]
    partitions = [
        entry(topic_name=tp[0], partition_index=tp[1], error_code=code)
        for (tp, _), code in zip(rows, codes, strict=True)
    ]
    answer: Message = response(partitions=partitions)
    return answer


def _rows_of_drafts(call: Call) -> Iterator[tuple[TopicPartition, HostedReplica]]:
    request = call.body
    if call.version < _GROUPED_SINCE:
        for state in request.partition_states_v0:
            yield (state.topic_name, state.partition_index), _replica_of_drafts(state, None)
        return
    for topic in request.topic_states:
        for state in topic.partition_states:
            target = state.target_replicas
            found = None if target is None else tuple(target)
            yield (topic.name, state.partition_index), _replica_of_drafts(state, found)


def _replica_of_drafts(state: Any, target: tuple[int, ...] | None) -> HostedReplica:
    return HostedReplica(
        state.leader_key,
        state.leader_epoch,
        tuple(state.isr_replicas),
        tuple(state.replicas),
        target,
    )


def _apply(call: Call, rows: list[tuple[TopicPartition, HostedReplica]]) -> list[int]:
    """Return the error of each partition."""
    request, memory = call.body, call.cluster.memories[call.broker_id]
    memory.accept(request.controller_id, request.controller_epoch)
    return [
        ErrorCode.KAFKA_STORAGE_ERROR
        if call.cluster.state.replica_dirs.is_failed(call.broker_id, row[0])
        else memory.host(call.broker_id, *row)
        for row in rows
    ]
