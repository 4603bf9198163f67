"""``kafka-topics --describe``: one line for each topic and each partition.

Reassignments come from the controller and replicas from any broker, so the two may disagree for a
moment (KIP-860); each is printed as received.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

import msgspec

from kproto.client import (
    BrokerUnsupportedVersionError,
    ClusterAuthorizationError,
    ConfigEntry,
    PartitionDescription,
    PartitionReassignment,
    TopicDescription,
    TopicPartition,
)
from kproto.errors import UnsupportedVersionError
from kproto.tools.access import Access
from kproto.tools.drafts import is_kip_455_draft
from kproto.tools.errors import ToolError
from kproto.tools.texts import joined
from kproto.tools.topics import find_topics

__all__ = ["DescribeFilters", "describe", "parse_topic_id"]

Write = Callable[..., None]
"""Takes the columns of a line, the last with the line end."""

_MIN_ISR: Final = "min.insync.replicas"


class DescribeFilters(msgspec.Struct, frozen=True):
    """Filters. Any of the first four selects partitions in that state; the last selects topics with
    configs of their own, without their partitions."""

    under_replicated: bool = False
    unavailable: bool = False
    under_min_isr: bool = False
    at_min_isr: bool = False
    overridden_configs: bool = False

    @property
    def of_partitions(self) -> bool:
        return self.under_replicated or self.unavailable or self.under_min_isr or self.at_min_isr


async def describe(
    access: Access,
    write: Write,
    *,
    pattern: str | None = None,
    topic_id: UUID | None = None,
    if_exists: bool = False,
    exclude_internal: bool = False,
    reports: DescribeFilters | None = None,
) -> None:
    """Describe matching topics, by name. ``topic_id`` takes precedence over ``pattern``."""
    reports = reports or DescribeFilters()
    described = await _described(
        access,
        None if topic_id is not None else pattern,
        topic_id,
        must_exist=not if_exists,
        exclude_internal=exclude_internal,
    )
    configs = await access.topic_configs([each.name for each in described])
    live = {node.id for node in (await access.cluster()).nodes}
    ongoing = await _reassignments(access, described)
    with_targets = is_kip_455_draft(access.dialect)
    for topic in described:
        if not topic.partitions:
            continue
        own = configs[topic.name]
        if not reports.of_partitions and (not reports.overridden_configs or _overrides(own)):
            write(*_topic_line(topic, own, ongoing))
        if not reports.overridden_configs:
            for partition in topic.partitions:
                moving = ongoing.get(TopicPartition(topic.name, partition.index))
                if not reports.of_partitions or _reported(reports, partition, moving, own, live):
                    write(*_partition_line(topic.name, partition, moving, with_targets))


async def _described(
    access: Access,
    pattern: str | None,
    topic_id: UUID | None,
    *,
    must_exist: bool,
    exclude_internal: bool,
) -> list[TopicDescription]:
    names = await find_topics(
        access, pattern, exclude_internal=exclude_internal, must_exist=must_exist
    )
    found: list[TopicDescription] = []
    for description in (await access.topics_or_errors(names)).values():
        if isinstance(description, Exception):
            raise description
        found.append(description)
    if topic_id is not None:
        found = [topic for topic in found if topic.topic_id == topic_id]
        if must_exist and not found:
            raise _failed(f"TopicId '{_show_id(topic_id)}' does not exist as expected")
    return sorted(found, key=lambda topic: topic.name)


async def _reassignments(
    access: Access, topics: Iterable[TopicDescription]
) -> Mapping[TopicPartition, PartitionReassignment]:
    """Return None if the cluster cannot list reassignments or refuses to: the rest is worth
    printing."""
    requested = {
        TopicPartition(topic.name, each.index) for topic in topics for each in topic.partitions
    }
    if not requested:
        return {}
    try:
        return await access.reassignments(requested)
    except (UnsupportedVersionError, BrokerUnsupportedVersionError, ClusterAuthorizationError):
        return {}


def _topic_line(
    topic: TopicDescription,
    configs: Sequence[ConfigEntry],
    ongoing: Mapping[TopicPartition, PartitionReassignment],
) -> list[str]:
    first = topic.partitions[0]
    factor = _replication_factor(first, ongoing.get(TopicPartition(topic.name, first.index)))
    overrides = joined(f"{each.name}={each.value}" for each in _overrides(configs))
    parts = [f"Topic: {topic.name}"]
    if topic.topic_id is not None:
        parts.append(f"TopicId: {_show_id(topic.topic_id)}")
    parts.append(f"PartitionCount: {len(topic.partitions)}")
    parts.append(f"ReplicationFactor: {factor}")
    parts.append(f"Configs: {overrides}\n")
    return parts


def _partition_line(
    topic: str,
    partition: PartitionDescription,
    moving: PartitionReassignment | None,
    with_targets: bool,
) -> list[str]:
    parts = [
        "",
        f"Topic: {topic}",
        f"Partition: {partition.index}",
        f"Leader: {partition.leader if partition.leader >= 0 else 'none'}",
        f"Replicas: {joined(partition.replicas)}",
        f"Isr: {joined(partition.isr)}",
    ]
    if with_targets:
        # The drafts of KIP-455, whose brokers do not know eligible leader replicas.
        if moving is not None:
            parts.append(f"targetReplicas: {joined(moving.target_brokers)}")
        return [*parts[:-1], f"{parts[-1]}\n"]
    if moving is not None:
        parts.append(f"Adding Replicas: {joined(moving.adding_replicas)}")
        parts.append(f"Removing Replicas: {joined(moving.removing_replicas)}")
    parts.append(f"Elr: {_or_unknown(partition.eligible_leader_replicas)}")
    parts.append(f"LastKnownElr: {_or_unknown(partition.last_known_elr)}\n")
    return parts


def _or_unknown(brokers: Sequence[int] | None) -> str:
    return "N/A" if brokers is None else joined(brokers)


def _reported(
    reports: DescribeFilters,
    partition: PartitionDescription,
    moving: PartitionReassignment | None,
    configs: Sequence[ConfigEntry],
    live: set[int],
) -> bool:
    in_sync, leader = len(partition.isr), partition.leader
    minimum = next((int(each.value or 1) for each in configs if each.name == _MIN_ISR), 1)
    return (
        (reports.under_replicated and in_sync < _replication_factor(partition, moving))
        or (reports.unavailable and leader not in live)
        or (reports.under_min_isr and (leader < 0 or in_sync < minimum))
        or (reports.at_min_isr and in_sync == minimum)
    )


def _replication_factor(
    partition: PartitionDescription, moving: PartitionReassignment | None
) -> int:
    """Return the number of replicas without those being added, which is the target during a
    reassignment. A reassignment that the replicas no longer show is over and ignored."""
    if moving is not None:
        changing = {*moving.adding_replicas, *moving.removing_replicas}
        if changing & {*partition.replicas}:
            return len(moving.replicas) - len(moving.adding_replicas)
    return len(partition.replicas)


def _overrides(configs: Sequence[ConfigEntry]) -> list[ConfigEntry]:
    return [each for each in configs if not each.is_default]


def parse_topic_id(text: str) -> UUID | None:
    """Parse Kafka's form of an id: URL-safe base64 without padding. None for the id of zeros."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise _failed(f"--topic-id is not base64: {text}") from None
    if len(data) != 16:
        raise _failed(
            f"Input string `{text}` decoded as {len(data)} bytes, which is not equal to the "
            "expected 16 bytes of a base64-encoded UUID"
        )
    found = UUID(bytes=data)
    return found if found.int else None


def _show_id(topic_id: UUID) -> str:
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def _failed(message: str) -> ToolError:
    return ToolError(message, printed=f"Error while executing topic command : {message}")
