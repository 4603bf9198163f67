"""The configs that throttle a reassignment, and their values. Pure.

KIP-73: each participating broker has a rate, and each topic lists the replicas it applies to:
leaders that send (``leader.replication.throttled.replicas``) and followers that receive. The lists
have the form ``partition:broker,...``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from kproto.client.values import TopicPartition

__all__ = [
    "ALTER_LOG_DIRS_RATE",
    "BROKER_THROTTLES",
    "FOLLOWER_RATE",
    "FOLLOWER_REPLICAS",
    "LEADER_RATE",
    "LEADER_REPLICAS",
    "TOPIC_THROTTLES",
    "Move",
    "Moves",
    "OngoingReassignment",
    "follower_throttles",
    "leader_throttles",
    "moving_brokers",
    "proposed_moves",
]

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
ALTER_LOG_DIRS_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"

BROKER_THROTTLES: Final = (LEADER_RATE, FOLLOWER_RATE, ALTER_LOG_DIRS_RATE)
TOPIC_THROTTLES: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)


class OngoingReassignment(Protocol):
    """The required attributes of an ongoing reassignment."""

    @property
    def replicas(self) -> Sequence[int]: ...
    @property
    def adding_replicas(self) -> Sequence[int]: ...


class Move(msgspec.Struct, frozen=True):
    """Brokers that have a partition and brokers that get it. No broker is in both."""

    sources: frozenset[int]
    destinations: frozenset[int]


Moves = Mapping[TopicPartition, Move]


def proposed_moves(
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    proposed: Mapping[TopicPartition, Iterable[int]],
    current: Mapping[TopicPartition, Iterable[int]],
) -> dict[TopicPartition, Move]:
    """Return ongoing moves overlaid with the proposed ones.

    The sources of a partition that is already being reassigned are those of the ongoing move.
    """
    moves = {
        partition: Move(
            frozenset(each.replicas) - frozenset(each.adding_replicas),
            frozenset(each.adding_replicas),
        )
        for partition, each in ongoing.items()
    }
    for partition, replicas in proposed.items():
        moving = moves.get(partition)
        sources = moving.sources if moving is not None else frozenset(current[partition])
        moves[partition] = Move(sources, frozenset(replicas) - sources)
    return moves


def leader_throttles(moves: Moves) -> dict[str, str]:
    """Return, by topic, every partition with every broker it moves from."""
    return _throttled(moves, lambda move: move.sources)


def follower_throttles(moves: Moves) -> dict[str, str]:
    """Return, by topic, every partition with every broker it moves to; "" if there is none."""
    return _throttled(moves, lambda move: move.destinations)


def moving_brokers(moves: Moves) -> list[int]:
    """Return every broker that sends or receives, in ascending order."""
    return sorted({b for move in moves.values() for b in move.sources | move.destinations})


def _throttled(moves: Moves, brokers: Callable[[Move], Iterable[int]]) -> dict[str, str]:
    by_topic: dict[str, list[str]] = {topic: [] for topic, _ in sorted(moves)}
    for (topic, index), move in moves.items():
        by_topic[topic] += [f"{index}:{broker}" for broker in brokers(move)]
    # Sorted as texts ("10:1" before "2:1"), as Kafka's tool sends them.
    return {topic: ",".join(sorted(entries)) for topic, entries in by_topic.items()}
