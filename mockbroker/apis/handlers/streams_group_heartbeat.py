"""StreamsGroupHeartbeat (88, KIP-1071): a member joins its group, lives, reconciles and leaves.

Versions: 1 a recovery lag of 64 bits, descriptions of topologies, missing client tags (4.4).
Without the feature ``streams.version``, which came with 4.2, or with ``streams`` taken out of
``group.coordinator.rebalance.protocols``, the broker refuses the request in its body.

The broker creates the internal topics of a topology for the client, which needs the right to create
them; until they are there a status says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from kproto.messages import streams_group_heartbeat_request as requested
from kproto.messages import streams_group_heartbeat_response as answered
from kproto.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kproto.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.common.group_answers import client_host, coordinator_error
from mockbroker.apis.common.requirements import Requirement, group_access, silent, streams_groups
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.modern.partitions import by_topic
from mockbroker.simulation.groups.streams.streams_group import (
    EndpointPartitions,
    HeartbeatRequest,
    Status,
    StatusCode,
    StreamsResult,
    Task,
    TaskOffsets,
)
from mockbroker.simulation.groups.streams.topology import (
    CopartitionGroup,
    InternalTopic,
    Subtopology,
    Topology,
)
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_parts import INTERNAL_TOPICS
from mockbroker.simulation.state.results import NewTopic
from mockbroker.simulation.state.topic_names import name_problem

__all__ = ["streams_group_heartbeat"]

_MOST_NAMED: Final = 3


def _topology_problem(call: Call) -> str | None:
    if call.body.topology is None:
        return None
    names = _names(call.body)
    internal = [each for each in names if each in INTERNAL_TOPICS]
    if internal:
        listed = ",".join(internal)
        return f"Use of Kafka internal topics {listed} in a Kafka Streams topology is prohibited."
    invalid = [each for each in names if name_problem(each) is not None]
    return f"Topic names {','.join(invalid)} are not valid topic names." if invalid else None


def _topology_error(call: Call) -> int:
    return 0 if _topology_problem(call) is None else ErrorCode.STREAMS_INVALID_TOPOLOGY


def _topics_error(call: Call) -> int:
    names = _names(call.body)
    allowed = authorized_names(call, names, AclOperation.DESCRIBE)
    return ErrorCode.TOPIC_AUTHORIZATION_FAILED if len(allowed) < len(names) else ErrorCode.NONE


@register(
    88,
    "0-1",
    requires=(
        *silent(streams_groups, group_access(AclOperation.READ)),
        Requirement(_topology_error, lambda call, _code: _topology_problem(call)),
        *silent(Requirement(_topics_error)),
    ),
)
def streams_group_heartbeat(call: Call) -> StreamsGroupHeartbeatResponse:
    body: StreamsGroupHeartbeatRequest = call.body
    groups = call.cluster.groups.streams
    result = groups.heartbeat(_request(call, body), coordinator_error(call, body.group_id))
    if result.missing:
        result = _create(call, body.group_id, result)
    return _response(result)


def _names(body: StreamsGroupHeartbeatRequest) -> list[str]:
    """The topics that the topology names, in order."""
    if body.topology is None:
        return []
    found = [
        name
        for each in body.topology.subtopologies
        for name in (
            *each.source_topics,
            *each.repartition_sink_topics,
            *(topic.name for topic in each.repartition_source_topics),
            *(topic.name for topic in each.state_changelog_topics),
        )
    ]
    return list(dict.fromkeys(found))


# ---- requests ------------------------------------------------------------------------------------


def _request(call: Call, body: StreamsGroupHeartbeatRequest) -> HeartbeatRequest:
    endpoint, tags = body.user_endpoint, body.client_tags
    return HeartbeatRequest(
        group_id=body.group_id,
        member_id=body.member_id,
        member_epoch=body.member_epoch,
        endpoint_epoch=body.endpoint_information_epoch,
        instance_id=body.instance_id,
        rack_id=body.rack_id,
        rebalance_timeout_ms=body.rebalance_timeout_ms,
        topology=None if body.topology is None else _topology(body.topology),
        active=_tasks(body.active_tasks),
        standby=_tasks(body.standby_tasks),
        warmup=_tasks(body.warmup_tasks),
        empty_rows=frozenset(
            kind
            for kind, tasks in (
                ("active", body.active_tasks),
                ("standby", body.standby_tasks),
                ("warmup", body.warmup_tasks),
            )
            if any(not each.partitions for each in tasks or ())
        ),
        process_id=body.process_id,
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        tags=None if tags is None else tuple(sorted((each.key, each.value) for each in tags)),
        task_offsets=_offsets(body.task_offsets),
        task_end_offsets=_offsets(body.task_end_offsets),
        shutdown=body.shutdown_application,
        client_id=call.client_id or "",
        client_host=client_host(call),
        version=call.version,
    )


def _topology(topology: requested.Topology) -> Topology:
    return Topology(
        topology.epoch,
        tuple(
            Subtopology(
                each.subtopology_id,
                source_topics=tuple(each.source_topics),
                source_regexes=tuple(each.source_topic_regex),
                changelogs=tuple(map(_internal_topic, each.state_changelog_topics)),
                sinks=tuple(each.repartition_sink_topics),
                repartitions=tuple(map(_internal_topic, each.repartition_source_topics)),
                copartition_groups=tuple(
                    CopartitionGroup(
                        tuple(one.source_topics),
                        tuple(one.source_topic_regex),
                        tuple(one.repartition_source_topics),
                    )
                    for one in each.copartition_groups
                ),
            )
            for each in topology.subtopologies
        ),
    )


def _internal_topic(topic: requested.TopicInfo) -> InternalTopic:
    return InternalTopic(
        topic.name,
        topic.partitions,
        topic.replication_factor,
        tuple((each.key, each.value) for each in topic.topic_configs),
    )


def _tasks(tasks: list[requested.TaskIds] | None) -> frozenset[Task] | None:
    if tasks is None:
        return None
    return frozenset((each.subtopology_id, index) for each in tasks for index in each.partitions)


def _offsets(offsets: list[requested.TaskOffset] | None) -> TaskOffsets | None:
    if offsets is None:
        return None
    return tuple((each.subtopology_id, each.partition, each.offset) for each in offsets)


# ---- internal topics -----------------------------------------------------------------------------


def _create(call: Call, group_id: str, result: StreamsResult) -> StreamsResult:
    """Create internal topics. The status of this answer says that they are missing, and why the
    attempt before failed."""
    group = call.cluster.groups.streams.group(group_id)
    names = [each.name for each in result.missing]
    if not call.authorizes(AclOperation.CREATE):
        allowed = authorized_names(call, names, AclOperation.CREATE)
        denied = [each for each in names if each not in allowed]
        if denied:
            return _detailed(result, f"; Unauthorized to CREATE on topics {', '.join(denied)}.")
    before = {} if group is None else group.creation_errors
    failed = {name: text for name, text in before.items() if name in names}
    if failed:
        listed = ", ".join(f"{name} ({text})" for name, text in list(failed.items())[:_MOST_NAMED])
        more = len(failed) - _MOST_NAMED
        tail = f" and {more} more" if more > 0 else ""
        result = _detailed(result, f"; Creation failed: {listed}{tail}.")
    if group is not None:
        group.creation_errors = _errors(call, result.missing)
    return result


def _errors(call: Call, topics: Sequence[NewTopic]) -> dict[str, str]:
    results = call.cluster.topics.create(topics)
    return {
        each.name: each.error_message or ErrorCode(each.error_code).name
        for each in results
        if each.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    }


def _detailed(result: StreamsResult, detail: str) -> StreamsResult:
    statuses = tuple(
        Status(each.code, each.detail + detail)
        if each.code == StatusCode.MISSING_INTERNAL_TOPICS
        else each
        for each in result.statuses or ()
    )
    return replace(result, statuses=statuses)


# ---- answers -------------------------------------------------------------------------------------


def _response(result: StreamsResult) -> StreamsGroupHeartbeatResponse:
    response = StreamsGroupHeartbeatResponse(
        error_code=result.error_code,
        error_message=result.error_message,
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.interval_ms,
        task_offset_interval_ms=result.task_offset_interval_ms,
        acceptable_recovery_lag=result.acceptable_recovery_lag,
        endpoint_information_epoch=result.endpoint_epoch,
        status=(
            None
            if result.statuses is None
            else [
                answered.Status(status_code=each.code, status_detail=each.detail)
                for each in result.statuses
            ]
        ),
    )
    if result.error_code:
        response.status = []
    if result.tasks is not None:
        response.active_tasks = _listed(result.tasks.active)
        response.standby_tasks = _listed(result.tasks.standby)
        response.warmup_tasks = _listed(result.tasks.warmup)
    if result.endpoints is not None:
        response.partitions_by_user_endpoint = [_endpoint(each) for each in result.endpoints]
    return response


def _listed(tasks: Iterable[Task]) -> list[answered.TaskIds]:
    return [
        answered.TaskIds(subtopology_id=name, partitions=indexes)
        for name, indexes in by_topic(tasks)
    ]


def _endpoint(endpoint: EndpointPartitions) -> answered.EndpointToPartitions:
    def topics(
        partitions: tuple[tuple[str, tuple[int, ...]], ...],
    ) -> list[answered.TopicPartition]:
        return [
            answered.TopicPartition(topic=name, partitions=list(indexes))
            for name, indexes in partitions
        ]

    host, port = endpoint.endpoint
    return answered.EndpointToPartitions(
        user_endpoint=answered.Endpoint(host=host, port=port),
        active_partitions=topics(endpoint.active),
        standby_partitions=topics(endpoint.standby),
    )
