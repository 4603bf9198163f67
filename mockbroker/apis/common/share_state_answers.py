"""What the APIs of the share coordinator (83 to 87) share: checks, and the order of rows."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kproto.error_codes import ErrorCode, message
from mockbroker.apis.common.authorization import may
from mockbroker.apis.registry import Call
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind, share_text
from mockbroker.simulation.groups.share.share_states import ShareStateError
from mockbroker.simulation.state.java_maps import hash_order_of_numbers, hash_order_of_uuids

__all__ = ["state_results"]

RowT = TypeVar("RowT")
ResultT = TypeVar("ResultT")


def state_results(
    call: Call,
    operation: str,
    row: Callable[[uuid.UUID, Any], RowT],
    failed: Callable[[int, ShareStateError], RowT],
    result: Callable[[uuid.UUID, list[RowT]], ResultT],
) -> list[ResultT]:
    """Answer each partition of the request: ``row`` carries it out, and ``failed`` describes the
    error of one that this broker does not coordinate. ``operation`` names the request in texts.

    A request without a group, or with a topic without partitions, is answered with nothing.
    """
    topics, group_id = call.body.topics, call.body.group_id
    if not may(call):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        error = ShareStateError(code, message(code))
        return [
            result(each.topic_id, [failed(one.partition, error) for one in each.partitions])
            for each in topics
        ]
    if not group_id or not all(each.partitions for each in topics):
        return []
    found: dict[uuid.UUID, dict[int, RowT]] = {}
    for topic, each in _partitions(topics):
        code = call.cluster.coordinators.error(
            CoordinatorKind.SHARE,
            share_text(group_id, topic.topic_id, each.partition),
            call.broker_id,
        )
        error = ShareStateError(code, f"Unable to {operation}: {message(code)}")
        found.setdefault(topic.topic_id, {})[each.partition] = (
            failed(each.partition, error) if code else row(topic.topic_id, each)
        )
    answers = []
    for topic_id in hash_order_of_uuids(found):
        rows = found[topic_id]
        answers.append(result(topic_id, [rows[index] for index in hash_order_of_numbers(rows)]))
    return answers


def _partitions(topics: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
    for topic in topics:
        for each in topic.partitions:
            yield topic, each
