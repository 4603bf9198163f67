"""ElectLeaders (43, KIP-183, KIP-460): preferred or unclean leader elections.

Versions: 0 is KIP-183's ElectPreferredLeaders; 1 election type and a top-level error;
2 flexible. Null partitions mean all. A broker that is not the controller of a cluster without
forwarding answers 41 in every partition and no top-level error, as Kafka's ZooKeeper brokers do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode
from mockbroker.apis.common.authorization import Refused, cluster_refusal
from mockbroker.apis.common.controller_queue import times_out
from mockbroker.apis.registry import Answer, Call, register
from mockbroker.simulation.elections.queue import StartedElection
from mockbroker.simulation.state.results import ElectLeadersResult, PartitionResult, TopicResult
from mockbroker.simulation.state.timers import wait_for_call

__all__ = ["elect_leaders"]

_PREFERRED = 0


@register(43, "0-2")
@register(43, "0", dialects=("kip-183",))
def elect_leaders(call: Call) -> Answer:
    requested = _wanted(call.body)
    refused = cluster_refusal(call)
    if refused is not None:
        return _response(call, _unauthorized(call, requested, refused))
    if requested != [] and times_out(call):
        return _response(call, _failed(requested or (), ErrorCode.REQUEST_TIMED_OUT))
    # Version 0 has preferred elections only.
    election_type = call.body.election_type if call.version >= 1 else _PREFERRED
    unknown = call.cluster.unknown_election_type(election_type, requested)
    if unknown is not None:
        return _response(call, unknown)
    if call.refused_as_not_controller:
        return _response(call, _everywhere(call, requested, ErrorCode.NOT_CONTROLLER))
    started = call.cluster.start_election(
        election_type, requested, broker_id=call.broker_id, timeout_ms=call.body.timeout_ms
    )
    if started.result is not None:
        return _response(call, started.result)
    return _later(call, started)


def _wanted(request: Any) -> list[tuple[str, Sequence[int]]] | None:
    if request.topic_partitions is None:
        return None
    # KIP-183 names every partition field partition_id.
    ids = "partitions" if "election_type" in request.__struct_fields__ else "partition_id"
    return [(each.topic, getattr(each, ids)) for each in request.topic_partitions]


async def _later(call: Call, started: StartedElection) -> Message:
    """Wait for the result. If the client disconnects, the election is withdrawn."""
    try:
        await wait_for_call(started.when_done)
    finally:
        call.cluster.withdraw_election(started)
    assert started.result is not None, "that is what it was waited for"
    return _response(call, started.result)


def _unauthorized(
    call: Call, requested: Sequence[tuple[str, Sequence[int]]] | None, refused: Refused
) -> ElectLeadersResult:
    """Refuse as released brokers do: list only partitions that the request names."""
    code, text = refused
    if not call.profile.forwarding:
        return replace(_everywhere(call, requested or (), code), error_code=code)
    return _failed(requested or (), code, text)


def _failed(
    requested: Sequence[tuple[str, Sequence[int]]], code: ErrorCode, text: str | None = None
) -> ElectLeadersResult:
    """Return this error at the top and in every partition that the request names."""
    return ElectLeadersResult(
        code,
        tuple(
            TopicResult(name, tuple(PartitionResult(index, code, text) for index in indexes))
            for name, indexes in requested
        ),
    )


def _everywhere(
    call: Call, requested: Sequence[tuple[str, Sequence[int]]] | None, code: ErrorCode
) -> ElectLeadersResult:
    return call.cluster.refused_elections(requested, call.broker_id, code)


def _response(call: Call, result: ElectLeadersResult) -> Message:
    make: Any = call.api.response
    structs: Mapping[str, Any] = call.api.response.STRUCTS
    topic_of, row_of = structs["ReplicaElectionResult"], structs["PartitionResult"]
    fields: dict[str, Any] = {
        "replica_election_results": [
            topic_of(
                topic=topic.name,
                partition_result=[
                    row_of(
                        partition_id=row.partition_index,
                        error_code=row.error_code,
                        error_message=row.error_message,
                    )
                    for row in topic.partitions
                ],
            )
            for topic in result.topics
        ]
    }
    if call.version >= 1:
        fields["error_code"] = result.error_code
    answer: Message = make(**fields)
    return answer
