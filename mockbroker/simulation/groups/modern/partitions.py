"""Partitions by topic id, and sets of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

__all__ = ["NOTHING", "Assignment", "TopicIdPartition", "by_topic"]

TopicIdPartition: TypeAlias = tuple[uuid.UUID, int]
Assignment: TypeAlias = frozenset[TopicIdPartition]

NOTHING: Final[Assignment] = frozenset()


def by_topic(partitions: Iterable[TopicIdPartition]) -> Iterator[tuple[uuid.UUID, list[int]]]:
    """Yield each topic with its partitions, both in ascending order."""
    indexes: dict[uuid.UUID, list[int]] = {}
    for topic_id, index in sorted(partitions):
        indexes.setdefault(topic_id, []).append(index)
    yield from indexes.items()
