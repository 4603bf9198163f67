"""Simulated clusters, described in one line."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from kproto.znodes import ZnodeStore
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.state.cluster_parts import Broker
from mockbroker.simulation.state.settings import ClusterSettings, SimulationOptions

__all__ = ["simulated_cluster"]

_SETTINGS = {each.name for each in fields(ClusterSettings)}


def simulated_cluster(
    brokers: int | Iterable[Broker] = 3,
    *,
    topics: Iterable[str | tuple[str, Sequence[Sequence[int]]]] = (),
    znodes: ZnodeStore | None = None,
    **members: Any,
) -> Cluster:
    """A cluster whose settings and options have these members; ``release`` may be a number."""
    release = members.get("release")
    if isinstance(release, tuple):
        members["release"] = Release(release)
    return Cluster(
        brokers,
        topics=topics,
        settings=ClusterSettings(**{k: v for k, v in members.items() if k in _SETTINGS}),
        options=SimulationOptions(**{k: v for k, v in members.items() if k not in _SETTINGS}),
        znodes=znodes,
    )
