"""Requests of any dialect from plain values, as the drafts' messages have different fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kproto.codec.message import Message
from kproto.dialects import Dialect

__all__ = ["alter_configs", "create_partitions", "create_topic", "delete_topic", "elect", "listing",
           "metadata", "reassign"]  # fmt: skip

Reassignments = Sequence[tuple[tuple[str, int], Sequence[int] | None]]


def _classes(codec: Dialect, api_key: int) -> tuple[Any, Any]:
    request: Any = codec.api(api_key).request
    return request, request.STRUCTS


def _by_topic(rows: Sequence[tuple[tuple[str, int], Any]]) -> dict[str, list[tuple[int, Any]]]:
    topics: dict[str, list[tuple[int, Any]]] = {}
    for (name, index), value in rows:
        topics.setdefault(name, []).append((index, value))
    return topics


def reassign(
    codec: Dialect, wanted: Reassignments, *, guarded: bool = False, timeout_ms: int = 60_000
) -> Message:
    """Return an AlterPartitionReassignments (45) request."""
    request, structs = _classes(codec, 45)
    topic, partition = structs["ReassignableTopic"], structs["ReassignablePartition"]
    topics = [
        topic(name=name, partitions=[partition(partition_index=i, replicas=r) for i, r in rows])
        for name, rows in _by_topic(
            [(tp, None if r is None else list(r)) for tp, r in wanted]
        ).items()
    ]
    guard = {"allow_replication_factor_change": False} if guarded else {}
    made: Message = request(topics=topics, timeout_ms=timeout_ms, **guard)
    return made


def listing(codec: Dialect) -> Message:
    """Return a ListPartitionReassignments (46) request for everything."""
    request, _ = _classes(codec, 46)
    made: Message = request(topics=None)
    return made


def elect(
    codec: Dialect,
    version: int,
    kind: int,
    wanted: Sequence[tuple[str, int]] | None,
    timeout_ms: int,
) -> Message:
    """Return an ElectLeaders (43) request. Version 0 has no election type."""
    request, structs = _classes(codec, 43)
    ids = "partition_id" if codec.name == "kip-183" else "partitions"
    topics = None
    if wanted is not None:
        rows = _by_topic([(tp, None) for tp in wanted])
        topics = [
            structs["TopicPartitions"](topic=name, **{ids: [index for index, _ in parts]})
            for name, parts in rows.items()
        ]
    typed = {"election_type": kind} if version >= 1 else {}
    made: Message = request(topic_partitions=topics, timeout_ms=timeout_ms, **typed)
    return made


def create_topic(
    codec: Dialect, name: str, count: int, factor: int, lists: Sequence[Sequence[int]] | None,
    dry: bool, timeout_ms: int,
) -> Message:  # fmt: skip
    """Return a CreateTopics (19) request. With ``lists`` the replicas are listed instead of
    counted."""
    request, structs = _classes(codec, 19)
    topic = structs["CreatableTopic"](
        name=name,
        num_partitions=count if lists is None else -1,
        replication_factor=factor if lists is None else -1,
        assignments=[
            structs["CreatableReplicaAssignment"](partition_index=i, broker_ids=list(ids))
            for i, ids in enumerate(lists or ())
        ],
    )
    made: Message = request(topics=[topic], timeout_ms=timeout_ms, validate_only=dry)
    return made


def delete_topic(codec: Dialect, version: int, name: str, timeout_ms: int) -> Message:
    """Return a DeleteTopics (20) request by name."""
    request, structs = _classes(codec, 20)
    named: dict[str, Any] = {"topic_names": [name]}
    if version >= 6:
        named = {"topics": [structs["DeleteTopicState"](name=name)]}
    made: Message = request(timeout_ms=timeout_ms, **named)
    return made


def create_partitions(codec: Dialect, name: str, count: int, dry: bool, timeout_ms: int) -> Message:
    """Return a CreatePartitions (37) request; the controller chooses the replicas."""
    request, structs = _classes(codec, 37)
    topic = structs["CreatePartitionsTopic"](name=name, count=count, assignments=None)
    made: Message = request(topics=[topic], timeout_ms=timeout_ms, validate_only=dry)
    return made


def alter_configs(
    codec: Dialect, resource: tuple[int, str], config: tuple[str, str], operation: int
) -> Message:
    """Return an IncrementalAlterConfigs (44) request: a resource's type and name, a config's name
    and value."""
    request, structs = _classes(codec, 44)
    name, value = config
    altered = structs["AlterableConfig"](name=name, config_operation=operation, value=value)
    made: Message = request(
        resources=[
            structs["AlterConfigsResource"](
                resource_type=resource[0], resource_name=resource[1], configs=[altered]
            )
        ]
    )
    return made


def metadata(codec: Dialect, version: int) -> Message:
    """Return a Metadata (3) request for every topic, without auto-creation."""
    request, _ = _classes(codec, 3)
    fields: dict[str, Any] = {"topics": [] if version == 0 else None}
    made: Message = request(**fields)
    return made
