"""Spread the replicas of a topic's partitions over brokers, as ``--generate`` proposes. Pure.

The placement is that of ``AdminUtils.assignReplicasToBrokers`` (Kafka 3.9 and before; KIP-36 for
racks): first replicas go round-robin over the brokers from a start, the others follow at a distance
that grows by one with each round. Start and distance are random; the caller passes the generator.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

from kproto.tools.errors import ToolError

__all__ = ["assign_replicas", "place_replicas", "rack_alternated"]


def assign_replicas(
    brokers: Mapping[int, str | None], partitions: int, replication_factor: int, rng: random.Random
) -> list[tuple[int, ...]]:
    """Return the replica lists of partitions 0 to ``partitions`` - 1.

    ``brokers`` maps each broker to its rack. If all are None, racks are ignored; if some are None,
    raises ToolError. The same state of ``rng`` gives the same lists.
    """
    _check(brokers, partitions, replication_factor)
    start, shift = rng.randrange(len(brokers)), rng.randrange(len(brokers))
    return place_replicas(brokers, partitions, replication_factor, start, shift)


def place_replicas(
    brokers: Mapping[int, str | None],
    partitions: int,
    replication_factor: int,
    start: int,
    shift: int,
) -> list[tuple[int, ...]]:
    """As ``assign_replicas``. The first partition's leader is broker number ``start`` in the
    arranged order, and its second replica is ``shift`` (+1) further on."""
    _check(brokers, partitions, replication_factor)
    racks = {broker: rack for broker, rack in brokers.items() if rack is not None}
    if racks and len(racks) != len(brokers):
        raise _refused("Not all brokers have rack information for replica rack aware assignment.")
    arranged = rack_alternated(racks) if racks else sorted(brokers)
    lists = []
    for partition in range(partitions):
        first = (partition + start) % len(arranged)
        distance = shift + partition // len(arranged)
        if racks:
            lists.append(_across_racks(arranged, racks, replication_factor, first, distance))
        else:
            others = (
                _follower(first, distance + j, arranged) for j in range(replication_factor - 1)
            )
            lists.append((arranged[first], *others))
    return lists


def rack_alternated(racks: Mapping[int, str]) -> list[int]:
    """Return the brokers in an order where neighbours are in different racks: one of each rack in
    turn."""
    remaining = {
        rack: sorted(broker for broker in racks if racks[broker] == rack)
        for rack in sorted(set(racks.values()))
    }
    arranged: list[int] = []
    while len(arranged) < len(racks):
        arranged += [brokers.pop(0) for brokers in remaining.values() if brokers]
    return arranged


def _across_racks(
    arranged: Sequence[int],
    racks: Mapping[int, str],
    replication_factor: int,
    first: int,
    distance: int,
) -> tuple[int, ...]:
    """Choose followers so that no rack gets a second replica while another has none."""
    all_racks = set(racks.values())
    chosen = [arranged[first]]
    step = 0
    while len(chosen) < replication_factor:
        candidate = _follower(first, distance * len(all_racks) + step, arranged)
        used = {racks[broker] for broker in chosen}
        if candidate not in chosen and (racks[candidate] not in used or used == all_racks):
            chosen.append(candidate)
        step += 1
    return tuple(chosen)


def _follower(first: int, distance: int, arranged: Sequence[int]) -> int:
    """Return the broker ``distance`` places on, never the first one itself."""
    return arranged[(first + 1 + distance % (len(arranged) - 1)) % len(arranged)]


def _check(brokers: Iterable[int], partitions: int, replication_factor: int) -> None:
    available = len(list(brokers))
    if partitions <= 0:
        raise _refused("Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise _refused("Replication factor must be larger than 0.")
    if replication_factor > available:
        raise _refused(
            f"Replication factor: {replication_factor} larger than available brokers: {available}."
        )


def _refused(message: str) -> ToolError:
    return ToolError(message, printed=f"Error: {message}")
