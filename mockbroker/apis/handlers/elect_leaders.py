"""ElectLeaders (43, KIP-183, KIP-460): preferred or unclean leader elections.

Versions: 0 is KIP-183's ElectPreferredLeaders; 1 election type and a top-level error;
2 flexible. Null partitions mean all. A broker that is not the controller of a cluster without
forwarding answers 41 in every partition and no top-level error, as Kafka's ZooKeeper brokers do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode
from mockbroker.apis.common.controller_queue import queued
from mockbroker.apis.common.requirements import (
    Requirement,
    cluster_operation,
    controller,
    everywhere,
    merged,
    silent,
    when,
)
from mockbroker.apis.registry import Answer, Call, register
from mockbroker.simulation.elections.queue import StartedElection
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.results import ElectLeadersResult
from mockbroker.simulation.state.timers import wait_for_call

__all__ = ["elect_leaders"]

_PREFERRED = 0


_ALTER: Final = everywhere(cluster_operation(AclOperation.ALTER))


def _forwarded(call: Call) -> int:
    forwards = not call.profile.forwarding or call.release.has(facts.ELECTIONS_FORWARDED)
    return 0 if forwards else ErrorCode.UNSUPPORTED_VERSION


def _not_forwarded(_call: Call, _code: int) -> str:
    return "Not yet supported when using a Raft-based metadata quorum: ELECT_LEADERS"


_REQUIRES: Final = (
    everywhere(Requirement(_forwarded, _not_forwarded)),
    when(lambda call: call.profile.forwarding, _ALTER),
    *silent(merged(when(lambda call: not call.profile.forwarding, _ALTER))),
    *silent(everywhere(queued("topic_partitions"))),
)


@register(43, "0-2", requires=_REQUIRES)
@register(43, "0", requires=_REQUIRES, dialects=("kip-183",))
def elect_leaders(call: Call) -> Answer:
    requested = _wanted(call.body)
    # Version 0 has preferred elections only.
    election_type = call.body.election_type if call.version >= 1 else _PREFERRED
    rules = call.cluster.elections.rules
    unknown = rules.unknown_type(election_type, requested)
    if unknown is not None:
        return _response(call, unknown)
    code = controller.check(call)
    if code:
        known = rules.every_partition(call.broker_id) if requested is None else requested
        return _response(call, rules.refused(known, code))
    started = call.cluster.elections.start(
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
        call.cluster.elections.withdraw(started)
    assert started.result is not None, "that is what it was waited for"
    return _response(call, started.result)


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
