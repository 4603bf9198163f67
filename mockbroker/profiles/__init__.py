"""Profiles: the releases that the mock can behave as, with their versions, mode and features.

A profile is a broker of one Kafka release line in one mode, named as in ``schemas/releases.json``:
``kafka-2.4``, or ``kafka-3.9`` (KRaft) and ``kafka-3.9-zk`` if a release has both modes. Proposals
that were never released are profiles too. A profile stands for the last patch release that its
versions were taken from: ``kafka-4.1`` is Kafka 4.1.2. ``kafka-4.1.0`` is an earlier patch release
with the same versions, ``kafka-4.1+KAFKA-19233`` has a fix of later releases, and
``kafka-4.2-KAFKA-19233`` lacks one. This module is data without behaviour.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

import msgspec
from msgspec.structs import replace

from kproto.errors import UnknownNameError
from kproto.near_names import with_suggestion
from kproto.schema.releases import Mode, Release, load_releases, release
from kproto.schema.versions import Versions
from mockbroker.simulation.features.release_features import Feature, features_of
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases import release as releases
from mockbroker.simulation.releases.fixes import FIXES

__all__ = ["DEFAULT_PROFILE", "Feature", "Profile", "all_profiles", "profile", "with_fixes"]

DEFAULT_PROFILE: Final = "kafka-4.4"
"""The newest release of ``schemas/releases.json``."""


class _Draft(msgspec.Struct, frozen=True):
    """A proposal that was never released as such: a broker of the release ``base`` that it was
    written for, with the proposal implemented. ``apis`` override that release's. ``dialect`` and
    ``reassignment`` default to the profile's name."""

    about: str
    apis: Mapping[int, Versions]
    base: str = "kafka-2.3"
    dialect: str | None = None
    reassignment: str | None = None
    elections: str | None = None


_REASSIGNMENTS: Final = {45: Versions(0, 0), 46: Versions(0, 0)}
_WITH_LEADER_AND_ISR: Final = {4: Versions(0, 3), **_REASSIGNMENTS}
"""One more version of LeaderAndIsr, and the two new API keys."""

_DRAFTS: Final = {
    "kip-183": _Draft(
        "KIP-183: ElectPreferredLeaders, one election at a time, guarded by a znode",
        {43: Versions(0, 0)},
        base="kafka-2.1",
        reassignment="zookeeper-2.1",
        elections="kip-183",
    ),
    "kip-455-old": _Draft(
        "KIP-455, older draft: replicas are added one by one, and the recorded target shrinks",
        _WITH_LEADER_AND_ISR,
    ),
    "kip-455-new": _Draft(
        "KIP-455, newer draft: replicas are added one by one, and the target stays on record",
        _WITH_LEADER_AND_ISR,
    ),
    "kip-236-old": _Draft(
        "KIP-236, older draft: request znodes, a znode per reassignment, /admin/reassign_cancel",
        _REASSIGNMENTS,
        dialect="kafka",
    ),
    "kip-236-old-literal": _Draft(
        "kip-236-old that drops replicas literally as proposed, even those of the new target",
        _REASSIGNMENTS,
        dialect="kafka",
    ),
    "kip-236-new": _Draft(
        "KIP-236, newer draft: original_replicas on record, znodes for cancelling and queueing",
        _REASSIGNMENTS,
        dialect="kafka",
    ),
    "kip-240": _Draft(
        "kip-236-old with KIP-240: reassignments have ids, and two API keys list and describe them",
        {**_REASSIGNMENTS, 32240: Versions(0, 0), 32241: Versions(0, 0)},
        reassignment="kip-236-old",
    ),
    "kip-860": _Draft(
        "KIP-860: a request may forbid changes of the replication factor",
        {45: Versions(0, 1)},
        base="kafka-4.0",
        reassignment="kraft",
    ),
}


