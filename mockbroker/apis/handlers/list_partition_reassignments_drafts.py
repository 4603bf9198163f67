"""ListPartitionReassignments (46) of the drafts of KIP-455, which are not flexible.

Topics in the request have no names. Their partition ids, taken together, filter over all topics;
null topics and, in the newer draft, null ids filter nothing. In ``kip-455-named`` topics have
names, and ids filter within their topic. A response with an error lists no topics.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from kproto.codec.message import Message
from mockbroker.apis.common.requirements import cluster_access, controller, silent
from mockbroker.apis.handlers.alter_partition_reassignments_drafts import in_time
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_parts import Topic

__all__ = ["list_partition_reassignments_drafts"]


@register(
    46,
    "0",
    requires=silent(cluster_access(AclOperation.DESCRIBE), controller, in_time),
    dialects=("kip-455-old", "kip-455-new", "kip-455-named"),
)
def list_partition_reassignments_drafts(call: Call) -> Message:
    make: Any = call.api.response
    requested = _wanted(call.body.topics)
    topics = (_topic(call, topic, requested) for _, topic in sorted(call.cluster.topics.items()))
    answer: Message = make(error_message=None, topics=[each for each in topics if each.partitions])
    return answer


def _wanted(topics: list[Any] | None) -> Callable[[str, int], bool]:
    """Selects the requested partitions."""
    if topics is None:
        return lambda _name, _index: True
    # None stands for any topic or partition.
    pairs = {
        (getattr(each, "name", None), index)
        for each in topics
        for index in ([None] if each.partition_ids is None else each.partition_ids)
    }
    return lambda name, index: not pairs.isdisjoint(product((None, name), (None, index)))


def _topic(call: Call, topic: Topic, requested: Callable[[str, int], bool]) -> Any:
    structs: dict[str, Any] = dict(call.api.response.STRUCTS)
    return structs["OngoingTopicReassignment"](
        name=topic.name,
        partitions=[
            structs["OngoingPartitionReassignment"](
                partition_id=each.index,
                current_replicas=list(each.replicas),
                target_replicas=list(each.target or ()),
            )
            for each in topic.partitions
            if each.reassigning and requested(topic.name, each.index)
        ],
    )
