"""What users submit under ``/admin`` to a ZooKeeper controller: paths, texts, and parsing.

This module contains data and pure functions; the texts are those of Kafka 2.4.1 and 3.9.2. Parsing
is as strict as Kafka's: an unknown field makes ``/admin/reassign_partitions`` malformed, and the
last of duplicate partitions counts. It is deliberately stricter for a missing field (Kafka fails
with a NullPointerException, or keeps the null), a number in quotes or with a fraction, and a
negative id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kproto.znodes.texts import Ids, Int32, PartitionIndex, decode, encode

__all__ = [
    "CANCEL_REASSIGNMENT_IN_PROGRESS",
    "DELETE_TOPICS",
    "PREFERRED_REPLICA_ELECTION",
    "REASSIGN_PARTITIONS",
    "REASSIGN_PARTITIONS_QUEUE",
    "PlannedReplicas",
    "decode_preferred_replica_election",
    "decode_reassign_partitions",
    "delete_topic_path",
    "encode_preferred_replica_election",
    "encode_reassign_partitions",
]

REASSIGN_PARTITIONS = "/admin/reassign_partitions"
REASSIGN_PARTITIONS_QUEUE = "/admin/reassign_partitions_queue"
"""KIP-236's draft: further plans, which are moved there while others are in progress."""
CANCEL_REASSIGNMENT_IN_PROGRESS = "/admin/cancel_reassignment_in_progress"
"""KIP-236's draft: the existence of this znode requests a rollback; its data means nothing."""
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"
DELETE_TOPICS = "/admin/delete_topics"


def delete_topic_path(topic: str) -> str:
    """Return the path of the znode that requests a topic's deletion; it has no data."""
    return f"{DELETE_TOPICS}/{topic}"


class PlannedReplicas(msgspec.Struct, frozen=True):
    """The target of a partition. ``original_replicas`` (KIP-236's draft) are its previous
    replicas."""

    replicas: Sequence[int]
    original_replicas: Sequence[int] | None = None


def encode_reassign_partitions(plan: Mapping[tuple[str, int], PlannedReplicas]) -> bytes:
    """Encode partitions in the given order."""
    partitions = []
    for (topic, partition), planned in plan.items():
        entry = {"topic": topic, "partition": partition, "replicas": list(planned.replicas)}
        if planned.original_replicas is not None:
            entry["original_replicas"] = list(planned.original_replicas)
        partitions.append(entry)
    return encode({"version": 1, "partitions": partitions})


class _PlanEntry(msgspec.Struct, forbid_unknown_fields=True):
    topic: str
    partition: PartitionIndex
    replicas: Ids
    original_replicas: Ids | None = None


class _PlanText(msgspec.Struct, forbid_unknown_fields=True):
    partitions: tuple[_PlanEntry, ...]
    version: Int32 = 0


def decode_reassign_partitions(
    path: str, data: bytes | str
) -> dict[tuple[str, int], PlannedReplicas]:
    """Return the plan by topic and partition, in the order of the text."""
    return {
        (entry.topic, entry.partition): PlannedReplicas(entry.replicas, entry.original_replicas)
        for entry in decode(path, data, _PlanText).partitions
    }


def encode_preferred_replica_election(partitions: Iterable[tuple[str, int]]) -> bytes:
    """Encode partitions in the given order."""
    texts = [{"topic": topic, "partition": index} for topic, index in partitions]
    return encode({"version": 1, "partitions": texts})


class _ElectionEntry(msgspec.Struct):
    topic: str
    partition: PartitionIndex


class _ElectionText(msgspec.Struct):
    partitions: tuple[_ElectionEntry, ...]


def decode_preferred_replica_election(path: str, data: bytes | str) -> list[tuple[str, int]]:
    """Return the partitions in the order of the text, each once."""
    entries = decode(path, data, _ElectionText).partitions
    return list(dict.fromkeys((entry.topic, entry.partition) for entry in entries))
