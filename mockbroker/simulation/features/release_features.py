"""The features (KIP-584) of a freshly formatted KRaft cluster of each release, as in the tagged
fields of ApiVersions 3 and later.

The levels come from the release's own ``MetadataVersion`` and ``Feature`` classes, for its latest
production metadata version. ZooKeeper clusters have no features by default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from mockbroker.errors import ClusterError
from mockbroker.simulation.releases.release import EVER, Release, ReleaseNumber, Varying

__all__ = ["Feature", "features_of", "with_levels"]


class Feature(NamedTuple):
    """``supported`` is (lowest, highest); ``finalized`` is the cluster's level, 0 when off."""

    name: str
    supported: tuple[int, int]
    finalized: int


_Levels: TypeAlias = tuple[int, int, int] | None
"""(lowest, highest supported, default level); None where a release lacks the feature."""


def _levels(*values: tuple[ReleaseNumber, _Levels]) -> Varying[_Levels]:
    return Varying("REL-15", ((EVER, None), *values))


_FEATURES: Final[Mapping[str, Varying[_Levels]]] = {
    "metadata.version": _levels(
        ((3, 3), (1, 7, 7)), ((3, 4), (1, 8, 8)), ((3, 5), (1, 11, 11)), ((3, 6), (1, 14, 14)),
        ((3, 7), (1, 19, 19)), ((3, 8), (1, 20, 20)), ((3, 9), (1, 21, 21)),
        ((4, 0), (7, 25, 25)), ((4, 1), (7, 27, 27)), ((4, 2), (7, 29, 29)),
        ((4, 3), (7, 30, 30)), ((4, 4), (7, 33, 33)),
    ),
    "kraft.version": _levels(((3, 9), (0, 1, 0)), ((4, 0), (0, 1, 1))),
    "transaction.version": _levels(((4, 0), (0, 2, 2))),
    "group.version": _levels(((4, 0), (0, 1, 1))),
    # On by default since 4.1, but the simulated partitions behave as with it off.
    "eligible.leader.replicas.version": _levels(((4, 0), (0, 1, 0))),
    "share.version": _levels(((4, 1), (0, 1, 0)), ((4, 2), (0, 1, 1)), ((4, 4), (0, 2, 2))),
    "streams.version": _levels(((4, 2), (0, 1, 1))),
}  # fmt: skip


def features_of(release: Release) -> tuple[Feature, ...]:
    """The features of a KRaft broker of this release. An unknown newer release has those of the
    newest known one; releases before 3.3 had no metadata.version, and have none."""
    levels = {name: release.value_of(each) for name, each in _FEATURES.items()}
    return tuple(
        Feature(name, found[:2], found[2]) for name, found in levels.items() if found is not None
    )


def with_levels(features: Sequence[Feature], levels: Mapping[str, int]) -> tuple[Feature, ...]:
    """The features with other finalized levels. Raises ClusterError for a feature or a level that
    the release does not support."""
    found = {feature.name: feature for feature in features}
    for name, level in levels.items():
        if name not in found:
            known = ", ".join(found) or "none"
            raise ClusterError(f"the release has no feature {name!r}; its features: {known}")
        lowest, highest = found[name].supported
        if not lowest <= level <= highest:
            raise ClusterError(
                f"the release supports {name} at levels {lowest} to {highest}, not {level}"
            )
        found[name] = found[name]._replace(finalized=level)
    return tuple(found.values())
