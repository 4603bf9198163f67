"""The three kinds of coordinators, the internal topic of each, and how keys map to partitions."""

from __future__ import annotations

import base64
import binascii
import enum
import re
import uuid
from collections.abc import Mapping
from typing import Final

import msgspec

from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import EVER, Fact, ReleaseNumber
from mockbroker.simulation.state.java_maps import java_hash

__all__ = [
    "INTERNAL_TOPIC_OF",
    "CoordinatorKind",
    "InternalTopic",
    "java_hash",
    "partition_for",
    "share_key",
    "share_text",
]


class CoordinatorKind(enum.IntEnum):
    """The key types of FindCoordinator (10)."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class InternalTopic(msgspec.Struct, frozen=True):
    """The topic whose partition leaders are the coordinators of one kind.

    ``partitions``, ``replication_factor`` and ``min_isr`` name broker configs; ``configs`` are the
    topic's own configs and ``from_broker`` those whose values are broker configs. Releases before
    ``since`` have no such coordinator.
    """

    name: str
    partitions: str
    replication_factor: str
    configs: Mapping[str, str]
    from_broker: Mapping[str, str]
    min_isr: str | None = None
    since: ReleaseNumber | Fact = EVER


INTERNAL_TOPIC_OF: Final[Mapping[CoordinatorKind, InternalTopic]] = {
    CoordinatorKind.GROUP: InternalTopic(
        "__consumer_offsets",
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        {"cleanup.policy": "compact", "compression.type": "producer"},
        {"segment.bytes": "offsets.topic.segment.bytes"},
    ),
    CoordinatorKind.TRANSACTION: InternalTopic(
        "__transaction_state",
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
        {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "unclean.leader.election.enable": "false",
        },
        {"segment.bytes": "transaction.state.log.segment.bytes"},
        min_isr="transaction.state.log.min.isr",
    ),
    CoordinatorKind.SHARE: InternalTopic(
        "__share_group_state",
        "share.coordinator.state.topic.num.partitions",
        "share.coordinator.state.topic.replication.factor",
        {"cleanup.policy": "delete", "compression.type": "producer", "retention.ms": "-1"},
        {"segment.bytes": "share.coordinator.state.topic.segment.bytes"},
        min_isr="share.coordinator.state.topic.min.isr",
        since=facts.SHARE_COORDINATORS,
    ),
}
"""The configs are those with which Kafka 4.4 creates the topics."""


def partition_for(key: str, partitions: int) -> int:
    """The partition of an internal topic that a key belongs to (Kafka's ``partitionFor``)."""
    value = java_hash(key)
    return (0 if value == -(1 << 31) else abs(value)) % partitions


def share_text(group_id: str, topic_id: uuid.UUID, index: int) -> str:
    """The key of a share coordinator for one share partition."""
    text = base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
    return f"{group_id}:{text}:{index}"


_PARTITION: Final = re.compile(r"[+-]?[0-9]+")


def share_key(key: str) -> str | None:
    """Return a share coordinator's key ``group:topicId:partition`` in Kafka's own spelling; None if
    it is invalid. The group may contain colons."""
    parts = key.rstrip(":").rsplit(":", 2)
    if len(parts) != 3:
        return None
    group, topic_id, partition = parts
    if not group.strip() or not _is_uuid(topic_id) or not _PARTITION.fullmatch(partition):
        return None
    number = int(partition)
    if not -(2**31) <= number < 2**31:
        return None
    return f"{group}:{topic_id}:{number}"


def _is_uuid(text: str) -> bool:
    """Whether this is a UUID in URL-safe base64, without padding."""
    try:
        return len(text) <= 24 and len(_decoded(text)) == 16
    except (ValueError, binascii.Error):
        return False


def _decoded(text: str) -> bytes:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", text):
        raise ValueError("not URL-safe base64")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
