"""Operations on clients and their requests: throttling, answers that are held, fetch sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from mockbroker.simulation.operations.arguments import (
    BROKER_ID,
    COUNT,
    WORD,
    AnyPartitionArgument,
    Argument,
    DurationArgument,
    PartitionArgument,
)
from mockbroker.simulation.operations.operation import operation
from mockbroker.simulation.operations.partitions import check_partition

if TYPE_CHECKING:
    from mockbroker.simulation.cluster import Cluster


@operation(in_turn=False)
def throttle_client(
    cluster: Cluster,
    client_id: Annotated[str, Argument(WORD, "The client's id.")],
    milliseconds: DurationArgument,
) -> None:
    """Throttle every response to a client.

    As a quota does (KIP-219): each response has this throttle time, and the broker mutes the
    connection for that long; a fetch gets no records. Before Kafka 2.0 the responses are delayed by
    it. 0ms ends it.
    """
    cluster.throttles.set(client_id, milliseconds)


@operation
def hold_produces(cluster: Cluster, partition: AnyPartitionArgument = None) -> None:
    """Hold the responses to produce requests.

    The records are appended at once; the response waits for `release-produces`.
    """
    check_partition(cluster, partition)
    cluster.appender.holds.hold(partition)


@operation
def release_produces(cluster: Cluster, partition: AnyPartitionArgument = None) -> None:
    """Send the responses that `hold-produces` holds."""
    check_partition(cluster, partition)
    cluster.appender.holds.release(partition)


@operation
def hold_fetches(cluster: Cluster, partition: AnyPartitionArgument = None) -> None:
    """Hide the records of a log from fetches.

    Fetches wait until their max wait time ends, as on an empty log.
    """
    cluster.fetches.hold_fetches(partition)


@operation
def release_fetches(cluster: Cluster, partition: AnyPartitionArgument = None) -> None:
    """Show the records of a log to fetches again."""
    check_partition(cluster, partition)
    cluster.fetches.release_fetches(partition)


@operation
def complete_fetches(cluster: Cluster, partition: AnyPartitionArgument = None) -> None:
    """Answer the waiting fetches now.

    Each gets the records that are available.
    """
    cluster.fetches.complete_fetches(partition)


@operation
def expire_fetch_session(
    cluster: Cluster,
    broker: Annotated[int | None, Argument(BROKER_ID, "A broker; none for all.")] = None,
) -> None:
    """Drop the fetch sessions of brokers.

    The next request of each session fails with error 70 (KIP-227).
    """
    cluster.fetches.expire_sessions(broker)


@operation
def diverge(
    cluster: Cluster,
    partition: PartitionArgument,
    epoch: Annotated[int, Argument(COUNT, "A leader epoch.")],
    offset: Annotated[
        int | None, Argument(COUNT, "The end offset; without it, the true one.")
    ] = None,
) -> None:
    """Make a leader epoch end at another offset.

    Fetches of that epoch past OFFSET get a diverging epoch, and OffsetForLeaderEpoch answers
    OFFSET, as after a truncation.
    """
    cluster.fetches.diverge(partition, epoch, offset)
