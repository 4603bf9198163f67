"""The consumer protocol that is embedded in JoinGroup and SyncGroup: subscriptions and assignments.

A version comes first, as int16. Data of newer versions is read as the newest version known here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kproto.errors import KprotoError
from kproto.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kproto.messages.consumer_protocol_assignment import TopicPartition as AssignedPartitions
from kproto.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

__all__ = ["read_assignment", "read_subscription", "version_of", "write_assignment"]

_VERSION_BYTES: Final = 2
_NEWEST: Final = 3


def version_of(data: bytes) -> int | None:
    """Return the version of a subscription or an assignment, the newest known here at most; None
    if there is none."""
    version = int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
    return None if len(data) < _VERSION_BYTES or version < 0 else min(version, _NEWEST)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription | None:
    """Return a subscription; None if it cannot be read."""
    version = version_of(data)
    if version is None:
        return None
    try:
        return ConsumerProtocolSubscription.decode_from(data, version, _VERSION_BYTES)[0]
    except KprotoError:
        return None


def read_assignment(data: bytes) -> ConsumerProtocolAssignment | None:
    """Return an assignment; None if it cannot be read."""
    version = version_of(data)
    if version is None:
        return None
    try:
        return ConsumerProtocolAssignment.decode_from(data, version, _VERSION_BYTES)[0]
    except KprotoError:
        return None


def write_assignment(partitions: Iterable[tuple[str, list[int]]], version: int) -> bytes:
    """Return an assignment as bytes, its version first."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            AssignedPartitions(topic=topic, partitions=indexes) for topic, indexes in partitions
        ]
    )
    return version.to_bytes(_VERSION_BYTES, "big") + message.encode(version)
