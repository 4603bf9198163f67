"""How controllers of each design and release answer ElectLeaders (43).

``elect`` reads the columns on what is answered, ``queue`` those on when. Codes and texts are those
that Kafka 2.4.1, 2.5.1, 2.6.3, 3.9.2 (ZooKeeper) and 4.4.0 (KRaft) send; those of 2.2 are from its
sources; those of KIP-183 are its own, or else those of 2.2, which implements it. Brokers of 2.4 to
2.8 never answer an unknown election type for all partitions; this mock does.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kproto.error_codes import ErrorCode, message
from mockbroker.errors import ClusterError
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release

__all__ = ["DESIGNS", "ElectionAnswers", "election_answers"]

DESIGNS: Final = ("kraft", "zookeeper", "kip-183")
"""Kafka's two kinds of controllers, and the proposal's. Releases before 2.2 lack ElectLeaders, but
their users can request elections through ZooKeeper."""


class ElectionAnswers(msgspec.Struct, frozen=True):
    """How controllers answer ElectLeaders.

    ``needless`` is the code and text for a partition that already has the right leader; if it is an
    error, a request for every partition is answered without such partitions.

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

    needless: tuple[ErrorCode, str | None]
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


_KRAFT: Final = ElectionAnswers(
    needless=(ErrorCode.ELECTION_NOT_NEEDED, message(ErrorCode.ELECTION_NOT_NEEDED)),
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


def election_answers(design: str, release: Release) -> ElectionAnswers:
    """How controllers of this design answer in a release. Raises ClusterError."""
    if design not in DESIGNS:
        raise ClusterError(
            f"unknown design of elections {design!r}; choose from {', '.join(DESIGNS)}"
        )
    if design == "kraft":
        return _KRAFT
    names_types = release.has(facts.ELECTION_TYPES_NAMED)
    return ElectionAnswers(
        needless=release.value_of(facts.NEEDLESS_ELECTION),
        unknown_topic="The partition does not exist.",
        unknown_partition="The partition does not exist.",
        being_deleted="The topic is being deleted",
        not_elected="Failed to elect leader for partition {name}-{index} under strategy {strategy}",
        unknown_type=ErrorCode.UNKNOWN_SERVER_ERROR,
        unknown_type_text="Value {election_type} must be one of [PREFERRED, UNCLEAN]"
        if names_types
        else None,
        each_once=True,
        queued=True,
        one_at_a_time=design == "kip-183",
        strategies=(
            "PreferredReplicaPartitionLeaderElectionStrategy",
            "OfflinePartitionLeaderElectionStrategy(true)",
        ),
    )
