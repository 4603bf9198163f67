"""Replica assignments: checking a list of brokers that a client chose, or choosing one.

Used when topics are created, partitions are added and partitions are reassigned.
"""

from __future__ import annotations

from collections.abc import Sequence

from kproto.error_codes import ErrorCode
from mockbroker.errors import Refusal
from mockbroker.state.controller import Controller
from mockbroker.state.model import Partition
from mockbroker.topics.eras import KRAFT, AdministrationEra
from mockbroker.topics.listed_replicas import check_listed

__all__ = ["check_assignment", "continued", "new_partition", "spread"]


def check_assignment(
    controller: Controller, broker_ids: Sequence[int], replication_factor: int | None = None
) -> None:
    """Check a replica list as KRaft does.

    Raises Refusal (39) for an empty list, an unknown broker, a repeated broker, or a length other
    than ``replication_factor``. Brokers are checked in ascending order of id.
    """
    check_listed(controller, KRAFT.creation.listed, {0: broker_ids}, expected=replication_factor)


def spread(
    controller: Controller,
    era: AdministrationEra,
    first_partition: int,
    count: int,
    replication_factor: int,
) -> list[tuple[int, ...]]:
    """Choose the replicas of ``count`` partitions from index ``first_partition`` on.

    Kafka starts at a random broker. Here partition p starts at live broker p modulo their number,
    so that tests are deterministic. Brokers that are not live come last, as in Kafka.
    """
    live = controller.live_ids()
    known = live if era.knows_only_live else tuple(sorted(controller.state.brokers))
    if not live:
        raise _few(era.creation.no_broker_is_live, replication_factor, known)
    if replication_factor > len(known):
        raise _few(era.creation.few_brokers, replication_factor, known)
    fenced = tuple(broker_id for broker_id in known if broker_id not in live)
    return [
        (_rotated(live, partition) + _rotated(fenced, partition))[:replication_factor]
        for partition in range(first_partition, first_partition + count)
    ]


def continued(
    controller: Controller,
    era: AdministrationEra,
    first_replica: int,
    first_partition: int,
    count: int,
    factor: int,
) -> list[tuple[int, ...]]:
    """Choose the replicas of ``count`` more partitions of a topic.

    ``first_replica`` is the first replica of partition 0, as in
    ``AdminUtils.assignReplicasToBrokers``. Racks are ignored.
    """
    live = controller.live_ids()
    if factor > len(live):
        raise _few(era.creation.few_brokers, factor, live)
    start = next((place for place, each in enumerate(live) if each >= first_replica), 0)
    shift = start
    lists = []
    for partition in range(first_partition, first_partition + count):
        if partition > 0 and partition % len(live) == 0:
            shift += 1
        first = (partition + start) % len(live)
        # The followers shift by one in each round over the brokers.
        others = (
            (first + 1 + (shift + i) % (len(live) - 1)) % len(live) for i in range(factor - 1)
        )
        lists.append((live[first], *(live[place] for place in others)))
    return lists


def new_partition(controller: Controller, index: int, broker_ids: Sequence[int]) -> Partition:
    """Return a new partition: its live replicas are in sync, and the first of them is the leader.

    Raises Refusal (39) if no replica is live. Kafka in ZooKeeper mode would create a partition
    without a leader, hide it from clients and let the request time out.
    """
    isr = tuple(broker_id for broker_id in broker_ids if controller.is_live(broker_id))
    if not isr:
        raise _bad(
            f"All brokers specified in the manual partition assignment for partition {index} "
            "are fenced or in controlled shutdown."
        )
    return Partition(index, tuple(broker_ids), isr, leader=isr[0])


def _rotated(ids: tuple[int, ...], by: int) -> tuple[int, ...]:
    start = by % len(ids) if ids else 0
    return ids[start:] + ids[:start]


def _few(text: str, factor: int, known: Sequence[int]) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_REPLICATION_FACTOR, text.format(factor=factor, brokers=len(known))
    )


def _bad(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
