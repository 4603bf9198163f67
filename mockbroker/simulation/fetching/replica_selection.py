"""Which replica a consumer is sent to (KIP-392, since 2.4): ``replica.selector.class``.

A selector gets the replicas that could serve, the leader among them, and the client's rack. Classes
of a user's own cannot run here; with one of these the leader serves everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

__all__ = ["SELECTORS", "ReplicaSelector", "ReplicaView"]


class ReplicaView(NamedTuple):
    """A replica as its leader knows it."""

    broker_id: int
    rack: str | None
    end_offset: int


ReplicaSelector: TypeAlias = Callable[[str, ReplicaView, Sequence[ReplicaView]], ReplicaView]
"""Called with the client's rack, the leader, and the followers in sync that have the offset."""


def _same_rack(rack: str, leader: ReplicaView, followers: Sequence[ReplicaView]) -> ReplicaView:
    """The leader if it is in the client's rack or no replica is, else the follower there that is
    most caught up; of equal ones the one of the highest id."""
    near = [each for each in followers if each.rack == rack]
    if not rack or not near or leader.rack == rack:
        return leader
    return max(near, key=lambda each: (each.end_offset, each.broker_id))


SELECTORS: Final[Mapping[str, ReplicaSelector]] = {
    "org.apache.kafka.common.replica.RackAwareReplicaSelector": _same_rack
}
"""Those that may choose another replica than the leader, by class name."""
