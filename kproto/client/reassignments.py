"""AlterPartitionReassignments (45) and ListPartitionReassignments (46): build bodies, interpret
responses.

Released Kafka and the drafts of KIP-455 share keys and versions but differ in layout. The classes
of a dialect show which layout it has: responses of the drafts have no topics, and their entries are
in the order of the request's partitions. The drafts' list request has no topic names, so its
response is filtered here. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kproto.client.calls import Attempt
from kproto.client.errors import (
    BrokerError,
    NotControllerError,
    UnknownServerError,
    broker_error,
    raise_for_code,
)
from kproto.client.values import PartitionReassignment, TopicPartition
from kproto.dialects import Api
from kproto.errors import EncodeError, UnsupportedVersionError

__all__ = ["alter", "cancel_all", "count_mismatch", "list_ongoing"]

ALTER: Final = 45
LIST: Final = 46

# Kafka's own client refuses with this sentence.
_NO_GUARD: Final = (
    "The broker does not support the AllowReplicationFactorChange option for the "
    "AlterPartitionReassignments API. Consider re-sending the request without the option or "
    "updating the server version"
)

Outcome = Mapping[TopicPartition, BrokerError | None]


async def alter(
    attempt: Attempt,
    requested: Mapping[TopicPartition, list[int] | None],
    *,
    allow_replication_factor_change: bool,
) -> Outcome:
    """Send one request for all of ``requested``, where None cancels. Returns the outcome of each
    partition."""
    api = attempt.dialect.api(ALTER)
    by_topic = group_by_topic(requested)
    topic: Any = api.request.STRUCTS["ReassignableTopic"]
    partition: Any = api.request.STRUCTS["ReassignablePartition"]
    topics = [
        topic(
            name=name,
            partitions=[
                partition(partition_index=each.partition, replicas=requested[each])
                for each in partitions
            ],
        )
        for name, partitions in by_topic.items()
    ]
    response = await _send_alter(attempt, api, topics, allow_replication_factor_change)
    ordered = [each for partitions in by_topic.values() for each in partitions]
    return _positional(ordered, response) if _is_positional(api) else _keyed(ordered, response)


async def cancel_all(attempt: Attempt) -> list[BrokerError | None] | None:
    """Send the drafts' null topics, which cancel all reassignments in progress. Returns the outcome
    of each affected partition, or None if the dialect has no such request."""
    api = attempt.dialect.api(ALTER)
    if not _is_positional(api):
        return None
    response = await _send_alter(attempt, api, None, allow_replication_factor_change=True)
    outcomes = [_outcome(row.error_code, row.error_string) for row in response.responses]
    _raise_if_refused(outcomes)
    return outcomes


async def _send_alter(
    attempt: Attempt, api: Api, topics: Any, allow_replication_factor_change: bool
) -> Any:
    version = attempt.version(ALTER)
    request: Any = api.request
    fields = {"timeout_ms": attempt.timeout_ms, "topics": topics}
    if not allow_replication_factor_change:
        # Sent even when cancelling all, where it has no effect: only the option decides.
        if version < 1:
            raise UnsupportedVersionError(_NO_GUARD)
        fields["allow_replication_factor_change"] = False
    return await attempt.request(request(**fields), version)


def _is_positional(api: Api) -> bool:
    return "ReassignableTopicResponse" not in api.response.STRUCTS


def _positional(ordered: Sequence[TopicPartition], response: Any) -> Outcome:
    rows = [_outcome(row.error_code, row.error_string) for row in response.responses]
    _raise_if_refused(rows)
    if len(rows) != len(ordered):
        raise count_mismatch(len(ordered), len(rows))
    return dict(zip(ordered, rows, strict=True))


def _raise_if_refused(rows: Sequence[BrokerError | None]) -> None:
    """Raise if the response refuses the whole request. Without a top-level error, NOT_CONTROLLER is
    repeated in every entry."""
    if rows and all(isinstance(row, NotControllerError) for row in rows):
        raise NotControllerError(rows[0].text if rows[0] else None)


def _keyed(ordered: Sequence[TopicPartition], response: Any) -> Outcome:
    # The top-level error applies to every partition, whether listed or not.
    raise_for_code(response.error_code, response.error_message)
    rows = {
        TopicPartition(topic.name, row.partition_index): _outcome(row.error_code, row.error_message)
        for topic in response.responses
        for row in topic.partitions
    }
    received = sum(len(topic.partitions) for topic in response.responses)
    if received != len(ordered) and not any(rows.values()):
        raise count_mismatch(len(ordered), received)
    # Kafka's own client never completes partitions that are missing beside an error.
    return {each: rows.get(each, count_mismatch(len(ordered), received)) for each in ordered}


def _outcome(code: int, text: str | None) -> BrokerError | None:
    return broker_error(code, text) if code else None


def count_mismatch(expected: int, received: int) -> UnknownServerError:
    """Kafka's text, including its missing blank."""
    quantity = "many" if received > expected else "less"
    return UnknownServerError(
        f"The server returned too {quantity} results.Expected {expected} but received {received}"
    )


async def list_ongoing(
    attempt: Attempt, requested: Sequence[TopicPartition] | Sequence[str] | None
) -> dict[TopicPartition, PartitionReassignment]:
    """Return ongoing reassignments of ``requested`` (partitions or whole topics; None: all)."""
    api = attempt.dialect.api(LIST)
    request: Any = api.request
    body = request(timeout_ms=attempt.timeout_ms, topics=_listed_topics(api, requested))
    response = await attempt.request(body)
    raise_for_code(response.error_code, response.error_message)
    found = {
        TopicPartition(topic.name, _index(row)): _reassignment(row)
        for topic in response.topics
        for row in topic.partitions
    }
    if requested is None:
        return found
    keep = set(requested)
    return {key: value for key, value in found.items() if key in keep or key.topic in keep}


def _listed_topics(
    api: Api, requested: Sequence[TopicPartition] | Sequence[str] | None
) -> list[Any] | None:
    if requested is None:
        return None
    partitions = [each for each in requested if isinstance(each, TopicPartition)]
    names = [each for each in requested if not isinstance(each, TopicPartition)]
    struct: Any = api.request.STRUCTS["ListPartitionReassignmentsTopics"]
    fields = struct.__struct_fields__
    if "name" in fields:
        ids = "partition_indexes" if "partition_indexes" in fields else "partition_ids"
        # The request selects all or single partitions: whole topics are selected from all.
        return None if names else [
            struct(name=topic, **{ids: [each.partition for each in group]})
            for topic, group in group_by_topic(partitions).items()
        ]  # fmt: skip
    if names:
        every = [struct(partition_ids=None) for _ in names]
        return every if _can_encode(api, every) else None
    return [
        struct(partition_ids=[each.partition for each in group])
        for group in group_by_topic(partitions).values()
    ]


def _can_encode(api: Api, topics: list[Any]) -> bool:
    """Whether the request can be encoded. Null ids mean every partition in the newer draft; the
    older one has no null there."""
    request: Any = api.request
    try:
        request(topics=topics).encode(api.valid_versions.highest)
    except EncodeError:
        return False
    return True


def _index(row: Any) -> int:
    index: int = row.partition_index if hasattr(row, "partition_index") else row.partition_id
    return index


def _reassignment(row: Any) -> PartitionReassignment:
    if hasattr(row, "current_replicas"):
        return PartitionReassignment.towards(row.current_replicas, row.target_replicas)
    return PartitionReassignment(row.replicas, row.adding_replicas, row.removing_replicas)


def group_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    """Group by topic, in the order of each topic's first partition."""
    groups: dict[str, list[TopicPartition]] = {}
    for each in partitions:
        groups.setdefault(each.topic, []).append(each)
    return groups
