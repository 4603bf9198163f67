"""The errors in a response's body, with the topic and partition that each one is about."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from kproto import error_codes

__all__ = ["partition_errors"]

_TOPICS: Final = ("name", "topic", "topicName", "topicId")
_PARTITIONS: Final = ("partitionIndex", "index", "partition")
_ERRORS: Final = ("errorCode", "partitionErrorCode", "acknowledgeErrorCode")


def partition_errors(body: str | None) -> list[str]:
    """Return ``error/topic/partition`` for each error code in the JSON text of a body, each once
    and in order; the topic and the partition are empty if the code is not about one."""
    if body is None:
        return []
    try:
        tree = json.loads(body)
    except ValueError:  # the frame was cut
        return []
    return sorted(set(_errors(tree, "", "")))


def _errors(tree: Any, topic: str, partition: str) -> Iterator[str]:
    if isinstance(tree, list):
        for each in tree:
            yield from _errors(each, topic, partition)
    elif isinstance(tree, dict):
        named = next((tree[name] for name in _TOPICS if isinstance(tree.get(name), str)), topic)
        number = next((tree[name] for name in _PARTITIONS if name in tree), partition)
        inside = any(isinstance(each, list) for each in tree.values())
        for name in _ERRORS:
            if tree.get(name):
                yield f"{error_codes.name(tree[name])}/{named}/{number}"
        for each in tree.values():
            if isinstance(each, dict | list):
                yield from _errors(each, named if inside else topic, str(number))
