"""What UpdateFeatures refuses as rows, in the order in which Kafka's controllers check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.releases.rows import Row, always

__all__ = [
    "KRAFT_ROWS",
    "SAFE_DOWNGRADE",
    "UPGRADE",
    "ZOOKEEPER_ROWS",
    "Change",
    "ChangeRow",
    "Refusal",
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


class Change(msgspec.Struct):
    """One feature that a request changes. ``supported`` is (lowest, highest) of the controller,
    (0, 0) for a feature that is not ``known``; ``current`` is the finalized level, 0 if it is off.
    ``code`` and ``text`` are the refusal.
    """

    feature: str
    level: int
    upgrade_type: int
    supported: tuple[int, int]
    current: int
    known: bool
    controller_id: int
    code: ErrorCode = ErrorCode.NONE
    text: str | None = None

    @property
    def span(self) -> str:
        """The supported levels in Kafka's notation."""
        lowest, highest = self.supported
        return str(lowest) if lowest == highest else f"{lowest}-{highest}"


ChangeRow: TypeAlias = Row[Change, Change]


class Refusal(msgspec.Struct, frozen=True):
    """An effect that refuses a change with a text, which may have fields of the change."""

    text: str
    code: ErrorCode = ErrorCode.INVALID_UPDATE_VERSION

    def __call__(self, subject: Change, /) -> None:
        subject.code = self.code
        subject.text = self.text.format(change=subject)


_INVALID: Final = "Invalid update version {change.level} for feature {change.feature}. "
_INVALID_METADATA: Final = "Invalid metadata.version {change.level}. "
_UNSUPPORTED_DOWNGRADE: Final = (
    "Unsupported metadata.version downgrade from {change.current} to {change.level}. "
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
        (Refusal(_INVALID + "The controller does not support the given upgrade type."),),
    ),
    Row(
        "FEAT-02",
        lambda change: change.level < 0,
        (Refusal(_INVALID + "A feature version cannot be less than 0."),),
    ),
    Row(
        "FEAT-03",
        lambda change: _unsupported(change) and change.supported[1] == 0,
        (
            Refusal(
                _INVALID + "Local controller {change.controller_id} does not support this feature."
            ),
        ),
    ),
    Row(
        "FEAT-04",
        _unsupported,
        (
            Refusal(
                _INVALID
                + "Local controller {change.controller_id} only supports versions {change.span}"
            ),
        ),
    ),
    Row(
        "FEAT-05",
        lambda change: change.level < change.current and change.upgrade_type == UPGRADE,
        (
            Refusal(
                _INVALID
                + "Can't downgrade the version of this feature without setting the upgrade type to "
                "either safe or unsafe downgrade."
            ),
        ),
    ),
    Row(
        "FEAT-06",
        lambda change: change.level > change.current and change.upgrade_type != UPGRADE,
        (Refusal(_INVALID + "Can't downgrade to a newer version."),),
    ),
    Row(
        "FEAT-07",
        lambda change: change.feature == METADATA and change.level < _FIRST_BOOTSTRAP,
        (Refusal(_INVALID_METADATA + "Unable to set a metadata.version less than 3.3-IV0"),),
        until=(4, 0),
    ),
    Row(
        "FEAT-08",
        lambda change: _loses_metadata(change) and change.upgrade_type == UNSAFE_DOWNGRADE,
        (Refusal(_INVALID_METADATA + _UNSAFE),),
        until=(4, 2),
    ),
    Row(
        "FEAT-08",
        lambda change: _loses_metadata(change) and change.upgrade_type == UNSAFE_DOWNGRADE,
        (Refusal(_UNSUPPORTED_DOWNGRADE + _UNSAFE),),
        since=(4, 2),
    ),
    Row("FEAT-09", _loses_metadata, (Refusal(_INVALID_METADATA + _LOSES),), until=(4, 2)),
    Row("FEAT-09", _loses_metadata, (Refusal(_UNSUPPORTED_DOWNGRADE + _LOSES),), since=(4, 2)),
    Row(
        "FEAT-10",
        lambda change: change.feature == KRAFT and change.level < change.current,
        (Refusal(_INVALID + "Can't downgrade the version of this feature."),),
        since=(4, 1),
    ),
    Row(
        "FEAT-11",
        lambda change: not change.known,
        (Refusal(_INVALID + "Feature {change.feature} not found."),),
        since=(4, 0),
    ),
)

_BAD_REQUEST: Final = ErrorCode.INVALID_REQUEST

ZOOKEEPER_ROWS: Final[Sequence[ChangeRow]] = (
    Row(
        "FEAT-16",
        lambda change: not change.feature,
        (Refusal("Feature name can not be empty.", _BAD_REQUEST),),
    ),
    Row(
        "FEAT-16",
        _unknown_type,
        (Refusal("Received unknown upgrade type.", _BAD_REQUEST),),
    ),
    Row(
        "FEAT-16",
        lambda change: change.level < 1 and change.upgrade_type != UPGRADE,
        (Refusal("Can not delete non-existing finalized feature.", _BAD_REQUEST),),
    ),
    Row(
        "FEAT-16",
        lambda change: change.level < 1,
        (
            Refusal(
                "Can not provide versionLevel: {change.level} less than 1 without setting the SAFE "
                "downgradeType in the request.",
                _BAD_REQUEST,
            ),
        ),
    ),
    Row(
        "FEAT-16",
        always,
        (
            Refusal(
                "Could not apply finalized feature update because the provided feature is not "
                "supported.",
                _BAD_REQUEST,
            ),
        ),
    ),
)
"""A broker of a ZooKeeper cluster supports no feature."""
