"""The limits within which a broker lets groups set configs of their own, as rows.

Only what a group sets is checked: a broker does not start with values of its own that are out of
its limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.releases.rows import Row, with_arguments

__all__ = ["ON_GROUP_CONFIGS", "ON_GROUP_TEXTS", "GroupConfigCheck"]

_RANGES_SINCE: Final = (4, 4)


class GroupConfigCheck(msgspec.Struct):
    """What a group sets. ``of_broker`` returns a config of the broker that leads the controllers,
    ``in_use`` the value that the group follows. ``code`` and ``text`` are the refusal."""

    values: Mapping[str, str]
    of_broker: Callable[[str], str]
    in_use: Callable[[str], int]
    code: ErrorCode = ErrorCode.NONE
    text: str = ""

    def refuse(self, text: str) -> None:
        self.code, self.text = ErrorCode.INVALID_CONFIG, text

    @property
    def assignors(self) -> list[str]:
        """The names of the assignors of streams groups that the broker has."""
        return [each.strip() for each in self.of_broker("group.streams.assignors").split(",")]


class _Limits(msgspec.Struct, frozen=True):
    """``least`` and ``most`` name configs of the broker."""

    config: str
    least: str | None
    most: str | None

    def is_low(self, check: GroupConfigCheck) -> bool:
        value = int(check.values[self.config])
        return self.least is not None and value < int(check.of_broker(self.least))

    def __call__(self, check: GroupConfigCheck) -> bool:
        if self.config not in check.values:
            return False
        value = int(check.values[self.config])
        is_high = self.most is not None and value > int(check.of_broker(self.most))
        return is_high or self.is_low(check)


@with_arguments
def _refuse_with_limit(check: GroupConfigCheck, limits: _Limits) -> None:
    is_low = limits.is_low(check)
    side, limit = ("greater", limits.least) if is_low else ("less", limits.most)
    check.refuse(f"{limits.config} must be {side} than or equal to {limit}")


@with_arguments
def _refuse_with_range(check: GroupConfigCheck, limits: _Limits) -> None:
    config, least, most = limits.config, limits.least, limits.most
    if least is None and most is not None:
        check.refuse(f"{config} must be less than or equal to {check.of_broker(most)}")
    elif most is None and least is not None:
        check.refuse(f"{config} must be greater than or equal to {check.of_broker(least)}")
    elif least is not None and most is not None:
        bounds = f"{check.of_broker(least)} to {check.of_broker(most)}"
        check.refuse(f"{config} must be in the range {bounds} inclusive.")


def _named(
    requirement: str, config: str, *, least: str | None = None, most: str | None = None
) -> Row[GroupConfigCheck, GroupConfigCheck]:
    limits = _Limits(config, least, most)
    return Row(requirement, limits, (_refuse_with_limit(limits),), until=_RANGES_SINCE)


def _ranged(
    requirement: str, config: str, *, least: str | None = None, most: str | None = None
) -> Row[GroupConfigCheck, GroupConfigCheck]:
    limits = _Limits(config, least, most)
    return Row(requirement, limits, (_refuse_with_range(limits),), since=_RANGES_SINCE)


def _within(
    requirement: str, kind: str, what: str
) -> tuple[Row[GroupConfigCheck, GroupConfigCheck], ...]:
    """Between ``group.KIND.min.WHAT`` and ``group.KIND.max.WHAT``."""
    config, least, most = f"{kind}.{what}", f"group.{kind}.min.{what}", f"group.{kind}.max.{what}"
    return (
        _named(requirement, config, least=least, most=most),
        _ranged(requirement, config, least=least, most=most),
    )


class _OutlivesNoHeartbeat(msgspec.Struct, frozen=True):
    """The session time-out of groups of this kind does not exceed the heartbeat interval."""

    kind: str

    @property
    def session(self) -> str:
        return f"{self.kind}.session.timeout.ms"

    @property
    def heartbeat(self) -> str:
        return f"{self.kind}.heartbeat.interval.ms"

    def __call__(self, check: GroupConfigCheck) -> bool:
        if not {self.session, self.heartbeat} & {*check.values}:
            return False
        return check.in_use(self.session) <= check.in_use(self.heartbeat)

    def refuse(self, check: GroupConfigCheck) -> None:
        check.refuse(f"{self.session} must be greater than {self.heartbeat}")


def _outlives(requirement: str, kind: str) -> Row[GroupConfigCheck, GroupConfigCheck]:
    rule = _OutlivesNoHeartbeat(kind)
    return Row(requirement, rule, (rule.refuse,))


_ASSIGNOR: Final = "streams.assignor.name"
_TAGS: Final = "streams.rack.aware.assignment.tags"
_STANDBYS: Final = "streams.num.standby.replicas"
_MOST_STANDBYS: Final = "group.streams.max.standby.replicas"


def _names_unknown_assignor(check: GroupConfigCheck) -> bool:
    return _ASSIGNOR in check.values and check.values[_ASSIGNOR].strip() not in check.assignors


def _refuse_unknown_assignor(check: GroupConfigCheck) -> None:
    registered = ", ".join(check.assignors)
    check.refuse(
        f"{_ASSIGNOR} '{check.values[_ASSIGNOR].strip()}' is not a registered task assignor. "
        f"Registered assignors are: [{registered}]."
    )


def _tags(check: GroupConfigCheck) -> list[str]:
    text = check.values.get(_TAGS, "").strip()
    return [each.strip() for each in text.split(",")] if text else []


def _repeats_tags(check: GroupConfigCheck) -> bool:
    tags = _tags(check)
    return len({*tags}) < len(tags)


@with_arguments
def _refuse(check: GroupConfigCheck, text: str) -> None:
    check.refuse(text)


ON_GROUP_TEXTS: Final[tuple[Row[GroupConfigCheck, GroupConfigCheck], ...]] = (
    Row(
        "DP-STREAMS-23", _repeats_tags, (_refuse(f"{_TAGS} must not contain duplicate tag keys."),)
    ),
    Row(
        "DP-STREAMS-23",
        lambda check: "" in _tags(check),
        (_refuse(f"Configuration '{_TAGS}' values must not be empty."),),
    ),
)
"""What is checked before the values are read."""

ON_GROUP_CONFIGS: Final[tuple[Row[GroupConfigCheck, GroupConfigCheck], ...]] = (
    *_within("DP-CGH-25", "consumer", "heartbeat.interval.ms"),
    *_within("DP-CGH-25", "consumer", "session.timeout.ms"),
    *_within("DP-CGH-25", "consumer", "assignment.interval.ms"),
    *_within("DP-SHARE-01", "share", "heartbeat.interval.ms"),
    *_within("DP-SHARE-01", "share", "session.timeout.ms"),
    *_within("DP-SHARE-01", "share", "record.lock.duration.ms"),
    *_within("DP-SHARE-01", "share", "delivery.count.limit"),
    *_within("DP-SHARE-01", "share", "partition.max.record.locks"),
    *_within("DP-SHARE-01", "share", "assignment.interval.ms"),
    *_within("DP-STREAMS-23", "streams", "heartbeat.interval.ms"),
    *_within("DP-STREAMS-23", "streams", "session.timeout.ms"),
    _named("DP-STREAMS-23", _STANDBYS, most=_MOST_STANDBYS),
    _ranged("DP-STREAMS-23", _STANDBYS, most=_MOST_STANDBYS),
    *_within("DP-STREAMS-23", "streams", "assignment.interval.ms"),
    _ranged(
        "DP-STREAMS-23",
        "streams.task.offset.interval.ms",
        least="group.streams.min.task.offset.interval.ms",
    ),
    _ranged(
        "DP-STREAMS-23", "streams.num.warmup.replicas", most="group.streams.max.warmup.replicas"
    ),
    Row("DP-STREAMS-23", _names_unknown_assignor, (_refuse_unknown_assignor,)),
    _outlives("DP-CGH-25", "consumer"),
    _outlives("DP-SHARE-01", "share"),
    _outlives("DP-STREAMS-23", "streams"),
)
