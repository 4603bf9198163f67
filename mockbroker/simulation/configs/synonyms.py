"""Broker configs that say the same in other units, such as ``log.retention.hours``. Data, no state.

The first of a group that has a value counts; it is the only one that a running broker changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["fallbacks_of", "milliseconds_of", "synonyms_of"]

_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000

_GROUPS: Final[tuple[Mapping[str, int], ...]] = (
    {"log.flush.interval.ms": 1, "log.flush.scheduler.interval.ms": 1},
    {"log.retention.ms": 1, "log.retention.minutes": _MINUTE_MS, "log.retention.hours": _HOUR_MS},
    {"log.roll.jitter.ms": 1, "log.roll.jitter.hours": _HOUR_MS},
    {"log.roll.ms": 1, "log.roll.hours": _HOUR_MS},
)
"""Milliseconds in a unit of each, by precedence."""
_SEPARATE: Final = frozenset({"log.flush.scheduler.interval.ms"})
"""Those that have an own meaning, too: DescribeConfigs lists no others with them."""

_GROUP_OF: Final = {name: group for group in _GROUPS for name in group}


def synonyms_of(name: str) -> tuple[str, ...]:
    """Return the configs of the same group, by precedence, the config itself included."""
    return (name,) if name in _SEPARATE else tuple(_GROUP_OF.get(name, (name,)))


def fallbacks_of(name: str) -> tuple[str, ...]:
    """Return the configs that count where this one has no value."""
    names = tuple(_GROUP_OF.get(name, ()))
    return names[names.index(name) + 1 :] if names else ()


def milliseconds_of(name: str, value: str) -> str:
    """Return a value in milliseconds; every negative number is -1."""
    milliseconds = int(value) * _GROUP_OF[name][name]
    return str(max(milliseconds, -1))
