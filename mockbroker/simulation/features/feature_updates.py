"""The levels of a cluster's features, and UpdateFeatures (57), which changes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from kproto.error_codes import ErrorCode
from mockbroker.simulation.features.feature_rules import (
    KRAFT_ROWS,
    METADATA,
    ZOOKEEPER_ROWS,
    Change,
)
from mockbroker.simulation.features.release_features import Feature, features_of
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first, rows_of_release
from mockbroker.simulation.state.actions import FeatureChanged
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.java_maps import hash_order
from mockbroker.simulation.state.turns import step

__all__ = ["WITHOUT_LEVELS", "FeatureResult", "FeatureUpdate", "Features"]

WITHOUT_LEVELS: Final = 1
"""The metadata.version of a KRaft cluster from before the feature: 3.0-IV1."""


class FeatureUpdate(NamedTuple):
    """A requested level. ``upgrade_type``: 1 upgrade, 2 safe and 3 unsafe downgrade."""

    feature: str
    level: int
    upgrade_type: int = 1


class FeatureResult(NamedTuple):
    """What became of one change; ``text`` is None on success."""

    feature: str
    error_code: ErrorCode
    text: str | None


class Features:
    """The features of one cluster.

    ``known`` are those of its software, with the levels of a new cluster. ``supported_by_brokers``
    returns the levels that each live broker supports, ``active_controller`` the id of the
    controller that decides.
    """

    def __init__(
        self,
        controller: Controller,
        known: Sequence[Feature],
        release: Release,
        *,
        supported_by_brokers: Callable[[], Mapping[int, Mapping[str, tuple[int, int]]]],
        active_controller: Callable[[], int],
    ) -> None:
        self._controller = controller
        self.turns = controller.turns
        self._initial = {each.name: each.finalized for each in known}
        if not (controller.keeps_znodes or known):
            self._initial[METADATA] = WITHOUT_LEVELS
        self._supported_by_brokers = supported_by_brokers
        self._active_controller = active_controller
        release.follow(self._use_release)

    def _use_release(self, release: Release) -> None:
        in_zookeeper = self._controller.keeps_znodes
        known = () if in_zookeeper else features_of(release)
        self._known = {each.name: each for each in known}
        self._rows = rows_of_release(ZOOKEEPER_ROWS if in_zookeeper else KRAFT_ROWS, release)
        self.refuses_all = not in_zookeeper and release.has(facts.FIRST_FEATURE_ERROR_REFUSES_ALL)
        """Whether one error refuses all changes of a request."""

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features with their present levels."""
        return tuple(
            each._replace(finalized=self.level(each.name)) for each in self._known.values()
        )

    @property
    def finalized(self) -> Mapping[str, int]:
        """The finalized level of each feature that the cluster has ever had."""
        return {**self._initial, **self._controller.state.feature_levels}

    def level(self, name: str) -> int:
        """Return the finalized level of a feature, 0 if it is off or unknown."""
        changed = self._controller.state.feature_levels.get(name)
        return self._initial.get(name, 0) if changed is None else changed

    @step(by_controller=True)
    def update(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False
    ) -> tuple[FeatureResult, ...]:
        """Change levels; return a result for each feature, or only the first error if it refuses
        all. A feature that is named twice has its last level."""
        requested = {update.feature: update for update in updates}
        names = hash_order(requested) if self.refuses_all else sorted(requested)
        results = [self._check(requested[name]) for name in names]
        refused = [each for each in results if each.error_code]
        if refused and self.refuses_all:
            return (refused[0],)
        if not validate_only:
            for result in results:
                if not result.error_code:
                    self._store(result.feature, requested[result.feature].level)
        return tuple(results)

    def _check(self, update: FeatureUpdate) -> FeatureResult:
        known = self._known.get(update.feature)
        change = Change(
            *update,
            supported=(0, 0) if known is None else known.supported,
            current=self.level(update.feature),
            known=known is not None,
            brokers={
                broker_id: supported.get(update.feature, (0, 0))
                for broker_id, supported in self._supported_by_brokers().items()
            },
            controller_id=self._active_controller(),
        )
        apply_first(self._rows, change, change)
        return FeatureResult(update.feature, change.code, change.text)

    def _store(self, name: str, level: int) -> None:
        before = self.level(name)
        if before != level:
            self._controller.record("update_features", FeatureChanged(name, before, level))
