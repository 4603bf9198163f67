"""What users put under ``/admin`` for a ZooKeeper controller to act on: paths, texts, reading them.

Data and pure functions, the texts those of Kafka 2.4.1 and 3.9.2. Reading is as strict as Kafka's:
a field that Kafka does not know makes ``/admin/reassign_partitions`` malformed; a partition named
twice takes the last. Stricter on purpose: a missing field (Kafka fails with a
NullPointerException, or keeps the null), a number in quotes or with a fraction, a negative id.
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
"""Of KIP-236's draft: more of the same, to be moved there while something is in flight."""
CANCEL_REASSIGNMENT_IN_PROGRESS = "/admin/cancel_reassignment_in_progress"
"""Of KIP-236's draft: that it is there asks for a rollback; what it holds says nothing."""
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"
DELETE_TOPICS = "/admin/delete_topics"


def delete_topic_path(topic: str) -> str:
    """The znode that asks for a topic's deletion; it has no data."""
    return f"{DELETE_TOPICS}/{topic}"


class PlannedReplicas(msgspec.Struct, frozen=True):
    """Where a partition shall go. ``original_replicas`` (KIP-236's draft) is where it was."""

    replicas: Sequence[int]
    original_replicas: Sequence[int] | None = None


def encode_reassign_partitions(plan: Mapping[tuple[str, int], PlannedReplicas]) -> bytes:
    """Partitions in the order given."""
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


def decode_reassign_partitions(path: str, data: bytes) -> dict[tuple[str, int], PlannedReplicas]:
    """The plan by topic and partition, in the order of the text."""
    return {
        (entry.topic, entry.partition): PlannedReplicas(entry.replicas, entry.original_replicas)
        for entry in decode(path, data, _PlanText).partitions
    }


def encode_preferred_replica_election(partitions: Iterable[tuple[str, int]]) -> bytes:
    """Partitions in the order given."""
    texts = [{"topic": topic, "partition": index} for topic, index in partitions]
    return encode({"version": 1, "partitions": texts})


class _ElectionEntry(msgspec.Struct):
    topic: str
    partition: PartitionIndex


class _ElectionText(msgspec.Struct):
    partitions: tuple[_ElectionEntry, ...]


def decode_preferred_replica_election(path: str, data: bytes) -> list[tuple[str, int]]:
    """The partitions in the order of the text, each once."""
    entries = decode(path, data, _ElectionText).partitions
    return list(dict.fromkeys((entry.topic, entry.partition) for entry in entries))
