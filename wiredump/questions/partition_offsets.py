"""The offsets that a body commits, or the ends of partitions that it names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

__all__ = ["partition_offsets"]

_TOPICS: Final = ("name", "topic", "topicId")
_PARTITIONS: Final = ("partitionIndex", "partition")
_OFFSETS: Final = ("committedOffset", "highWatermark")


def partition_offsets(body: str | None) -> list[str]:
    """Return ``topic/partition/offset`` for each committed offset or high watermark in the JSON
    text of a body, each once and in order. The topic is its id where the body has no name; offsets
    below 0, which stand for none, are left out."""
    if body is None:
        return []
    try:
        tree = json.loads(body)
    except ValueError:  # the frame was cut
        return []
    return sorted(set(_offsets(tree, "")))


def _offsets(tree: Any, topic: str) -> Iterator[str]:
    if isinstance(tree, list):
        for each in tree:
            yield from _offsets(each, topic)
    elif isinstance(tree, dict):
        topic = next((tree[name] for name in _TOPICS if isinstance(tree.get(name), str)), topic)
        partition = next((tree[name] for name in _PARTITIONS if name in tree), None)
        for name in _OFFSETS:
            if partition is not None and isinstance(tree.get(name), int) and tree[name] >= 0:
                yield f"{topic}/{partition}/{tree[name]}"
        for each in tree.values():
            if isinstance(each, dict | list):
                yield from _offsets(each, topic)
