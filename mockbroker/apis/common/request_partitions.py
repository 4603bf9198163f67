"""The partitions that a request names, each once.

Kafka gathers the partitions of most requests in a map: of a partition that a request names twice
the last one counts, and a topic without partitions disappears.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

__all__ = ["distinct_partitions"]

T = TypeVar("T")
P = TypeVar("P")


def distinct_partitions(
    topics: Iterable[T],
    key: Callable[[T], Hashable],
    partitions: Callable[[T], Sequence[P]],
    index: Callable[[P], Hashable],
) -> list[tuple[T, list[P]]]:
    """Return the topics with their partitions, both in the order in which the request first names
    them. A topic that the request names twice has the partitions of both."""
    found: dict[Hashable, tuple[T, dict[Hashable, P]]] = {}
    for topic in topics:
        rows = partitions(topic)
        if not rows:
            continue
        _, known = found.setdefault(key(topic), (topic, {}))
        for row in rows:
            known[index(row)] = row
    return [(topic, list(known.values())) for topic, known in found.values()]
