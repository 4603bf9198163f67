"""Preferred replicas that become leaders by themselves (``auto.leader.rebalance.enable``)."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from mockbroker.simulation.configs.effective import EffectiveConfigs
from mockbroker.simulation.elections.elect import PREFERRED, LeaderElections
from mockbroker.simulation.state.cluster_parts import NO_CONTROLLER, PartitionsByTopic
from mockbroker.simulation.state.controller import Controller

__all__ = ["AutoRebalance"]

_ENABLED: Final = "auto.leader.rebalance.enable"
_INTERVAL: Final = "leader.imbalance.check.interval.seconds"
_PERCENTAGE: Final = "leader.imbalance.per.broker.percentage"


class AutoRebalance:
    """Elects preferred leaders every ``leader.imbalance.check.interval.seconds`` of the virtual
    clock, for a controller whose properties file enables it.

    KRaft elects them for every partition that another replica leads. A controller that uses
    ZooKeeper does so for brokers that do not lead more than
    ``leader.imbalance.per.broker.percentage`` of the partitions whose preferred replica they have.
    """

    def __init__(
        self, controller: Controller, configs: EffectiveConfigs, elections: LeaderElections
    ) -> None:
        self._controller = controller
        self._configs = configs
        self._elections = elections
        self._interval_ms = 1000 * max(int(configs.controller_value(_INTERVAL)), 1)
        self._timer = controller.timers.timer(self._tick, "auto-rebalance")
        self._timer.set(controller.now_ms + self._interval_ms)

    def _tick(self) -> None:
        now_ms, controller_id = self._controller.now_ms, self._controller.state.controller_id
        skipped = 0
        enabled = (self._configs.value_set(controller_id, _ENABLED) or "").lower() == "true"
        imbalanced = self._imbalanced() if enabled and controller_id != NO_CONTROLLER else []
        if imbalanced:
            self._elections.elect(PREFERRED, imbalanced, everything=True, cause="auto_rebalance")
        else:
            # The ticks until something else happens would be idle.
            skipped = (self._controller.timers.horizon_ms - now_ms) // self._interval_ms
        self._timer.set(now_ms + (skipped + 1) * self._interval_ms)

    def _imbalanced(self) -> PartitionsByTopic:
        owned: dict[int, int] = defaultdict(int)
        led_by_others: dict[int, list[tuple[str, int]]] = defaultdict(list)
        for name, partition in self._controller.partitions():
            preferred = partition.replicas[0]
            owned[preferred] += 1
            if partition.leader != preferred and preferred in partition.isr:
                led_by_others[preferred].append((name, partition.index))
        chosen: dict[str, list[int]] = defaultdict(list)
        for preferred, partitions in led_by_others.items():
            allowed = self._percentage() * owned[preferred]
            if not self._controller.keeps_znodes or 100 * len(partitions) > allowed:
                for name, index in partitions:
                    chosen[name].append(index)
        return sorted(chosen.items())

    def _percentage(self) -> int:
        return int(self._configs.controller_value(_PERCENTAGE))
