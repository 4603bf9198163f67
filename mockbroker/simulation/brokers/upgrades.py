"""The software of brokers: rolling upgrades and downgrades, and the migration from ZooKeeper.

What a broker says of itself (versions, texts, configs, supported features) follows its own release.
What the cluster does as a whole (its controller, its coordinators, its logs) follows the release of
the broker that is the controller. All brokers are controllers in KRaft mode, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.errors import ClusterError
from mockbroker.simulation.features.feature_rules import METADATA
from mockbroker.simulation.features.feature_updates import WITHOUT_LEVELS, Features
from mockbroker.simulation.features.release_features import features_of
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import CurrentRelease, Release
from mockbroker.simulation.releases.rows import Refusable, Row, apply_first, with_arguments
from mockbroker.simulation.state.actions import BrokerChanged, ControllerChanged, FeatureChanged
from mockbroker.simulation.state.controller import Controller

__all__ = ["MIGRATION_ROWS", "UPGRADE_ROWS", "Software", "Upgrades"]


_UNKNOWN: Final = (0, WITHOUT_LEVELS)
"""The levels of metadata.version of a release that lacks the feature."""


class Software(msgspec.Struct, frozen=True):
    """What a broker runs. ``name`` is that of a profile, ``reassignment`` the kind of reassignment
    controller, ``apis`` the versions of requests between brokers, as in ``Broker.apis``."""

    name: str
    release: Release
    reassignment: str
    elections: str
    in_zookeeper: bool
    is_proposal: bool = False
    apis: tuple[tuple[int, int, int], ...] = ()


class _Step(Refusable, msgspec.Struct):
    """A broker that changes its release, or a cluster that leaves ZooKeeper. ``brokers`` are all
    of the cluster; ``text`` is the reason of a refusal."""

    before: Software
    after: Software
    brokers: Mapping[int, Software]
    in_zookeeper: bool
    levels: Mapping[str, int]
    reassigns: bool = False
    code: ErrorCode = ErrorCode.NONE
    text: str = ""

    @property
    def unsupported(self) -> tuple[str, int, tuple[int, int]] | None:
        """The first finalized feature that the new release does not support at its level."""
        supported = {each.name: each.supported for each in features_of(self.after.release)}
        for name, level in self.levels.items():
            lowest, highest = supported.get(name, _UNKNOWN if name == METADATA else (0, 0))
            if level and not lowest <= level <= highest:
                return name, level, (lowest, highest)
        return None

    @property
    def too_old(self) -> tuple[int, Software] | None:
        """The first broker whose release cannot be migrated."""
        for broker_id, each in self.brokers.items():
            if not each.release.has(facts.ZOOKEEPER_MIGRATION):
                return broker_id, each
        return None


StepRow: TypeAlias = Row[_Step, _Step]


@with_arguments
def _refuse(step: _Step, text: str) -> None:
    unsupported, too_old = step.unsupported, step.too_old
    name, level, (lowest, highest) = unsupported or ("", 0, (0, 0))
    broker_id, software = too_old or (0, step.before)
    is_known = (lowest, highest) not in (_UNKNOWN, (0, 0))
    span = f"supports {lowest} to {highest}" if is_known else "lacks the feature"
    step.text = text.format(
        before=step.before.name, after=step.after.name, feature=name, level=level,
        span=span,
        broker=broker_id, software=software.name,
    )  # fmt: skip
    step.code = ErrorCode.INVALID_REQUEST


UPGRADE_ROWS: Final[Sequence[StepRow]] = (
    Row(
        "UPGRADE-01",
        lambda step: step.before.is_proposal or step.after.is_proposal,
        (_refuse("{before} cannot become {after}: proposals were never released"),),
    ),
    Row(
        "UPGRADE-02",
        lambda step: step.after.in_zookeeper and not step.in_zookeeper,
        (_refuse("{after} keeps its metadata in ZooKeeper, and the cluster does not"),),
    ),
    Row(
        "UPGRADE-03",
        lambda step: step.in_zookeeper and not step.after.in_zookeeper,
        (
            _refuse(
                "the cluster keeps its metadata in ZooKeeper and {after} does not: "
                "`migrate-to-kraft` comes first, with all brokers at 3.4 to 3.9"
            ),
        ),
    ),
    Row(
        "UPGRADE-03",
        lambda step: (
            step.before.in_zookeeper
            and not step.after.in_zookeeper
            and not step.after.release.has(facts.ZOOKEEPER_MIGRATION)
        ),
        (_refuse("{before} leaves ZooKeeper with a release from 3.4 to 3.9, not with {after}"),),
    ),
    Row(
        "UPGRADE-04",
        lambda step: (
            not step.after.in_zookeeper
            and step.after.release.is_newer_than(step.before.release)
            and not step.before.release.has(facts.KRAFT_UPGRADES)
        ),
        (_refuse("KRaft was an early access in {before}, which cannot be upgraded to {after}"),),
    ),
    Row(
        "UPGRADE-05",
        lambda step: not step.after.in_zookeeper and step.unsupported is not None,
        (
            _refuse(
                "the finalized level of {feature} is {level}, and {after} {span}; change the level "
                "with UpdateFeatures first"
            ),
        ),
    ),
)

MIGRATION_ROWS: Final[Sequence[StepRow]] = (
    Row(
        "UPGRADE-06",
        lambda step: not step.in_zookeeper,
        (_refuse("the cluster does not keep its metadata in ZooKeeper"),),
    ),
    Row(
        "UPGRADE-06",
        lambda step: any(each.is_proposal for each in step.brokers.values()),
        (_refuse("{before} cannot be migrated: proposals were never released"),),
    ),
    Row(
        "UPGRADE-06",
        lambda step: step.too_old is not None,
        (_refuse("broker {broker} runs {software}, and a migration needs 3.4 to 3.9"),),
    ),
    Row(
        "UPGRADE-07",
        lambda step: step.reassigns,
        (_refuse("reassignments are in progress; complete or cancel them first"),),
    ),
)


class Upgrades:
    """The software of each broker of one cluster. ``initial`` is that of all brokers at first;
    ``become`` makes the rest of the cluster follow the controller's."""

    def __init__(
        self,
        controller: Controller,
        release: CurrentRelease,
        initial: Software,
        features: Features,
        become: Callable[[Software], None],
        reassigns: Callable[[], bool],
    ) -> None:
        self._controller = controller
        self._release = release
        self._features = features
        self._become = become
        self._reassigns = reassigns
        self.current = initial
        self._known = {"": initial, initial.name: initial}
        controller.add_hooks((BrokerChanged, ControllerChanged), after=self._follow_controller)

    def software_of(self, broker_id: int) -> Software:
        """What a broker runs."""
        return self._known[self._controller.broker(broker_id).software]

    def is_hybrid(self, broker_id: int) -> bool:
        """Whether a broker still runs with ZooKeeper where the controllers no longer do."""
        in_zookeeper = self.software_of(broker_id).in_zookeeper
        return in_zookeeper and not self._controller.keeps_znodes

    def supported(self, broker_id: int) -> Mapping[str, tuple[int, int]]:
        """The levels of features that a broker supports."""
        software = self.software_of(broker_id)
        known = () if software.in_zookeeper else features_of(software.release)
        return {each.name: each.supported for each in known}

    def check(self, broker_id: int, after: Software) -> None:
        """Raise ClusterError with the reason if a broker cannot change to a release."""
        self._checked(UPGRADE_ROWS, self._step(broker_id, after))

    def change(self, broker_id: int, after: Software) -> None:
        """Change the release of a broker. Raises ClusterError with the reason if it cannot."""
        self.check(broker_id, after)
        self._known[after.name] = after
        before = self._controller.broker(broker_id)
        changed = replace(before, software=after.name, apis=after.apis)
        if changed != before:
            self._controller.record("upgrade", BrokerChanged(before, changed))

    def migrate(self, kraft: Software) -> None:
        """Let KRaft controllers take over from ZooKeeper (KIP-866). Brokers keep their software.
        Raises ClusterError with the reason if the cluster cannot be migrated."""
        state = self._controller.state
        self._checked(MIGRATION_ROWS, self._step(state.controller_id, kraft))
        self._change_to(kraft)
        for each in features_of(kraft.release):
            if each.finalized:
                change = FeatureChanged(each.name, 0, each.finalized)
                self._controller.record("migrate_to_kraft", change)
        same = state.controller_id
        moved = ControllerChanged(same, same, state.controller_epoch + 1)
        self._controller.record("migrate_to_kraft", moved)

    def _step(self, broker_id: int, after: Software) -> _Step:
        return _Step(
            self.software_of(broker_id),
            after,
            {each: self.software_of(each) for each in self._controller.state.brokers},
            self._controller.keeps_znodes,
            self._features.finalized,
            self._reassigns(),
        )

    def _checked(self, rows: Sequence[StepRow], step: _Step) -> None:
        if apply_first(rows, step, step):
            raise ClusterError(step.text)

    def _follow_controller(self, cause: str, change: object) -> None:
        state = self._controller.state
        if state.controller_id not in state.brokers:
            return
        software = self.software_of(state.controller_id)
        if software.in_zookeeper and not self._controller.keeps_znodes:
            # The controllers have left ZooKeeper before the brokers.
            software = self.current
        if software.name != self.current.name:
            self._change_to(software)

    def _change_to(self, software: Software) -> None:
        self.current = software
        self._become(software)
        self._release.become(software.release)
