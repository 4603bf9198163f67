"""How releases differ in answering ElectLeaders (43). Data only.

``elect`` reads the columns on what is answered, ``queue`` those on when. Codes and texts are those
that Kafka 2.4.1, 2.5.1, 2.6.3, 3.9.2 (ZooKeeper) and 4.4.0 (KRaft) send; those of 2.2 are from its
sources; those of KIP-183 are its own, or else those of 2.2, which implements it. Brokers of 2.4 to
2.8 never answer an unknown election type for all partitions; this mock does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from kproto.error_codes import ErrorCode, message
from mockbroker.errors import ClusterError

__all__ = ["ERAS", "ElectionEra", "election_era"]


class ElectionEra(msgspec.Struct, frozen=True):
    """How the controllers of some releases answer ElectLeaders.

    ``not_needed`` is the code for a partition that already has the right leader; if it is an error,
    a request for every partition is answered without such partitions.

    ``unknown_topic`` and ``unknown_partition`` are formatted with {name} and {index};
    ``not_elected`` also with {strategy}, one of ``strategies`` by election type, and None is the
    error code's own text. ``being_deleted`` is the text for a topic that still has replicas on
    stopped brokers; None treats it as unknown. ``unknown_type`` is the error at the top level and
    at each partition, with ``unknown_type_text``, which is formatted with {election_type}.

    ``each_once``: repeated partitions are answered once and topics without partitions omitted.
    ``queued``: elections go through the controller's queue, and the answer waits until the broker
    that received the request knows the new leader; otherwise all happens at once.
    ``preferred_only``: a preferred election elects no other replica, even without a leader.
    ``one_at_a_time``: a flag guards the queue (KIP-183), and requests wait for it.
    """

    name: str
    not_needed: ErrorCode
    not_needed_text: str | None
    unknown_topic: str
    unknown_partition: str
    being_deleted: str | None
    not_elected: str | None
    unknown_type: ErrorCode
    unknown_type_text: str | None
    each_once: bool
    queued: bool
    preferred_only: bool = True
    one_at_a_time: bool = False
    strategies: tuple[str, str] = ("", "")


_KRAFT: Final = ElectionEra(
    name="kraft",
    not_needed=ErrorCode.ELECTION_NOT_NEEDED,
    not_needed_text=message(ErrorCode.ELECTION_NOT_NEEDED),
    unknown_topic="No such topic as {name}",
    unknown_partition="No such partition as {name}-{index}",
    being_deleted=None,
    not_elected=None,
    unknown_type=ErrorCode.INVALID_REQUEST,
    unknown_type_text="Unknown election type {election_type}",
    each_once=False,
    queued=False,
    preferred_only=False,
)

_ZOOKEEPER: Final = ElectionEra(
    name="zookeeper-2.6",
    not_needed=ErrorCode.ELECTION_NOT_NEEDED,
    not_needed_text=message(ErrorCode.ELECTION_NOT_NEEDED),
    unknown_topic="The partition does not exist.",
    unknown_partition="The partition does not exist.",
    being_deleted="The topic is being deleted",
    not_elected="Failed to elect leader for partition {name}-{index} under strategy {strategy}",
    unknown_type=ErrorCode.UNKNOWN_SERVER_ERROR,
    unknown_type_text=None,
    each_once=True,
    queued=True,
    strategies=(
        "PreferredReplicaPartitionLeaderElectionStrategy",
        "OfflinePartitionLeaderElectionStrategy(true)",
    ),
)
_ZOOKEEPER_2_4: Final = replace(
    _ZOOKEEPER,
    name="zookeeper-2.4",
    not_needed_text="Leader election not needed for topic partition",
    unknown_type_text="Value {election_type} must be one of [PREFERRED, UNCLEAN]",
)
_ZOOKEEPER_2_2: Final = replace(
    _ZOOKEEPER_2_4, name="zookeeper-2.2", not_needed=ErrorCode.NONE, not_needed_text=None
)
_KIP_183: Final = replace(_ZOOKEEPER_2_2, name="kip-183", one_at_a_time=True)

ERAS: Final[Mapping[str, ElectionEra]] = {
    each.name: each for each in (_KIP_183, _ZOOKEEPER_2_2, _ZOOKEEPER_2_4, _ZOOKEEPER, _KRAFT)
}
"""By name, oldest first. Releases before 2.2 lack ElectLeaders; their profiles use the oldest
released era, for elections that are requested through ZooKeeper."""


def election_era(name: str) -> ElectionEra:
    """Return the era of this name. Raises ClusterError."""
    found = ERAS.get(name)
    if found is None:
        raise ClusterError(f"unknown era of elections {name!r}; choose from {', '.join(ERAS)}")
    return found
