"""Operations on the coordinators of groups and transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.errors import ClusterError
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.operations.arguments import BrokerArgument, KeyArgument, KindArgument
from mockbroker.simulation.operations.operation import operation

if TYPE_CHECKING:
    from mockbroker.simulation.cluster import Cluster


@operation
def move_coordinator(
    cluster: Cluster, kind: KindArgument, key: KeyArgument, broker: BrokerArgument
) -> None:
    """Make a broker the coordinator of a group.

    The leader of the key's partition of the internal topic moves; the old coordinator answers error
    16. KIND is group, transaction or share.
    """
    create_internal_topic(cluster, kind)
    cluster.coordinators.move(kind, key, broker)


@operation
def load_coordinator(cluster: Cluster, kind: KindArgument, key: KeyArgument) -> None:
    """Put a coordinator into the loading state.

    Requests to it get error 14 until `finish-loading`.
    """
    create_internal_topic(cluster, kind)
    cluster.coordinators.load(kind, key)


@operation
def finish_loading(cluster: Cluster, kind: KindArgument, key: KeyArgument) -> None:
    """End the loading of a coordinator."""
    _check_kind(cluster, kind)
    cluster.coordinators.finish_loading(kind, key)


def create_internal_topic(cluster: Cluster, kind: CoordinatorKind) -> None:
    """Create the topic of this kind of coordinators, unless it exists. Raises ClusterError if the
    release has no such coordinators."""
    _check_kind(cluster, kind)
    topic = cluster.coordinators.new_topic(kind)
    if topic.name not in cluster.topics:
        cluster.topics.create([topic])


def _check_kind(cluster: Cluster, kind: CoordinatorKind) -> None:
    if not cluster.coordinators.exists(kind):
        raise ClusterError(f"this release has no coordinators of {kind.name.lower()}s")
