"""What Kafka's ZooKeeper controller says of a request for other replicas, word for word.

The texts are those of Kafka 2.4 to 3.9; lists are written as Scala 2.13 writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

__all__ = [
    "EMPTY",
    "NO_SUCH_PARTITION",
    "duplicates",
    "not_alive",
    "not_ids",
    "scala_set",
]

NO_SUCH_PARTITION: Final = "The partition does not exist."
EMPTY: Final = "Empty replica list specified in partition reassignment."

_LARGEST_PLAIN_SET: Final = 4
_LEVEL_BITS: Final = 5


def duplicates(replicas: Sequence[int]) -> str:
    return f"Duplicate replica ids in partition reassignment replica list: {_buffer(replicas)}"


def not_ids(replicas: Sequence[int]) -> str:
    return f"Invalid broker id in replica list: {_buffer(replicas)}"


def not_alive(adding: Sequence[int], live: Iterable[int]) -> str:
    return (
        f"Replica assignment has brokers that are not alive. Replica list: {_buffer(adding)}, "
        f"live broker list: {scala_set(live)}"
    )


def _buffer(ids: Sequence[int]) -> str:
    return f"ArrayBuffer({', '.join(map(str, ids))})"


def scala_set(ids: Iterable[int]) -> str:
    """An immutable set: up to four in the order they came, more in the order of their hashes."""
    listed = list(ids)
    if len(listed) <= _LARGEST_PLAIN_SET:
        return f"Set({', '.join(map(str, listed))})"
    return f"HashSet({', '.join(map(str, _walk(listed, 0)))})"


def _walk(ids: list[int], shift: int) -> list[int]:
    """A trie of 32 branches a level: what is alone in its branch comes before what is not."""
    branches: dict[int, list[int]] = {}
    for each in ids:
        branches.setdefault(_improved(each) >> shift & 31, []).append(each)
    ordered = [branches[key] for key in sorted(branches)]
    alone = [branch[0] for branch in ordered if len(branch) == 1]
    deeper = [branch for branch in ordered if len(branch) > 1]
    return alone + [each for branch in deeper for each in _walk(branch, shift + _LEVEL_BITS)]


def _improved(value: int) -> int:
    """An int is its own hash; this spreads it, as Scala does."""
    value = (value + ~(value << 9)) & 0xFFFFFFFF
    value ^= value >> 14
    value = (value + (value << 4)) & 0xFFFFFFFF
    return value ^ value >> 10
