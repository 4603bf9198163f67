"""Partitions by topic id, and sets of them; the tasks of subtopologies are grouped alike."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias, TypeVar

__all__ = ["NOTHING", "Assignment", "TopicIdPartition", "by_topic"]

KeyT = TypeVar("KeyT", uuid.UUID, str)
TopicIdPartition: TypeAlias = tuple[uuid.UUID, int]
Assignment: TypeAlias = frozenset[TopicIdPartition]

NOTHING: Final[Assignment] = frozenset()


def by_topic(partitions: Iterable[tuple[KeyT, int]]) -> Iterator[tuple[KeyT, list[int]]]:
    """Yield each topic or subtopology with its partitions, both in ascending order."""
    indexes: dict[KeyT, list[int]] = {}
    for key, index in sorted(partitions):
        indexes.setdefault(key, []).append(index)
    yield from indexes.items()
