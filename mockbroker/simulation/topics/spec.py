"""Parsers of command-line texts: brokers (``3``, ``0-2``), topics (``foo:2:3``, ``foo=1,2/2,3``),
partitions (``foo-0``). They do not check whether brokers exist."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mockbroker.errors import ClusterError
from mockbroker.simulation.state.cluster_parts import Broker, TopicPartition
from mockbroker.simulation.state.topic_names import name_problem

__all__ = ["default_assignment", "parse_brokers", "parse_topic", "parse_topic_partition"]

_USAGE = "use NAME:PARTITIONS:REPLICAS or NAME=1,2,3/2,3,4"
_MAX_PARTITIONS = 10_000
_MAX_BROKERS = 1000


def parse_brokers(text: str) -> list[Broker]:
    """Return the brokers of ``3`` (ids 1 to 3) or ``0-2`` (ids 0 to 2). Raises ClusterError."""
    found = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", text)
    if found is None:
        raise ClusterError(
            f"{text!r}: use a number of brokers, or the first and last id, as in 0-2"
        )
    first, last = (1, int(found[1])) if found[2] is None else (int(found[1]), int(found[2]))
    if not 1 <= last - first + 1 <= _MAX_BROKERS:
        raise ClusterError(f"{text!r}: a cluster has 1 to {_MAX_BROKERS} brokers")
    return [Broker(broker_id) for broker_id in range(first, last + 1)]


def parse_topic(text: str, broker_ids: Sequence[int] = (1, 2, 3)) -> tuple[str, list[list[int]]]:
    """Return the name and the broker ids of each partition.

    ``foo:2:3`` means two partitions with three replicas, assigned by ``default_assignment``.
    ``foo=1,2,3/2,3,4`` lists the replicas; the lists may differ in length, as they may after
    reassignments. Raises ClusterError (a ValueError).
    """
    if "=" in text:
        name, _, lists = text.partition("=")
        assignment = [_broker_list(text, part) for part in lists.split("/")]
    else:
        name, counts = _split_counts(text)
        assignment = default_assignment(broker_ids, *counts, where=text)
    problem = name_problem(name)
    if problem is not None:
        raise ClusterError(f"topic {text!r}: {problem}")
    return name, assignment


def _split_counts(text: str) -> tuple[str, tuple[int, int]]:
    match text.split(":"):
        case [name, partitions, replicas] if _is_count(partitions) and _is_count(replicas):
            return name, (int(partitions), int(replicas))
    raise ClusterError(f"topic {text!r}: {_USAGE}")


def _is_count(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,9}", text) is not None


def _broker_list(text: str, part: str) -> list[int]:
    ids = part.split(",")
    if not all(_is_count(broker_id) for broker_id in ids):
        raise ClusterError(f"topic {text!r}: {part!r} is not a list of broker ids ({_USAGE})")
    if len(set(map(int, ids))) != len(ids):
        raise ClusterError(f"topic {text!r}: {part!r} names a broker twice")
    return [int(broker_id) for broker_id in ids]


def default_assignment(
    broker_ids: Sequence[int], partitions: int, replicas: int, *, where: str = ""
) -> list[list[int]]:
    """Assign replicas: replica i of partition p is broker number p + i, modulo their count."""
    prefix = f"topic {where!r}: " if where else ""
    if not 1 <= partitions <= _MAX_PARTITIONS:
        raise ClusterError(f"{prefix}a topic has 1 to {_MAX_PARTITIONS} partitions")
    if not 1 <= replicas <= len(broker_ids):
        raise ClusterError(
            f"{prefix}{replicas} replicas need as many brokers; the cluster has {len(broker_ids)}"
        )
    count = len(broker_ids)
    return [
        [broker_ids[(partition + i) % count] for i in range(replicas)]
        for partition in range(partitions)
    ]


def parse_topic_partition(text: str) -> TopicPartition:
    """Parse ``foo-0`` into ("foo", 0). A topic name may contain dashes; the last one separates."""
    name, dash, index = text.rpartition("-")
    if not dash or not name or not _is_count(index):
        raise ClusterError(f"{text!r} is not a partition: use TOPIC-PARTITION, as in foo-0")
    return name, int(index)
