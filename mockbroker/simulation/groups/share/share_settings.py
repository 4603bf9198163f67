"""The configs that share groups follow, as values."""

from __future__ import annotations

from typing import Final

import msgspec

from mockbroker.simulation.configs.effective import EffectiveConfigs

__all__ = ["ShareSettings", "ShareTimes", "share_settings", "share_times"]


_LOCK_MS: Final = 30_000
_DELIVERY_LIMIT: Final = 5
_MOST_LOCKS: Final = 2000
"""For releases without share groups, where only testers share partitions."""


class ShareSettings(msgspec.Struct, frozen=True):
    """The configs that all share groups of a broker have in common."""

    max_size: int
    max_sessions: int


class ShareTimes(msgspec.Struct, frozen=True):
    """The configs that the delivery to one group follows."""

    lock_ms: int
    delivery_limit: int
    max_locks: int
    offset_reset: str
    read_committed: bool
    renews: bool


def share_settings(configs: EffectiveConfigs, broker_id: int) -> ShareSettings:
    """Read the settings of a broker, which are static."""

    def number(name: str) -> int:
        if name not in configs.definitions.broker:
            return 0
        return int(configs.broker(broker_id, name).value or 0)

    return ShareSettings(
        max_size=number("group.share.max.size"),
        max_sessions=number("group.share.max.share.sessions"),
    )


def share_times(configs: EffectiveConfigs, group_id: str, broker_id: int) -> ShareTimes:
    """Read what a group may set for itself: its own configs, else those of the broker. Releases
    before 4.3 have some of them as configs of the broker alone."""

    def value(name: str) -> str:
        if name in configs.definitions.group:
            return configs.group(group_id, name, broker_id).value or ""
        broker_name = f"group.{name}"
        if broker_name in configs.definitions.broker:
            return configs.broker(broker_id, broker_name).value or ""
        return ""

    return ShareTimes(
        lock_ms=int(value("share.record.lock.duration.ms") or _LOCK_MS),
        delivery_limit=int(value("share.delivery.count.limit") or _DELIVERY_LIMIT),
        max_locks=int(value("share.partition.max.record.locks") or _MOST_LOCKS),
        offset_reset=value("share.auto.offset.reset"),
        read_committed=value("share.isolation.level").lower() == "read_committed",
        renews=value("share.renew.acknowledge.enable").lower() != "false",
    )
