"""ListReassignments of KIP-240: the reassignments in progress, each with its identity.

Version 0 of the dialect ``kip-240``, not flexible; its api key is provisional. Only the controller
answers. Null partitions mean all. Idle partitions are omitted. An unknown partition fails the
request: the message names it, and nothing is listed.
"""

from __future__ import annotations

from typing import Any, Final

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode
from mockbroker.apis.common.requirements import cluster_operation, controller, silent
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_parts import TopicPartition, find_partition

__all__ = ["REQUIRES", "list_reassignments"]


REQUIRES: Final = (cluster_operation(AclOperation.DESCRIBE), *silent(controller))
"""What both requests of KIP-240 require."""


@register(32240, "0", requires=REQUIRES, dialects=("kip-240",))
def list_reassignments(call: Call) -> Message:
    requested = _requested(call)
    refused = _unknown(call, requested)
    if refused is not None:
        return _response(call, error_code=refused[0], error_message=refused[1])
    ongoing = call.cluster.reassignments.identities()
    expected = (
        ongoing if requested is None else [tp for tp in dict.fromkeys(requested) if tp in ongoing]
    )
    topics: dict[str, list[Any]] = {}
    row: Any = call.api.response.STRUCTS["TopicReassignment"]
    for name, index in expected:
        rows = topics.setdefault(name, [])
        rows.append(row(partition_id=index, reassignment_id=ongoing[name, index].czxid))
    topic: Any = call.api.response.STRUCTS["Reassignment"]
    listed = [topic(topic=name, topic_reassignments=rows) for name, rows in topics.items()]
    return _response(call, reassignments=listed)


def _requested(call: Call) -> list[TopicPartition] | None:
    topics = call.body.topic_partitions
    if topics is None:
        return None
    return [(topic.topic, index) for topic in topics for index in topic.partition_ids]


def _unknown(call: Call, requested: list[TopicPartition] | None) -> tuple[ErrorCode, str] | None:
    for name, index in requested or ():
        if find_partition(call.cluster.topics, (name, index)) is None:
            text = f"There is no partition {name}-{index}."
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text
    return None


def _response(call: Call, **fields: Any) -> Message:
    make: Any = call.api.response
    answer: Message = make(**{"error_message": None, **fields})
    return answer
