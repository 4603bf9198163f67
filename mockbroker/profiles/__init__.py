"""Which broker the mock pretends to be: versions, mode, features. Data, and no behaviour.

A profile is one kind of broker of one Kafka release line, named as in ``schemas/releases.json``:
``kafka-2.4``, or ``kafka-3.9`` (KRaft) and ``kafka-3.9-zk`` where a release has both modes. Drafts
that were never released are profiles too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kproto.errors import UnknownNameError
from kproto.schema.releases import Mode, Release, load_releases, release
from kproto.schema.versions import Versions
from mockbroker.elections.partition_change import Completion
from mockbroker.profiles.features import Feature, features_of
from mockbroker.reassignment.zookeeper.eras import era_of

__all__ = ["DEFAULT_PROFILE", "Feature", "Profile", "all_profiles", "profile"]

DEFAULT_PROFILE: Final = "kafka-4.1"

_FALLBACK_ROW_SINCE: Final = (2, 4)
_EARLY_COMPLETION_SINCE: Final = (4, 3)
_JAVA_NAMES_SINCE: Final = (4, 3)
_ADMINISTRATION: Final = (
    ((3, 3), "zookeeper"),
    ((3, 2), "zookeeper-3.2"),
    ((3, 1), "zookeeper-3.1"),
    ((2, 7), "zookeeper-2.7"),
    ((2, 6), "zookeeper-2.6"),
    ((0, 0), "zookeeper-0.10"),
)
"""The first that had begun with a release."""
_DEFAULTS_TOLD_UNTIL: Final = (2, 6)
_FEATURE_ZNODE_SINCE: Final = (2, 7)
_ELECTIONS: Final = (
    ((2, 2), "zookeeper-2.2"),
    ((2, 4), "zookeeper-2.4"),
    ((2, 6), "zookeeper-2.6"),
)
"""Since when brokers with ZooKeeper answer ElectLeaders as they do; older ones do not."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """A broker that never was: one of the release that the draft was written for, with the draft
    built in. ``apis`` are laid over that release's; ``dialect`` and ``machine`` None are those of
    the draft's own name."""

    about: str
    apis: Mapping[int, Versions]
    base: str = "kafka-2.3"
    dialect: str | None = None
    machine: str | None = None
    elections: str | None = None


_REASSIGNMENTS: Final = {45: Versions(0, 0), 46: Versions(0, 0)}
_WITH_LEADER_AND_ISR: Final = {4: Versions(0, 3), **_REASSIGNMENTS}
"""LeaderAndIsr with a version more, and the two new keys."""

_DRAFTS: Final = {
    "kip-183": _Draft(
        "KIP-183: ElectPreferredLeaders, one at a time behind a flag that a znode shares",
        {43: Versions(0, 0)},
        base="kafka-2.1",
        machine="zookeeper-2.1",
        elections="kip-183",
    ),
    "kip-455-old": _Draft(
        "KIP-455 before it was built, older draft: replicas grow one by one, the target shrinks",
        _WITH_LEADER_AND_ISR,
    ),
    "kip-455-new": _Draft(
        "KIP-455 before it was built, newer draft: replicas grow one by one, the target stays",
        _WITH_LEADER_AND_ISR,
    ),
    "kip-236-old": _Draft(
        "KIP-236, older draft: a request znode, a znode a reassignment, /admin/reassign_cancel",
        _REASSIGNMENTS,
        dialect="kafka",
    ),
    "kip-236-old-literal": _Draft(
        "kip-236-old that drops replicas as the page has it, those of the new target among them",
        _REASSIGNMENTS,
        dialect="kafka",
    ),
    "kip-236-new": _Draft(
        "KIP-236, newer draft: original_replicas on record, a znode that cancels, a znode to queue",
        _REASSIGNMENTS,
        dialect="kafka",
    ),
    "kip-240": _Draft(
        "kip-236-old with KIP-240: reassignments have an identity, and two api keys tell of them",
        {**_REASSIGNMENTS, 32240: Versions(0, 0), 32241: Versions(0, 0)},
        machine="kip-236-old",
    ),
    "kip-860": _Draft(
        "KIP-860: a reassignment may refuse to change the replication factor",
        {45: Versions(0, 1)},
        base="kafka-4.0",
        machine="kraft",
    ),
}


