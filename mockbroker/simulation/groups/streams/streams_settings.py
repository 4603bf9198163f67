"""The configs that streams groups follow, as values."""

from __future__ import annotations

from typing import Final

import msgspec

from mockbroker.simulation.configs.effective import DEFAULT, EffectiveConfigs
from mockbroker.simulation.groups.modern.group_times import GroupTimes, group_times

__all__ = ["MOST_MEMBERS", "StreamsSettings", "streams_settings"]

MOST_MEMBERS: Final = 10_000
"""Of a group; a heartbeat that would make more is refused as in a full group."""


class StreamsSettings(msgspec.Struct, frozen=True):
    """What the broker and the group have set. ``enabled`` says whether the broker serves streams
    groups at all, ``tags`` are the client tags that members should have."""

    enabled: bool
    max_size: int
    times: GroupTimes
    initial_delay_ms: int = 0
    standbys: int = 0
    tags: tuple[str, ...] = ()
    task_offset_interval_ms: int = 0
    acceptable_recovery_lag: int = -1

    @property
    def assignment_configs(self) -> tuple[tuple[str, str], ...]:
        """Those that the assignor is given: if they change, the group needs another target."""
        configs = {"num.standby.replicas": str(self.standbys)}
        if self.tags:
            configs["rack.aware.assignment.tags"] = ",".join(self.tags)
        return tuple(sorted(configs.items()))


_INITIAL_DELAY: Final = "group.streams.initial.rebalance.delay.ms"


def streams_settings(configs: EffectiveConfigs, group_id: str, broker_id: int) -> StreamsSettings:
    """Read the settings of a group on a broker. Releases without them lack such groups.

    A new group waits for further members only where that is set, unlike Kafka's, which waits three
    seconds. In 4.2 it waits so long if it has configs, whatever a broker's file sets.
    """
    times = group_times(configs, "streams", group_id, broker_id)
    if "group.streams.max.size" not in configs.definitions.broker:
        return StreamsSettings(False, 0, times)

    def words(text: str | None) -> tuple[str, ...]:
        return tuple(word.strip() for word in (text or "").split(",") if word.strip())

    def group(name: str) -> str | None:
        if name not in configs.definitions.group:
            return None
        return configs.group(group_id, name, broker_id).value

    protocols = configs.broker(broker_id, "group.coordinator.rebalance.protocols").value
    delay = configs.group(group_id, "streams.initial.rebalance.delay.ms", broker_id)
    unset = delay.source == DEFAULT and not configs.is_set_statically(_INITIAL_DELAY)
    size = configs.broker(broker_id, "group.streams.max.size").value
    return StreamsSettings(
        enabled="streams" in words(protocols),
        max_size=min(int(size or 0), MOST_MEMBERS),
        times=times,
        initial_delay_ms=0 if unset else int(delay.value or 0),
        standbys=int(group("streams.num.standby.replicas") or 0),
        tags=words(group("streams.rack.aware.assignment.tags")),
        task_offset_interval_ms=int(group("streams.task.offset.interval.ms") or 0),
        acceptable_recovery_lag=int(group("streams.acceptable.recovery.lag") or -1),
    )
