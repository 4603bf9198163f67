"""DescribeReassignments of KIP-240: the progress of each reassignment, by its identity.

Version 0 of the dialect ``kip-240``, not flexible; its api key is provisional. Only the controller
answers. Null reassignments mean all. A reassignment that has ended, or never existed, is omitted,
whatever happens to its partition now. A description names no partition: clients match it by id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kproto.codec.message import Message
from mockbroker.apis.handlers.kip_240_list import REQUIRES
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.reassignment.identities import ReassignmentIdentity
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["describe_reassignments"]


@register(32241, "0", requires=REQUIRES, dialects=("kip-240",))
def describe_reassignments(call: Call) -> Message:
    make: Any = call.api.response
    ongoing = call.cluster.reassignments.identities()
    found: Message = make(
        error_message=None,
        descriptions=[_description(call, tp, ongoing[tp]) for tp in _wanted(call, ongoing)],
    )
    return found


def _wanted(
    call: Call, ongoing: Mapping[TopicPartition, ReassignmentIdentity]
) -> list[TopicPartition]:
    """Return the requested reassignments that are still in progress, each once, in the request's
    order."""
    topics = call.body.topic_reassignments
    if topics is None:
        return list(ongoing)
    requested = (
        ((topic.topic, each.partition_id), each.reassignment_id)
        for topic in topics
        for each in topic.reassignments
    )
    return list(
        dict.fromkeys(tp for tp, czxid in requested if tp in ongoing and ongoing[tp].czxid == czxid)
    )


def _description(call: Call, tp: TopicPartition, identity: ReassignmentIdentity) -> Any:
    structs: dict[str, Any] = dict(call.api.response.STRUCTS)
    leader = call.cluster.topics.partition(*tp).leader
    throttle = call.cluster.configs.replication_throttle
    return structs["Description"](
        reassignment_id=identity.czxid,
        start_time=identity.ctime_ms,
        leader_id=leader,
        leader_throttle=throttle("leader", tp, leader),
        new_assigned=[
            structs["NewAssigned"](broker_id=each, follower_throttle=throttle("follower", tp, each))
            for each in identity.target
        ],
    )
