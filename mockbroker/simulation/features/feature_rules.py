"""What UpdateFeatures refuses as rows, in the order in which Kafka's controllers check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.releases.rows import Row, always, refuse_with_text

__all__ = [
    "KRAFT_ROWS",
    "METADATA",
    "SAFE_DOWNGRADE",
    "UPGRADE",
    "ZOOKEEPER_ROWS",
    "Change",
    "ChangeRow",
]

METADATA: Final = "metadata.version"
KRAFT: Final = "kraft.version"

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3

_FIRST_BOOTSTRAP: Final = 4
"""The level of 3.3-IV0, the first that a KRaft cluster can have."""
_CHANGING: Final = frozenset({5, 6, 7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33})
"""The levels of metadata.version that changed the format of a record."""


_BrokerLevels: TypeAlias = tuple[int, tuple[int, int]]
"""A broker, and the lowest and the highest level of a feature that it supports."""


class Change(msgspec.Struct):
    """One feature that a request changes. ``supported`` is (lowest, highest) of the controller,
    (0, 0) for a feature that is not ``known``; ``current`` is the finalized level, 0 if it is off.
    ``brokers`` are the levels that each broker supports. ``code`` and ``text`` are the refusal.
    """

    feature: str
    level: int
    upgrade_type: int
    supported: tuple[int, int]
    current: int
    known: bool
    controller_id: int
    brokers: Mapping[int, tuple[int, int]] = {}
    code: ErrorCode = ErrorCode.NONE
    text: str | None = None

    @property
    def span(self) -> str:
        """The supported levels in Kafka's notation."""
        return _span(self.supported)

    @property
    def lagging(self) -> _BrokerLevels | None:
        """The first broker that does not support the level, and the levels that it supports."""
        return self._lagging(off_needs_feature=False)

    @property
    def lacking(self) -> _BrokerLevels | None:
        """The same, where a broker that lacks the feature does not support level 0, either."""
        return self._lagging(off_needs_feature=True)

    def _lagging(self, *, off_needs_feature: bool) -> _BrokerLevels | None:
        for broker_id, (lowest, highest) in self.brokers.items():
            if (off_needs_feature and not highest) or not lowest <= self.level <= highest:
                return broker_id, (lowest, highest)
        return None

    @property
    def lagging_broker(self) -> str:
        """What the refusal says of that broker."""
        return _refusal(self.lagging, "only supports versions {span}")

    @property
    def lacking_broker(self) -> str:
        """The same in other words."""
        text = "does not support the given version. It supports {lowest} to {highest}."
        return _refusal(self.lacking, text)


def _refusal(broker: _BrokerLevels | None, text: str) -> str:
    """Return the text of a refusal for a broker; ``text`` describes one that has the feature."""
    assert broker is not None, "the row's condition found it"
    broker_id, (lowest, highest) = broker
    if not highest:
        text = "does not support this feature."
    said = text.format(lowest=lowest, highest=highest, span=_span((lowest, highest)))
    return f"Broker {broker_id} {said}"


def _span(supported: tuple[int, int]) -> str:
    lowest, highest = supported
    return str(lowest) if lowest == highest else f"{lowest}-{highest}"


ChangeRow: TypeAlias = Row[Change, Change]


_refuse: Final = partial(refuse_with_text, code=ErrorCode.INVALID_UPDATE_VERSION)
_INVALID: Final = "Invalid update version {subject.level} for feature {subject.feature}. "
_INVALID_METADATA: Final = "Invalid metadata.version {subject.level}. "
_UNSUPPORTED_DOWNGRADE: Final = (
    "Unsupported metadata.version downgrade from {subject.current} to {subject.level}. "
)
_UNSAFE: Final = "Unsafe metadata downgrade is not supported in this version."
_LOSES: Final = (
    "Refusing to perform the requested downgrade because it might delete metadata information."
)


def _unknown_type(change: Change) -> bool:
    return change.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE)


def _unsupported(change: Change) -> bool:
    lowest, highest = change.supported
    return not lowest <= change.level <= highest


def _loses_metadata(change: Change) -> bool:
    if change.feature != METADATA:
        return False
    return any(change.level < level <= change.current for level in _CHANGING)


