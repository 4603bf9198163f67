"""The broker configs that groups follow, as values, and the bounds that this mock sets itself."""

from __future__ import annotations

from typing import Final

import msgspec

from mockbroker.simulation.configs.effective import EffectiveConfigs

__all__ = ["MOST_GROUPS", "MOST_MEMBERS", "GroupSettings", "group_settings"]

MOST_GROUPS: Final = 10_000
"""A join or a commit that would make more gets COORDINATOR_NOT_AVAILABLE(15)."""
MOST_MEMBERS: Final = 10_000
"""Of a group, ids that were handed out and have not joined included."""

_UNLIMITED: Final = 2**31 - 1


class GroupSettings(msgspec.Struct, frozen=True):
    """Times are milliseconds."""

    min_session_timeout_ms: int
    max_session_timeout_ms: int
    initial_rebalance_delay_ms: int
    max_size: int

    def allows_session(self, timeout_ms: int) -> bool:
        """Whether a member may have this session time-out."""
        return self.min_session_timeout_ms <= timeout_ms <= self.max_session_timeout_ms


def group_settings(configs: EffectiveConfigs, broker_id: int) -> GroupSettings:
    """Read the settings of a broker. All of them are static, so they last as long as it runs."""

    def number(name: str, otherwise: int) -> int:
        if name not in configs.definitions.broker:
            return otherwise
        return int(configs.broker(broker_id, name).value or otherwise)

    return GroupSettings(
        min_session_timeout_ms=number("group.min.session.timeout.ms", 6_000),
        max_session_timeout_ms=number("group.max.session.timeout.ms", _UNLIMITED),
        initial_rebalance_delay_ms=number("group.initial.rebalance.delay.ms", 0),
        max_size=number("group.max.size", _UNLIMITED),
    )
