"""Operations on transactions and their producers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from mockbroker.errors import ClusterError
from mockbroker.simulation.operations.arguments import (
    COUNT,
    WORD,
    AnyTransactionArgument,
    Argument,
    PartitionArgument,
    TransactionArgument,
)
from mockbroker.simulation.operations.operation import operation
from mockbroker.simulation.operations.partitions import check_led, name_of

if TYPE_CHECKING:
    from mockbroker.simulation.cluster import Cluster


@operation
def expire_transaction(cluster: Cluster, transactional_id: TransactionArgument) -> None:
    """Time out a transaction.

    It is aborted, and its producer fenced: requests get error 90, or 47 where the client does not
    know 90 (KIP-588).
    """
    cluster.transactions.expire(transactional_id)


@operation
def abort_transaction(cluster: Cluster, transactional_id: TransactionArgument) -> None:
    """Abort a transaction without fencing its producer.

    This is what an operator does; the producer's epoch does not change.
    """
    cluster.transactions.abort(transactional_id)


@operation
def fence_producer(cluster: Cluster, transactional_id: TransactionArgument) -> None:
    """Fence a transactional producer: another one initializes its id.

    The epoch is bumped, so the former producer gets error 90. An open transaction is aborted.
    """
    cluster.transactions.fence_producer(transactional_id)


@operation
def set_producer_epoch(
    cluster: Cluster,
    transactional_id: TransactionArgument,
    epoch: Annotated[int, Argument(COUNT, "The epoch, at most 32766.")],
) -> None:
    """Change the epoch of a transactional producer.

    Past 32766 the producer gets another id.
    """
    cluster.transactions.set_epoch(transactional_id, epoch)


@operation
def hold_markers(cluster: Cluster, transactional_id: AnyTransactionArgument = None) -> None:
    """Hold back the markers of transactions that end.

    They stay in PrepareCommit or PrepareAbort until `release-markers`: requests get error 51, and
    the last stable offset does not advance. Without TRANSACTIONAL-ID, all.
    """
    cluster.transactions.markers.hold(transactional_id)


@operation
def release_markers(cluster: Cluster, transactional_id: AnyTransactionArgument = None) -> None:
    """Write the held markers.

    Without TRANSACTIONAL-ID, those of all transactions.
    """
    cluster.transactions.markers.release(transactional_id)


@operation
def write_marker(
    cluster: Cluster,
    partition: PartitionArgument,
    producer_id: Annotated[int, Argument(COUNT, "The producer's id.")],
    result: Annotated[str, Argument(WORD, "commit or abort.")],
) -> None:
    """End a transaction in one partition only.

    The transaction coordinator does not learn of it (KIP-664). RESULT is commit or abort.
    """
    from mockbroker.simulation.transactions.markers import MarkerToWrite  # imports codecs

    check_led(cluster, partition)
    known = cluster.logs.log(partition).producers.get(producer_id)
    if known is None:
        raise ClusterError(f"{name_of(partition)} has no producer {producer_id}")
    if result not in ("commit", "abort"):
        raise ClusterError(f"a marker is commit or abort, not {result!r}")
    marker = MarkerToWrite(
        producer_id, known.epoch, max(known.coordinator_epoch, 0), result == "commit"
    )
    cluster.marker_writer.write_alone(partition, marker)
