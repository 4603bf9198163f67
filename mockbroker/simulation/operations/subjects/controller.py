"""Operations on the controller and its queue of elections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from mockbroker.errors import ClusterError
from mockbroker.simulation.operations.arguments import COUNT, Argument, BrokerArgument
from mockbroker.simulation.operations.operation import operation
from mockbroker.simulation.state.actions import ElectionsHeld, ElectionsReleased

if TYPE_CHECKING:
    from mockbroker.simulation.cluster import Cluster


@operation
def failover(cluster: Cluster, to: BrokerArgument) -> None:
    """Make another live broker the controller."""
    cluster.brokers.fail_over(to)


@operation
def resign_controller(cluster: Cluster) -> None:
    """Leave the cluster without a controller.

    There is none until `failover`, or until a broker starts (ZooKeeper mode).
    """
    with cluster.znodes.enclosed():
        cluster.brokers.resign()


@operation
def expire_session(cluster: Cluster, broker_id: BrokerArgument) -> None:
    """Expire a broker's ZooKeeper session.

    The broker registers again. If it was the controller, another broker becomes the controller.
    """
    with cluster.znodes.enclosed():
        cluster.brokers.expire_session(broker_id)


@operation(in_turn=False)
def kill_controller_after(
    cluster: Cluster,
    changes: Annotated[int, Argument(COUNT, "How many more changes the controller completes.")],
) -> None:
    """Kill the controller during an operation.

    The controller dies once it has made CHANGES more changes; another broker takes over from what
    is on record.
    """
    if changes < 0:
        raise ClusterError(f"the number of changes must be 0 or more, not {changes}")
    cluster.controller.die_after(changes)


@operation
def hold_elections(cluster: Cluster) -> None:
    """Stop processing the queue of elections.

    Elections wait in the controller's queue, and their callers with them (ZooKeeper mode, KIP-183).
    """
    if not cluster.elections.answers.queued:
        raise ClusterError("a KRaft controller elects at once and has no queue of elections")
    if cluster.state.elections_held:
        raise ClusterError("elections are already held back")
    cluster.controller.record("hold_elections", ElectionsHeld())


@operation
def release_elections(cluster: Cluster) -> None:
    """Process the queue of elections again."""
    if not cluster.state.elections_held:
        raise ClusterError("elections are not held back")
    cluster.controller.record("release_elections", ElectionsReleased())