@dataclass(frozen=True, slots=True)
class Profile:
    """``versions``: api key -> what a broker of this release advertises.

    ``forwarding``: brokers pass on what is the controller's (KIP-590), so that clients never see
    NOT_CONTROLLER(41). ``fallback_row``: error 35 to ApiVersions holds a row for key 18 (KIP-511).
    ``dialect`` names the message layouts on the wire, ``machine`` how the controller reassigns
    partitions (``mockbroker.reassignment``), ``elections`` how it answers ElectLeaders
    (``mockbroker.elections.eras``).
    """

    name: str
    release: str
    mode: Mode
    versions: Mapping[int, Versions]
    features: tuple[Feature, ...] = ()
    dialect: str = "kafka"
    machine: str = "kraft"
    elections: str = "kraft"

    @property
    def forwarding(self) -> bool:
        return self.mode == "kraft"

    @property
    def proposed(self) -> bool:
        """Whether it is a draft's, that no release ever was."""
        return self.name in _DRAFTS

    @property
    def fallback_row(self) -> bool:
        return _major_minor(self.release) >= _FALLBACK_ROW_SINCE

    @property
    def line(self) -> tuple[int, int]:
        """Which configs there are: (3, 9) of release 3.9.2."""
        return _major_minor(self.release)

    @property
    def administration(self) -> str:
        """How topics and configs are administered (``mockbroker.topics.eras``)."""
        if not self.forwarding:
            return next(name for since, name in _ADMINISTRATION if self.line >= since)
        return "kraft-4.3" if self.line >= _JAVA_NAMES_SINCE else "kraft-3.3"

    @property
    def tells_defaults(self) -> bool:
        """Whether DescribeConfigs version 0 says of any config that it has its default."""
        return self.line <= _DEFAULTS_TOLD_UNTIL

    @property
    def finalizes_nothing(self) -> bool:
        """Whether the cluster has finalized its features, none: the znode of ZooKeeper clusters."""
        return not self.forwarding and self.line >= _FEATURE_ZNODE_SINCE

    @property
    def completion(self) -> Completion:
        """When a reassignment is done."""
        early = self.forwarding and _major_minor(self.release) >= _EARLY_COMPLETION_SINCE
        return Completion.ADDED if early else Completion.ALL

    @property
    def summary(self) -> str:
        """What the profile changes, in one line."""
        forwarding = (
            "brokers forward to the controller"
            if self.forwarding
            else "NOT_CONTROLLER(41) off the controller"
        )
        row = "one row" if self.fallback_row else "no row"
        drafts = f"; {_DRAFTS[self.name].about}" if self.name in _DRAFTS else ""
        return f"{forwarding}; ApiVersions error 35 with {row}{drafts}"


def profile(name: str) -> Profile:
    """The profile of that name. Raises UnknownNameError with the nearest names."""
    if name in _DRAFTS:
        return _of_draft(name)
    try:
        return _from_release(release(name))
    except UnknownNameError as error:
        if name.startswith("kip"):
            raise UnknownNameError(f"{error}; drafts: {', '.join(_DRAFTS)}") from None
        raise


def all_profiles() -> list[Profile]:
    """Every profile, oldest release first, then the drafts."""
    releases = [_from_release(each) for each in load_releases().values()]
    return releases + [_of_draft(name) for name in _DRAFTS]


def _of_draft(name: str) -> Profile:
    draft = _DRAFTS[name]
    base = release(draft.base)
    return Profile(
        name=name,
        release=base.release,
        mode=base.mode,
        versions={**base.apis, **draft.apis},
        features=_features(base),
        dialect=draft.dialect or name,
        machine=draft.machine or name,
        elections=draft.elections or _elections(base),
    )


def _from_release(found: Release) -> Profile:
    kraft = found.mode == "kraft"
    return Profile(
        name=found.name,
        release=found.release,
        mode=found.mode,
        versions=found.apis,
        features=_features(found),
        machine="kraft" if kraft else era_of(_major_minor(found.release)).name,
        elections=_elections(found),
    )


def _features(found: Release) -> tuple[Feature, ...]:
    return features_of(_major_minor(found.release)) if found.mode == "kraft" else ()


def _elections(found: Release) -> str:
    if found.mode == "kraft":
        return "kraft"
    known = [name for since, name in _ELECTIONS if since <= _major_minor(found.release)]
    return known[-1] if known else _ELECTIONS[0][1]


def _major_minor(text: str) -> tuple[int, int]:
    """(2, 4) of "2.4.1"; releases before 1.0 counted their lines in the second number."""
    major, minor, *_ = text.split(".")
    return int(major), int(minor)
