"""Operations on the metadata that brokers serve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.errors import ClusterError
from mockbroker.simulation.operations.arguments import BrokerArgument, DurationArgument
from mockbroker.simulation.operations.operation import operation
from mockbroker.simulation.state.actions import MetadataHeld, MetadataReleased, PropagationChanged

if TYPE_CHECKING:
    from mockbroker.simulation.cluster import Cluster


@operation
def hold_metadata(cluster: Cluster, broker_id: BrokerArgument) -> None:
    """Freeze the metadata that a broker serves."""
    cluster.controller.broker(broker_id)
    if broker_id in cluster.state.held_views:
        raise ClusterError(f"the metadata of broker {broker_id} is already held")
    cluster.controller.record("hold_metadata", MetadataHeld(broker_id))


@operation
def release_metadata(cluster: Cluster, broker_id: BrokerArgument) -> None:
    """Bring a broker's frozen metadata up to date."""
    cluster.controller.broker(broker_id)
    if broker_id not in cluster.state.held_views:
        raise ClusterError(f"the metadata of broker {broker_id} is not held")
    cluster.controller.record("release_metadata", MetadataReleased(broker_id))


@operation(name="propagation")
def set_propagation(cluster: Cluster, milliseconds: DurationArgument) -> None:
    """Delay the metadata of every broker.

    From now on every change reaches the brokers this much later. DURATION has a unit, as in 200ms;
    0ms removes the delay.
    """
    if milliseconds < 0:
        raise ClusterError(f"the propagation delay must be 0 ms or more, not {milliseconds} ms")
    cluster.controller.record("set_propagation", PropagationChanged(milliseconds))