KRAFT_ROWS: Final[Sequence[ChangeRow]] = (
    Row(
        "FEAT-01",
        _unknown_type,
        (_refuse(_INVALID + "The controller does not support the given upgrade type."),),
    ),
    Row(
        "FEAT-02",
        lambda change: change.level < 0,
        (_refuse(_INVALID + "A feature version cannot be less than 0."),),
    ),
    Row(
        "FEAT-03",
        lambda change: _unsupported(change) and change.supported[1] == 0,
        (
            _refuse(
                _INVALID + "Local controller {subject.controller_id} does not support this feature."
            ),
        ),
    ),
    Row(
        "FEAT-04",
        _unsupported,
        (
            _refuse(
                _INVALID
                + "Local controller {subject.controller_id} only supports versions {subject.span}"
            ),
        ),
    ),
    Row(
        "FEAT-18",
        lambda change: change.lacking is not None,
        (_refuse(_INVALID + "{subject.lacking_broker}"),),
        since=(3, 3),
        until=(3, 7),
    ),
    Row(
        "FEAT-18",
        lambda change: change.known and change.lagging is not None,
        (_refuse(_INVALID + "{subject.lagging_broker}"),),
    ),
    Row(
        "FEAT-05",
        lambda change: change.level < change.current and change.upgrade_type == UPGRADE,
        (
            _refuse(
                _INVALID
                + "Can't downgrade the version of this feature without setting the upgrade type to "
                "either safe or unsafe downgrade."
            ),
        ),
    ),
    Row(
        "FEAT-06",
        lambda change: change.level > change.current and change.upgrade_type != UPGRADE,
        (_refuse(_INVALID + "Can't downgrade to a newer version."),),
    ),
    Row(
        "FEAT-07",
        lambda change: change.feature == METADATA and change.level < _FIRST_BOOTSTRAP,
        (_refuse(_INVALID_METADATA + "Unable to set a metadata.version less than 3.3-IV0"),),
        until=(4, 0),
    ),
    Row(
        "FEAT-08",
        lambda change: _loses_metadata(change) and change.upgrade_type == UNSAFE_DOWNGRADE,
        (_refuse(_INVALID_METADATA + _UNSAFE),),
        until=(4, 2),
    ),
    Row(
        "FEAT-08",
        lambda change: _loses_metadata(change) and change.upgrade_type == UNSAFE_DOWNGRADE,
        (_refuse(_UNSUPPORTED_DOWNGRADE + _UNSAFE),),
        since=(4, 2),
    ),
    Row("FEAT-09", _loses_metadata, (_refuse(_INVALID_METADATA + _LOSES),), until=(4, 2)),
    Row("FEAT-09", _loses_metadata, (_refuse(_UNSUPPORTED_DOWNGRADE + _LOSES),), since=(4, 2)),
    Row(
        "FEAT-10",
        lambda change: change.feature == KRAFT and change.level < change.current,
        (_refuse(_INVALID + "Can't downgrade the version of this feature."),),
        since=(4, 1),
    ),
    Row(
        "FEAT-11",
        lambda change: not change.known,
        (_refuse(_INVALID + "Feature {subject.feature} not found."),),
        since=(4, 0),
    ),
)

ZOOKEEPER_ROWS: Final[Sequence[ChangeRow]] = (
    Row(
        "FEAT-16",
        lambda change: not change.feature,
        (refuse_with_text("Feature name can not be empty."),),
    ),
    Row("FEAT-16", _unknown_type, (refuse_with_text("Received unknown upgrade type."),)),
    Row(
        "FEAT-16",
        lambda change: change.level < 1 and change.upgrade_type != UPGRADE,
        (refuse_with_text("Can not delete non-existing finalized feature."),),
    ),
    Row(
        "FEAT-16",
        lambda change: change.level < 1,
        (
            refuse_with_text(
                "Can not provide versionLevel: {subject.level} less than 1 without setting the "
                "SAFE downgradeType in the request."
            ),
        ),
    ),
    Row(
        "FEAT-16",
        always,
        (
            refuse_with_text(
                "Could not apply finalized feature update because the provided feature is not "
                "supported."
            ),
        ),
    ),
)
"""A broker of a ZooKeeper cluster supports no feature."""
