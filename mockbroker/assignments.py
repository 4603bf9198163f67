"""Which brokers hold a partition: checking a list somebody chose, or choosing one.

Used when topics are created, partitions added and partitions reassigned.
"""

from __future__ import annotations

from collections.abc import Sequence

from kproto.error_codes import ErrorCode
from mockbroker.controller import Controller
from mockbroker.errors import Refusal
from mockbroker.model import Partition

__all__ = ["check_assignment", "new_partition", "spread"]


def check_assignment(
    controller: Controller, broker_ids: Sequence[int], replication_factor: int | None = None
) -> None:
    """Refuse a list as KRaft does (39): empty, an unknown broker, a repeated broker, or another
    length than the partitions before it. Brokers are looked at in ascending order of id."""
    if not broker_ids:
        raise _bad("The manual partition assignment includes an empty replica list.")
    previous: int | None = None
    for broker_id in sorted(broker_ids):
        if broker_id not in controller.state.brokers:
            raise _bad(
                f"The manual partition assignment includes broker {broker_id}, "
                "but no such broker is registered."
            )
        if broker_id == previous:
            raise _bad(
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
        previous = broker_id
    if replication_factor is not None and len(broker_ids) != replication_factor:
        raise _bad(
            f"The manual partition assignment includes a partition with {len(broker_ids)} "
            "replica(s), but this is not consistent with previous partitions, which have "
            f"{replication_factor} replica(s)."
        )


def spread(
    controller: Controller, first_partition: int, count: int, replication_factor: int
) -> list[tuple[int, ...]]:
    """Broker ids for ``count`` partitions from this index on.

    Kafka starts at a random broker; here partition p starts at live broker p modulo their number,
    so that a test knows what it gets. Brokers that are not live come last, as in Kafka.
    """
    live = controller.live_ids()
    registered = sorted(controller.state.brokers)
    if not live:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): "
            "All brokers are currently fenced.",
        )
    if replication_factor > len(registered):
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): "
            f"The target replication factor of {replication_factor} cannot be reached because "
            f"only {len(registered)} broker(s) are registered.",
        )
    fenced = tuple(broker_id for broker_id in registered if broker_id not in live)
    return [
        (_rotated(live, partition) + _rotated(fenced, partition))[:replication_factor]
        for partition in range(first_partition, first_partition + count)
    ]


def new_partition(controller: Controller, index: int, broker_ids: Sequence[int]) -> Partition:
    """A partition just created: its live replicas are in sync, the first of them leads."""
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


def _bad(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
