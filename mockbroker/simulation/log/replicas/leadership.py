"""Whether a broker may answer for a partition: the checks that most requests for data begin with.

The partition is the one of the broker's own metadata, which may be older than the controller's.
"""

from __future__ import annotations

from typing import Final

from kproto.error_codes import ErrorCode
from mockbroker.simulation.state.cluster_parts import Partition

__all__ = ["ANY_EPOCH", "access_error"]

ANY_EPOCH: Final = -1
"""A client that sends this leader epoch does not want it checked."""


def access_error(
    partition: Partition | None,
    broker_id: int,
    leader_epoch: int = ANY_EPOCH,
    *,
    leader_only: bool = True,
    is_failed: bool = False,
) -> ErrorCode:
    """Return the error of a request for a partition, in a broker's order of checks (KIP-320):
    unknown partition, no replica here, a failed log directory (``is_failed``), leader epoch, not
    the leader. None means unknown."""
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker_id not in partition.hosts:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if is_failed:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if leader_epoch != ANY_EPOCH and leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if leader_epoch > partition.leader_epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if leader_only and broker_id != partition.leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE
