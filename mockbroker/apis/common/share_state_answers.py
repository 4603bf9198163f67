"""What the APIs of the share coordinator (83 to 87) share: checks, and the order of rows."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from kproto.error_codes import message
from mockbroker.apis.calls import Call
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind, share_text
from mockbroker.simulation.groups.share.share_states import ShareStateError
from mockbroker.simulation.state.java_maps import hash_order_of_numbers, hash_order_of_uuids

__all__ = ["state_results"]

RowT = TypeVar("RowT")
ResultT = TypeVar("ResultT")


def state_results(
    call: Call,
    operation: str,
    carry_out: Callable[[uuid.UUID, Any], RowT | ShareStateError],
    row: Callable[..., RowT],
    result: Callable[..., ResultT],
    *,
    leaves_topics_out: bool = False,
) -> list[ResultT]:
    """Answer each partition of the request that this broker coordinates by ``carry_out``.

    ``row`` and ``result`` are the classes of the response for a partition and a topic.
    ``operation`` names the request in texts. A request without a group, or with a topic without
    partitions, is answered with nothing; ``leaves_topics_out``: with nothing of such a topic.
    """
    topics, group_id = call.body.topics, call.body.group_id
    if not group_id or not (leaves_topics_out or all(each.partitions for each in topics)):
        return []
    rows: dict[uuid.UUID, dict[int, RowT]] = {}
    for topic in topics:
        for each in topic.partitions:
            key = share_text(group_id, topic.topic_id, each.partition)
            code = call.cluster.coordinators.error(CoordinatorKind.SHARE, key, call.broker_id)
            answer: RowT | ShareStateError
            if code:
                answer = ShareStateError(code, f"Unable to {operation}: {message(code)}")
            else:
                answer = carry_out(topic.topic_id, each)
            if isinstance(answer, ShareStateError):
                answer = row(
                    partition=each.partition, error_code=answer.code, error_message=answer.text
                )
            rows.setdefault(topic.topic_id, {})[each.partition] = answer
    return [
        result(
            topic_id=topic_id,
            partitions=[rows[topic_id][index] for index in hash_order_of_numbers(rows[topic_id])],
        )
        for topic_id in hash_order_of_uuids(rows)
    ]
