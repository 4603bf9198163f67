"""``kafka-leader-election``: elect leaders and print the results (KIP-460).

Follows Kafka's ``LeaderElectionCommand``: results go to standard output, the failure of the whole
command to standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kproto.client import (
    BrokerError,
    ClusterAuthorizationError,
    ElectionNotNeededError,
    ElectionType,
    RequestTimedOutError,
    RequestTimeoutError,
    TopicPartition,
)
from kproto.tools.access import Access
from kproto.tools.errors import ToolError
from kproto.tools.texts import java_error, show_partition, show_partitions

__all__ = ["elect_leaders", "printed", "shown_error"]


async def elect_leaders(
    access: Access,
    write: Callable[[str], None],
    election_type: ElectionType,
    partitions: Iterable[TopicPartition] | None,
) -> None:
    """Elect leaders for these partitions; None is all that need an election.

    Partitions are printed in order. Raises ToolError if an election failed.
    """
    try:
        results = await access.elect(election_type, partitions)
    except (RequestTimedOutError, RequestTimeoutError):
        raise printed("Timeout waiting for election results") from None
    except ClusterAuthorizationError:
        raise printed("Not authorized to perform leader election") from None
    elected = [partition for partition, error in results.items() if error is None]
    needless = [p for p, error in results.items() if isinstance(error, ElectionNotNeededError)]
    if elected:
        write(
            f"Successfully completed leader election ({election_type.name}) for partitions "
            f"{show_partitions(elected, ', ')}\n"
        )
    if needless:
        write(f"Valid replica already elected for partitions {show_partitions(needless, ', ')}\n")
    failed = {p: e for p, e in results.items() if e is not None and p not in needless}
    for partition in sorted(failed):
        write(
            f"Error completing leader election ({election_type.name}) for partition: "
            f"{show_partition(partition)}: {shown_error(failed[partition])}\n"
        )
    if failed:
        raise ToolError(f"{len(failed)} replica(s) could not be elected")


def shown_error(error: Exception) -> str:
    """Return a partition's error as Kafka's tools print it, with its class if it is a broker's."""
    return java_error(error.code, str(error)) if isinstance(error, BrokerError) else str(error)


def printed(message: str) -> ToolError:
    """Return a failure that has the same text on standard output."""
    return ToolError(message, printed=message)
