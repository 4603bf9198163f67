"""The times that configs of a group (resource type 32) may set."""

from __future__ import annotations

import msgspec

from mockbroker.simulation.configs.effective import EffectiveConfigs

__all__ = ["GroupTimes", "group_times"]


class GroupTimes(msgspec.Struct, frozen=True):
    """In milliseconds. 0 stands for a config that the release does not have."""

    session_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


def group_times(configs: EffectiveConfigs, kind: str, group_id: str, broker_id: int) -> GroupTimes:
    """Read the times of a group of this kind (``consumer``): its own configs, else those of the
    broker."""

    def milliseconds(name: str) -> int:
        name = f"{kind}.{name}"
        if name not in configs.definitions.group:
            return 0
        return int(configs.group(group_id, name, broker_id).value or 0)

    return GroupTimes(
        session_ms=milliseconds("session.timeout.ms"),
        heartbeat_interval_ms=milliseconds("heartbeat.interval.ms"),
        assignment_interval_ms=milliseconds("assignment.interval.ms"),
    )
