"""The software of each broker: which versions of requests it knows.

A broker runs the cluster's software unless it has version ranges of its own (``Broker.apis``). All
of this follows from the action log, so a replay gives the same result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kproto.schema.versions import Versions
from mockbroker.simulation.state.actions import (
    Change,
    LeaderAndIsrSent,
    LiveBrokersSent,
    SentRequest,
    StopReplicaSent,
    UpdateMetadataSent,
)
from mockbroker.simulation.state.cluster_parts import NEVER, Broker
from mockbroker.simulation.state.cluster_state import ClusterState
from mockbroker.simulation.state.known_targets import LEADER_AND_ISR

__all__ = [
    "INTER_BROKER",
    "LEADER_AND_ISR",
    "NEWEST",
    "NEWEST_OF_2_3",
    "STOP_REPLICA",
    "UPDATE_METADATA",
    "newest_of",
    "own_apis",
    "served_by",
    "with_versions",
]

STOP_REPLICA: Final = 5
UPDATE_METADATA: Final = 6
INTER_BROKER: Final = (LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA)
"""The API keys of the requests that a controller sends to brokers."""

NEWEST: Final[Mapping[int, int]] = {LEADER_AND_ISR: 7, STOP_REPLICA: 4, UPDATE_METADATA: 8}
"""The highest versions of any release (Kafka 3.4 to 3.9)."""
NEWEST_OF_2_3: Final[Mapping[int, int]] = {LEADER_AND_ISR: 3, STOP_REPLICA: 1, UPDATE_METADATA: 5}
"""The highest versions of Kafka 2.3 with a draft of KIP-455 built in."""

_API_KEY: Final[Mapping[type, int]] = {
    LeaderAndIsrSent: LEADER_AND_ISR,
    StopReplicaSent: STOP_REPLICA,
    UpdateMetadataSent: UPDATE_METADATA,
    LiveBrokersSent: UPDATE_METADATA,
}


def newest_of(reassignment: str) -> Mapping[int, int]:
    """Return the default highest versions for a kind of reassignment controller.

    These are the highest of any release, or for the drafts of KIP-455 those of their time.
    """
    return NEWEST_OF_2_3 if reassignment.startswith("kip-455") else NEWEST


def own_apis(apis: Mapping[int, Versions | None]) -> tuple[tuple[int, int, int], ...]:
    """Return version ranges in the form of ``Broker.apis``; None hides an API."""
    found = ((key, versions or Versions.NONE) for key, versions in sorted(apis.items()))
    return tuple((key, each.lowest, each.highest) for key, each in found)


def served_by(broker: Broker, usual: Mapping[int, Versions]) -> Mapping[int, Versions]:
    """Return the versions that a broker serves; ``usual`` are those of the cluster's software."""
    if not broker.apis:
        return usual
    own = {key: Versions(lowest, highest) for key, lowest, highest in broker.apis}
    return {key: found for key, found in sorted({**usual, **own}.items()) if found}


def with_versions(newest: Mapping[int, int], state: ClusterState, change: SentRequest) -> Change:
    """Fill in the versions of a controller's request.

    Each recipient gets the highest version that both it and the controller know (A-38). ``newest``
    maps API keys to the highest version of the cluster's software.
    """
    api_key = _API_KEY[type(change)]

    usual = newest.get(api_key, NEVER)
    own_ranges = {
        broker.broker_id: broker.highest_version(api_key, newest)
        for broker in state.brokers.values()
        if broker.apis
    }
    own = own_ranges.get(state.controller_id, usual)
    versions = tuple([min(own, own_ranges.get(each, usual)) for each in change.to])
    return replace(change, versions=versions)