class Profile(msgspec.Struct, frozen=True):
    """A broker to imitate.

    ``versions`` are the versions that it advertises, by API key. ``dialect`` names the message
    schemas, ``reassignment`` the kind of reassignment controller
    (``mockbroker.simulation.reassignment``), and ``elections`` the design that answers ElectLeaders
    (``mockbroker.simulation.elections.answers``).
    """

    name: str
    release: str
    mode: Mode
    versions: Mapping[int, Versions]
    features: tuple[Feature, ...] = ()
    dialect: str = "kafka"
    reassignment: str = "kraft"
    elections: str = "kraft"
    fixes: tuple[tuple[str, bool], ...] = ()
    """Of fixes by issue, whether brokers have them whatever their release."""

    @property
    def forwarding(self) -> bool:
        """Whether brokers forward requests to the controller (KIP-590), so that clients never get
        NOT_CONTROLLER(41)."""
        return self.mode == "kraft"

    @property
    def is_proposal(self) -> bool:
        """Whether no release behaves like this."""
        return self.name in _DRAFTS

    @property
    def proposal(self) -> str:
        """What the proposal changes, in one line; empty for a release."""
        return _DRAFTS[self.name].about if self.name in _DRAFTS else ""

    @property
    def fallback_row(self) -> bool:
        """Whether error 35 to ApiVersions comes with a row for key 18 (KIP-511)."""
        return self.software.has(facts.UNSUPPORTED_VERSION_ROW)

    @property
    def line(self) -> tuple[int, int]:
        """The release line: (3, 9) for 3.9.2. Before 1.0 the second number counted lines, too."""
        major, minor, *_ = self.software.number
        return major, minor

    @property
    def software(self) -> releases.Release:
        """The release, which decides what differs between releases."""
        return _software(self.release, self.fixes)

    @property
    def transaction_version(self) -> int:
        """The level of the feature ``transaction.version`` (KIP-890); 0 without the feature."""
        levels = [each.finalized for each in self.features if each.name == "transaction.version"]
        return levels[0] if levels else 0

    @property
    def optional_versions(self) -> Mapping[int, Versions]:
        """The versions that a broker of this release advertises only if it has a receiver of
        clients' metrics (KIP-714), by API key. ZooKeeper-mode brokers have none."""
        if not self.forwarding or not self.software.has(facts.CLIENT_TELEMETRY):
            return {}
        return {71: Versions(0, 0), 72: Versions(0, 0)}

    @property
    def unstable_versions(self) -> Mapping[int, Versions]:
        """The versions that a broker of this release advertises only with
        ``unstable.api.versions.enable``, by API key; without those of early-access features."""
        has_6 = self.software.has(facts.TWO_PHASE_COMMIT)
        return {22: Versions(0, 6)} if has_6 else {}

    @property
    def reports_defaults(self) -> bool:
        """Whether DescribeConfigs version 0 ever marks a config as a default."""
        return self.software.has(facts.DEFAULTS_MARKED)

    @property
    def has_empty_finalized_features(self) -> bool:
        """Whether the cluster has finalized features, but none: a ZooKeeper cluster's znode."""
        return not self.forwarding and self.software.has(facts.FEATURES_ZNODE)

    @property
    def summary(self) -> str:
        """The differences of the profile, in one line."""
        forwarding = (
            "brokers forward to the controller"
            if self.forwarding
            else "NOT_CONTROLLER(41) from all other brokers"
        )
        row = "lists ApiVersions" if self.fallback_row else "lists no API"
        drafts = f"; {self.proposal}" if self.proposal else ""
        return f"{forwarding}; error 35 to ApiVersions {row}{drafts}"


_SWITCHED: Final = re.compile(r"([+-])(KAFKA-[0-9]+)")
_PATCH: Final = re.compile(r"(kafka-[0-9.]+)\.([0-9]+)((?:-zk)?)")


def profile(name: str) -> Profile:
    """The profile with this name. Raises UnknownNameError, which suggests similar names."""
    if name in _DRAFTS:
        return _of_draft(name)
    base = _SWITCHED.sub("", name)
    fixes = {issue: sign == "+" for sign, issue in _SWITCHED.findall(name)}
    try:
        found = _of_patch(base) or _from_release(release(base))
    except UnknownNameError as error:
        if name.startswith("kip"):
            raise UnknownNameError(f"{error}; proposals: {', '.join(_DRAFTS)}") from None
        raise
    return replace(with_fixes(found, fixes), name=name)


def with_fixes(profile: Profile, fixes: Mapping[str, bool]) -> Profile:
    """The same profile with or without fixes of Kafka. Raises UnknownNameError for other issues."""
    for issue in fixes:
        if issue not in FIXES:
            problem, hint = f"no fix is named {issue!r}", "see `mockbroker profiles --fixes`"
            raise UnknownNameError(with_suggestion(problem, issue, FIXES, most=1, otherwise=hint))
    return replace(profile, fixes=tuple(sorted({**dict(profile.fixes), **fixes}.items())))


def _of_patch(name: str) -> Profile | None:
    """The profile of an earlier or the same patch release, named by its number."""
    matched = _PATCH.fullmatch(name)
    line = load_releases().get(f"{matched[1]}{matched[3]}") if matched else None
    if matched is None or line is None or name in load_releases():
        return None
    last = int(line.release.rpartition(".")[2])
    if int(matched[2]) > last:
        number = line.release.rpartition(".")[0]
        raise UnknownNameError(f"no release profile named {name!r}; the last of {number} is {last}")
    number = f"{matched[1].removeprefix('kafka-')}.{int(matched[2])}"
    return replace(_from_release(line), release=number)


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
        reassignment=draft.reassignment or name,
        elections=draft.elections or _elections(base.mode),
    )


def _from_release(found: Release) -> Profile:
    kraft = found.mode == "kraft"
    return Profile(
        name=found.name,
        release=found.release,
        mode=found.mode,
        versions=found.apis,
        features=_features(found),
        reassignment="kraft"
        if kraft
        else _software(found.release).value_of(facts.ZOOKEEPER_CONTROLLER),
        elections=_elections(found.mode),
    )


def _features(found: Release) -> tuple[Feature, ...]:
    return features_of(_software(found.release)) if found.mode == "kraft" else ()


def _elections(mode: Mode) -> str:
    return "kraft" if mode == "kraft" else "zookeeper"


@cache
def _software(release: str, fixes: tuple[tuple[str, bool], ...] = ()) -> releases.Release:
    return releases.Release(tuple(map(int, release.split("."))), fixes)
