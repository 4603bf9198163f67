"""Which software each broker runs, as far as its peers can tell: the versions of the requests that
a controller sends it, and who has been told of a draft's TargetReplicas.

A broker runs what the cluster runs, unless it has ranges of its own (``Broker.apis``). Pure: the
action log determines all of it, so that it replays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from kproto.schema.versions import Versions
from mockbroker.state.actions import (
    Change,
    LeaderAndIsrSent,
    LiveBrokersSent,
    StopReplicaSent,
    UpdateMetadataSent,
)
from mockbroker.state.model import Broker, Partition, TargetedPartition, TopicPartition

if TYPE_CHECKING:
    from mockbroker.state.controller import Controller

__all__ = [
    "INTER_BROKER",
    "LEADER_AND_ISR",
    "NEVER",
    "NEWEST",
    "NEWEST_OF_2_3",
    "STOP_REPLICA",
    "TARGET_REPLICAS_SINCE",
    "UPDATE_METADATA",
    "Told",
    "addressed",
    "follows",
    "forget_targets",
    "highest_version",
    "newest_of",
    "note_sent",
    "own_apis",
    "served_by",
]

LEADER_AND_ISR: Final = 4
STOP_REPLICA: Final = 5
UPDATE_METADATA: Final = 6
INTER_BROKER: Final = (LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA)

TARGET_REPLICAS_SINCE: Final = 3
"""The version of the drafts' LeaderAndIsr that has TargetReplicas."""

NEVER: Final = -1
"""In place of a version: one of the two does not know the request at all, and it is not sent."""

NEWEST: Final[Mapping[int, int]] = {LEADER_AND_ISR: 7, STOP_REPLICA: 4, UPDATE_METADATA: 8}
"""The highest versions there ever were (Kafka 3.4 to 3.9)."""
NEWEST_OF_2_3: Final[Mapping[int, int]] = {LEADER_AND_ISR: 3, STOP_REPLICA: 1, UPDATE_METADATA: 5}
"""Of Kafka 2.3 with a draft of KIP-455 built in."""

Told: TypeAlias = dict[tuple[int, str, int], bool]
"""(broker, topic, partition) -> whether the last LeaderAndIsr it got of that partition, which is
being reassigned, had TargetReplicas. False is a broker too old for the field."""

_API: Final[Mapping[type, int]] = {
    LeaderAndIsrSent: LEADER_AND_ISR,
    StopReplicaSent: STOP_REPLICA,
    UpdateMetadataSent: UPDATE_METADATA,
    LiveBrokersSent: UPDATE_METADATA,
}


def newest_of(machine: str) -> Mapping[int, int]:
    """What the brokers of a cluster know if nobody says otherwise: the newest there ever was, in
    the drafts of KIP-455 that of their day."""
    return NEWEST_OF_2_3 if machine.startswith("kip-455") else NEWEST


def own_apis(apis: Mapping[int, Versions | None]) -> tuple[tuple[int, int, int], ...]:
    """``Broker.apis``; None hides a key."""
    found = ((key, versions or Versions.NONE) for key, versions in sorted(apis.items()))
    return tuple((key, each.lowest, each.highest) for key, each in found)


def served_by(broker: Broker, usual: Mapping[int, Versions]) -> Mapping[int, Versions]:
    """The versions a broker serves, where ``usual`` is what the cluster's brokers do."""
    if not broker.apis:
        return usual
    own = {key: Versions(lowest, highest) for key, lowest, highest in broker.apis}
    return {key: found for key, found in sorted({**usual, **own}.items()) if found}


def highest_version(broker: Broker | None, api_key: int, usual: Mapping[int, int]) -> int:
    """The newest version of a controller's request that a broker knows, or ``NEVER``."""
    for key, lowest, highest in () if broker is None else broker.apis:
        if key == api_key:
            return highest if highest >= lowest else NEVER
    return usual.get(api_key, NEVER)


def addressed(controller: Controller, change: Change) -> Change:
    """A request as it goes out: to each broker at the highest version that it and the controller
    both know (A-38)."""
    if not isinstance(
        change, LeaderAndIsrSent | StopReplicaSent | UpdateMetadataSent | LiveBrokersSent
    ):
        return change
    api_key, state, usual = _API[type(change)], controller.state, controller.newest
    ours = highest_version(state.brokers.get(state.controller_id), api_key, usual)
    versions = tuple(
        min(ours, highest_version(state.brokers.get(each), api_key, usual)) for each in change.to
    )
    return replace(change, versions=versions)


# ---- TargetReplicas ------------------------------------------------------------------------------


def note_sent(told: Told, change: LeaderAndIsrSent | StopReplicaSent) -> None:
    """What the brokers it went to know from now on."""
    if isinstance(change, StopReplicaSent) or change.target_replicas is None:
        for broker_id in change.to:
            told.pop((broker_id, change.topic, change.index), None)
        return
    for broker_id, version in zip(change.to, change.versions, strict=True):
        told[broker_id, change.topic, change.index] = version >= TARGET_REPLICAS_SINCE


def forget_targets(told: Told, before: Broker, after: Broker) -> None:
    """A broker whose new software is too old for TargetReplicas takes no notice of what its
    predecessor was told."""
    newest = {LEADER_AND_ISR: TARGET_REPLICAS_SINCE}
    was, now = (highest_version(each, LEADER_AND_ISR, newest) for each in (before, after))
    if now < TARGET_REPLICAS_SINCE <= was:
        for key in told:
            if key[0] == after.broker_id:
                told[key] = False


def follows(told: Told, tp: TopicPartition, partition: Partition, broker_id: int) -> bool:
    """Whether a broker fetches this partition from its leader. In the drafts a broker of T that is
    no replica yet does so only if it was told of T; anywhere else all that host it do."""
    if not isinstance(partition, TargetedPartition) or broker_id in partition.replicas:
        return True
    return told.get((broker_id, *tp), False)
