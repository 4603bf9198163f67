"""Error texts of Kafka's ZooKeeper controller for refused replica lists, word for word.

They are those of Kafka 2.5 to 3.9; lists are formatted as by Scala 2.13.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from mockbroker.simulation.reassignment.zookeeper.scala_sets import LARGEST_PLAIN_SET, in_scala_2_13

__all__ = ["EMPTY", "NO_SUCH_PARTITION", "duplicates", "not_alive", "not_ids", "scala_set"]

NO_SUCH_PARTITION: Final = "The partition does not exist."
EMPTY: Final = "Empty replica list specified in partition reassignment."


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
    """An immutable Scala set as text."""
    listed = in_scala_2_13(ids)
    kind = "Set" if len(listed) <= LARGEST_PLAIN_SET else "HashSet"
    return f"{kind}({', '.join(map(str, listed))})"
