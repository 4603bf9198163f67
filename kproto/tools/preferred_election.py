"""``kafka-preferred-replica-election`` as changed by KIP-183: through the brokers or through
ZooKeeper.

The tool existed in Kafka 2.2 to 2.8. Through the brokers it waits for the outcome; through
ZooKeeper it creates a znode for the controller and reports no more than that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from kproto.client import (
    ClusterAuthorizationError,
    ElectionNotNeededError,
    ElectionType,
    RequestTimedOutError,
    RequestTimeoutError,
    TopicPartition,
)
from kproto.tools.access import Access
from kproto.tools.elections import printed, shown_error
from kproto.tools.errors import ToolError
from kproto.tools.texts import show_partition, show_partitions
from kproto.tools.znode_access import ZnodeAccess
from kproto.znodes.plan_znodes import PREFERRED_REPLICA_ELECTION

__all__ = ["HELP", "WARNING", "elect_by_brokers", "elect_by_znode"]

Write = Callable[[str], None]

WARNING: Final = (
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka. "
    "Use --bootstrap-server instead, to specify a broker to connect to."
)

HELP: Final = """\
Have the preferred replica of each partition elected its leader.

The preferred replica of a partition is the first in its list of replicas, the order in which a
topic was created or last reassigned. Leaders move away from it when brokers stop; electing it
again spreads the leaders over the brokers as the assignment meant them to be.

Not needed where brokers have auto.leader.rebalance.enable=true: they do it by themselves.
"""


async def elect_by_brokers(
    access: Access, write: Write, partitions: Collection[TopicPartition] | None
) -> None:
    """Request elections from the controller and wait for the results; None is every partition.
    Controllers before Kafka 2.4 do not report which partitions had their preferred leader
    already."""
    try:
        results = await access.elect(ElectionType.PREFERRED, partitions)
    except (RequestTimedOutError, RequestTimeoutError):
        raise printed("Timeout waiting for election results") from None
    except ClusterAuthorizationError:
        raise printed("Not authorized to perform leader election") from None
    elected = sorted(partition for partition, error in results.items() if error is None)
    needless = sorted(
        p for p, error in results.items() if isinstance(error, ElectionNotNeededError)
    )
    errors = {p: error for p, error in results.items() if error and p not in needless}
    if elected:
        shown = show_partitions(elected, ", ")
        write(f"Successfully completed preferred leader election for partitions {shown}\n")
    if needless:
        shown = show_partitions(needless, ", ")
        write(f"Preferred replica already elected for partitions {shown}\n")
    for partition in sorted(errors):
        name, error = show_partition(partition), shown_error(errors[partition])
        write(f"Error completing preferred leader election for partition: {name}: {error}\n")
    if errors:
        raise ToolError(f"{len(errors)} preferred replica(s) could not be elected")


def elect_by_znode(
    access: ZnodeAccess, write: Write, partitions: Collection[TopicPartition] | None
) -> None:
    """Create the znode; None is every partition that exists now."""
    known = set(access.every_partition())
    requested = sorted(known if partitions is None else known & set(partitions))
    if not access.submit_election(requested):
        raise printed(
            "Preferred replica leader election currently in progress: "
            f"{PREFERRED_REPLICA_ELECTION} is there already. Aborting operation"
        )
    write(f"Created preferred replica election path with {show_partitions(requested)}\n")
    write(
        "Successfully started preferred replica election for partitions "
        f"{show_partitions(requested)}\n"
    )
    for missing in sorted(set(partitions or ()) - known):
        write(
            f"Skipping preferred replica leader election for partition {show_partition(missing)} "
            "since it doesn't exist.\n"
        )
