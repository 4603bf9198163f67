"""AlterPartitionReassignments (45) of the drafts of KIP-455, which are not flexible.

Null topics, partitions or replicas cancel everything below them. The response names no topic or
partition: it has one entry per requested partition, in the request's order, and for a null one
entry per affected partition, ordered by topic name and index. It has no top-level error either: an
error of the whole request is repeated in every entry, and if there would be no entry, there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode
from mockbroker.apis.common.requirements import Requirement, cluster_access, controller
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["alter_partition_reassignments_drafts", "in_time"]

_NO_PARTITION = -1


def _late_error(call: Call) -> int:
    """A request is done once it is recorded, which takes no time here, so it is late only if its
    time-out is not positive."""
    return ErrorCode.REQUEST_TIMED_OUT if call.body.timeout_ms <= 0 else 0


in_time: Final = Requirement(_late_error)


class _EntryForEach(Requirement, frozen=True):
    """The error is in an entry for each partition, or in one alone."""

    def refusal(self, call: Call, code: int) -> Message:
        count = sum(len(partitions) for _, partitions in _expanded(call))
        return _response(call, [(code, None)] * max(count, 1))


@register(
    45,
    "0",
    requires=tuple(
        _EntryForEach(each.check)
        for each in (cluster_access(AclOperation.ALTER), controller, in_time)
    ),
    dialects=("kip-455-old", "kip-455-new", "kip-455-named"),
)
def alter_partition_reassignments_drafts(call: Call) -> Message:
    requested = _expanded(call)
    result = call.cluster.reassignments.alter(requested)
    rows = (row for topic in result.topics for row in topic.partitions)
    return _response(call, [(row.error_code, row.error_message) for row in rows])


def _expanded(call: Call) -> list[tuple[str, list[tuple[int, Sequence[int] | None]]]]:
    """Replace the nulls of a request by the partitions whose reassignments are in progress."""
    topics = call.body.topics
    if topics is None:
        return [(name, _ongoing(call, name)) for name in sorted(call.cluster.topics)]
    return [(topic.name, _partitions(call, topic)) for topic in topics]


def _partitions(call: Call, topic: Any) -> list[tuple[int, Sequence[int] | None]]:
    if topic.partitions is not None:
        return [(each.partition_index, each.replicas) for each in topic.partitions]
    if topic.name not in call.cluster.topics:
        # A partition that cannot exist gives the topic an entry for its error.
        return [(_NO_PARTITION, None)]
    return _ongoing(call, topic.name)


def _ongoing(call: Call, name: str) -> list[tuple[int, Sequence[int] | None]]:
    partitions = call.cluster.topics[name].partitions
    return [(each.index, None) for each in partitions if each.reassigning]


def _response(call: Call, rows: list[tuple[int, str | None]]) -> Message:
    response = call.api.response
    entry: Any = response.STRUCTS["ReassignablePartitionResponse"]
    make: Any = response
    answer: Message = make(
        responses=[entry(error_code=code, error_string=text) for code, text in rows]
    )
    return answer
