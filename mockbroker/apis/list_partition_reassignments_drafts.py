"""ListPartitionReassignments (46) of the drafts of KIP-455, which are not flexible.

Topics in the request have no names: their partition ids, taken together, filter over all topics,
null topics and (newer draft) null ids filter nothing. With an error there are no topics.
"""

from __future__ import annotations

from typing import Any

from kproto.codegen.base import Message
from mockbroker.apis.alter_partition_reassignments_drafts import request_error
from mockbroker.apis.registry import Call, register
from mockbroker.model import Topic

__all__ = ["list_partition_reassignments_drafts"]


@register(46, "0", dialects=("kip-455-old", "kip-455-new"))
def list_partition_reassignments_drafts(call: Call) -> Message:
    make: Any = call.api.response
    error = request_error(call)
    if error is not None:
        refused: Message = make(error_code=error, error_message=None)
        return refused
    wanted = _wanted(call.body.topics)
    topics = (_topic(call, topic, wanted) for _, topic in sorted(call.cluster.topics.items()))
    answer: Message = make(error_message=None, topics=[each for each in topics if each.partitions])
    return answer


def _wanted(topics: list[Any] | None) -> set[int] | None:
    """The partition ids asked for, None for all."""
    if topics is None or any(each.partition_ids is None for each in topics):
        return None
    return {index for each in topics for index in each.partition_ids}


def _topic(call: Call, topic: Topic, wanted: set[int] | None) -> Any:
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
            if each.reassigning and (wanted is None or each.index in wanted)
        ],
    )
