"""Sessions over the features (57) and the quorum (64, 80, 81, 94).

Features and voters belong to the whole cluster, which other sessions use at the same time. These
sessions therefore change nothing: their requests are refused, only validate, or set what is set.
"""

from __future__ import annotations

import uuid

from kproto.messages import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    UnregisterBrokerRequest,
    UnregisterControllerRequest,
    UpdateFeaturesRequest,
)
from kproto.messages.add_raft_voter_request import Listener
from kproto.messages.update_features_request import FeatureUpdateKey
from tests.real.data.registry import session
from tests.real.data.side import Side

_DIRECTORY = uuid.UUID(int=7)


async def _update(k: Side, *updates: tuple[str, int, int], validate_only: bool = True) -> None:
    rows = [FeatureUpdateKey(feature=name, max_version_level=level) for name, level, _ in updates]
    body = UpdateFeaturesRequest(feature_updates=rows)
    if k.version >= 1:
        body.validate_only = validate_only
        for row, (_, _, kind) in zip(rows, updates, strict=True):
            row.upgrade_type = kind
    await k.ask(body, broker=1)


@session(57)
async def update_features_wrongly(k: Side) -> None:
    for level, kind in ((-1, 1), (99, 1), (1, 1), (5, 2), (6, 3), (7, 2), (7, 3), (8, 2), (14, 2)):
        await _update(k, ("metadata.version", level, kind))
    for level in (-3, 0, 1, 2, 300):
        await _update(k, ("transaction.version", level, 1))
    await _update(k, ("no.such.feature", 1, 1))
    await _update(k, ("no.such.feature", 0, 1))
    await _update(k, ("", 1, 1))


@session(57, since=1)
async def update_features_of_types(k: Side) -> None:
    for kind in (0, 1, 2, 3, 4):
        await _update(k, ("kraft.version", 0, kind))
        await _update(k, ("kraft.version", 1, kind))
        await _update(k, ("transaction.version", 0, kind))
        await _update(k, ("group.version", 1, kind))
    for level in range(15, 34):
        await _update(k, ("metadata.version", level, 2))
        await _update(k, ("metadata.version", level, 3))


@session(57, since=1)
async def update_many_features(k: Side) -> None:
    await _update(k)
    await _update(k, ("one", 1, 1), ("metadata.version", 99, 1), ("two", 1, 1))
    await _update(k, ("group.version", 1, 1), ("metadata.version", 99, 1))
    await _update(k, ("group.version", 1, 1), ("transaction.version", 2, 1))
    await _update(k, ("group.version", 0, 2), ("transaction.version", 1, 2))


@session(57, needs=(88,))
async def set_features_that_are_set(k: Side) -> None:
    await _update(k, ("group.version", 1, 1), validate_only=False)


@session(64)
async def unregister_unknown_brokers(k: Side) -> None:
    for broker_id in (99, -1):
        await k.ask(UnregisterBrokerRequest(broker_id=broker_id), broker=1)


@session(80)
async def add_wrong_voters(k: Side) -> None:
    listeners = [Listener(name="CONTROLLER", host="127.0.0.1", port=1)]
    for cluster_id in ("other", None):
        for voter_id, directory in ((-1, _DIRECTORY), (9, uuid.UUID(int=0)), (1, _DIRECTORY)):
            body = AddRaftVoterRequest(
                cluster_id=cluster_id,
                timeout_ms=1000,
                voter_id=voter_id,
                voter_directory_id=directory,
                listeners=listeners,
            )
            await k.ask(body, broker=1)
    await k.ask(
        AddRaftVoterRequest(
            cluster_id=None, timeout_ms=1000, voter_id=9, voter_directory_id=_DIRECTORY
        ),
        broker=1,
    )


@session(81)
async def remove_wrong_voters(k: Side) -> None:
    for cluster_id in ("other", None):
        for voter_id, directory in ((-1, _DIRECTORY), (9, uuid.UUID(int=0)), (9, _DIRECTORY)):
            body = RemoveRaftVoterRequest(
                cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=directory
            )
            await k.ask(body, broker=1)


@session(94)
async def unregister_unknown_controllers(k: Side) -> None:
    for controller_id in (1, 99, -1):
        await k.ask(UnregisterControllerRequest(controller_id=controller_id), broker=1)
