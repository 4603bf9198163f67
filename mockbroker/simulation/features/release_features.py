"""The features (KIP-584) of a freshly formatted KRaft cluster of each release, as in the tagged
fields of ApiVersions 3 and later.

The levels come from the release's own ``MetadataVersion`` and ``Feature`` classes, for its latest
production metadata version. ZooKeeper clusters have no features by default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from mockbroker.errors import ClusterError

__all__ = ["Feature", "features_of", "with_levels"]


class Feature(NamedTuple):
    """``supported`` is (lowest, highest); ``finalized`` is the cluster's level, 0 when off."""

    name: str
    supported: tuple[int, int]
    finalized: int


# release -> (lowest, highest production) level of metadata.version
_METADATA_VERSION: Final[dict[tuple[int, int], tuple[int, int]]] = {
    (3, 3): (1, 7),
    (3, 4): (1, 8),
    (3, 5): (1, 11),
    (3, 6): (1, 14),
    (3, 7): (1, 19),
    (3, 8): (1, 20),
    (3, 9): (1, 21),
    (4, 0): (7, 25),
    (4, 1): (7, 27),
    (4, 2): (7, 29),
    (4, 3): (7, 30),
    (4, 4): (7, 33),
}

# name -> (release, highest supported, default level) from that release on; the lowest is 0
_OTHERS: Final[dict[str, tuple[tuple[tuple[int, int], int, int], ...]]] = {
    "kraft.version": (((3, 9), 1, 0), ((4, 0), 1, 1)),
    "transaction.version": (((4, 0), 2, 2),),
    "group.version": (((4, 0), 1, 1),),
    # On by default since 4.1, but the simulated partitions behave as with it off.
    "eligible.leader.replicas.version": (((4, 0), 1, 0),),
    "share.version": (((4, 1), 1, 0), ((4, 2), 1, 1), ((4, 4), 2, 2)),
    "streams.version": (((4, 2), 1, 1),),
}


def features_of(release: tuple[int, int]) -> tuple[Feature, ...]:
    """The features of a KRaft broker of this (major, minor) release. An unknown newer release has
    those of the newest known one; releases before 3.3 had no metadata.version, and have none."""
    known = [at for at in _METADATA_VERSION if at <= release]
    if not known:
        return ()
    lowest, highest = _METADATA_VERSION[max(known)]
    features = [Feature("metadata.version", (lowest, highest), highest)]
    for name, steps in _OTHERS.items():
        reached = [step for step in steps if step[0] <= release]
        if reached:
            _, supported, finalized = reached[-1]
            features.append(Feature(name, (0, supported), finalized))
    return tuple(features)


def with_levels(features: Sequence[Feature], levels: Mapping[str, int]) -> tuple[Feature, ...]:
    """The features with other finalized levels. Raises ClusterError for a feature or a level that
    the release does not support."""
    found = {each.name: each for each in features}
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
