"""Reassignments with an identity: ListReassignments and DescribeReassignments of KIP-240.

No Kafka release has them; a broker of the dialect ``kip-240`` does. The dialect defines their api
keys. A response to the latter contains neither topic nor partition, so descriptions are matched by
id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from kproto.client.calls import Attempt
from kproto.client.errors import NotRequestedError, raise_for_code
from kproto.client.reassignments import group_by_topic
from kproto.client.results import derive
from kproto.client.values import (
    Reassignment,
    ReassignmentDescription,
    TopicPartition,
    reassignment_id,
)
from kproto.dialects import Dialect
from kproto.errors import UnknownNameError, UnsupportedVersionError

__all__ = ["DescribeReassignmentsResult", "ListReassignmentsResult", "describe", "list_all"]

Descriptions = Mapping[Reassignment, ReassignmentDescription]


def message(dialect: Dialect, name: str) -> Any:
    """Return a message of the proposal. Raises UnsupportedVersionError in a dialect without it."""
    try:
        return dialect.message(name)
    except UnknownNameError:
        raise UnsupportedVersionError(
            f"dialect {dialect.name} has no {name}; use dialect='kip-240'"
        ) from None


async def list_all(
    attempt: Attempt, partitions: Collection[TopicPartition] | None
) -> list[Reassignment]:
    """List reassignments in progress, of ``partitions`` or of all."""
    request = message(attempt.dialect, "ListReassignmentsRequest")
    struct = request.STRUCTS["TopicPartition"]
    topics = None if partitions is None else [
        struct(topic=topic, partition_ids=[each.partition for each in group])
        for topic, group in group_by_topic(partitions).items()
    ]  # fmt: skip
    response = await attempt.request(
        request(timeout_ms=attempt.timeout_ms, topic_partitions=topics)
    )
    raise_for_code(response.error_code, response.error_message)
    return [
        Reassignment(TopicPartition(topic.topic, row.partition_id), row.reassignment_id)
        for topic in response.reassignments
        for row in topic.topic_reassignments
    ]


async def describe(
    attempt: Attempt, reassignments: Collection[Reassignment] | None
) -> Descriptions:
    """Describe those that are still in progress."""
    request = message(attempt.dialect, "DescribeReassignmentsRequest")
    topics = None if reassignments is None else _topics(request, reassignments)
    response = await attempt.request(
        request(timeout_ms=attempt.timeout_ms, topic_reassignments=topics)
    )
    raise_for_code(response.error_code, response.error_message)
    if reassignments is None and response.descriptions:
        # Requested afterwards, so that every described reassignment still in progress has its
        # partition here.
        reassignments = await list_all(attempt, None)
    by_id = {reassignment_id(each): each for each in reassignments or ()}
    return {
        by_id[row.reassignment_id]: _description(row)
        for row in response.descriptions
        if row.reassignment_id in by_id
    }


def _topics(request: Any, reassignments: Collection[Reassignment]) -> list[Any]:
    topic, row = request.STRUCTS["TopicReassignment"], request.STRUCTS["Reassignment"]
    grouped: dict[str, list[Any]] = {}
    for each in reassignments:
        name, partition = each.topic_partition
        grouped.setdefault(name, []).append(
            row(partition_id=partition, reassignment_id=reassignment_id(each))
        )
    return [topic(topic=name, reassignments=rows) for name, rows in grouped.items()]


def _description(row: Any) -> ReassignmentDescription:
    return ReassignmentDescription(
        start_time=row.start_time,
        current_leader=row.leader_id,
        leader_throttle=row.leader_throttle,
        new_assigned_brokers=[each.broker_id for each in row.new_assigned],
        new_assigned_throttles={
            each.broker_id: each.follower_throttle for each in row.new_assigned
        },
    )


class ListReassignmentsResult:
    """The outcome of ``Admin.list_reassignments``."""

    def __init__(
        self, call: asyncio.Future[list[Reassignment]], selection: Collection[TopicPartition] | None
    ) -> None:
        self._call = call
        self._selection = selection

    async def all(self) -> list[Reassignment]:
        """Return all reassignments once the response has arrived. Raises its error."""
        return list(await asyncio.shield(self._call))

    def get(self, partition: tuple[str, int]) -> asyncio.Future[Reassignment | None]:
        """Return None if the partition is not being reassigned. Raises NotRequestedError at once
        for one that the call did not request."""
        key = TopicPartition(*partition)
        if self._selection is not None and key not in self._selection:
            raise NotRequestedError(f"{key} was not part of the call")
        return derive(
            self._call, lambda found: next((r for r in found if r.topic_partition == key), None)
        )


class DescribeReassignmentsResult:
    """The outcome of ``Admin.describe_reassignments``."""

    def __init__(
        self, call: asyncio.Future[Descriptions], selection: Collection[Reassignment] | None
    ) -> None:
        self._call = call
        self._selection = selection

    async def reassignments(self) -> list[Reassignment]:
        """Return the described reassignments; useful if all were requested."""
        return list(await asyncio.shield(self._call))

    async def all(self) -> dict[Reassignment, ReassignmentDescription]:
        """Return all descriptions once the response has arrived. Raises its error."""
        return dict(await asyncio.shield(self._call))

    def get(self, reassignment: Reassignment) -> asyncio.Future[ReassignmentDescription | None]:
        """Return None if it was over when the request was processed. Raises NotRequestedError at
        once for one that the call did not request."""
        if self._selection is not None and reassignment not in self._selection:
            raise NotRequestedError(f"{reassignment} was not part of the call")
        return derive(self._call, lambda found: found.get(reassignment))
