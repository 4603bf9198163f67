"""Held replicas that leave the ISR by themselves, as ``replica.lag.time.max.ms`` says."""

from __future__ import annotations

from typing import Final

from mockbroker.simulation.brokers.brokers import Brokers
from mockbroker.simulation.configs.effective import EffectiveConfigs
from mockbroker.simulation.log.logs import Logs
from mockbroker.simulation.state.cluster_parts import NO_CONTROLLER, TopicPartition
from mockbroker.simulation.state.controller import Controller

__all__ = ["LaggingReplicas"]

_LAG: Final = "replica.lag.time.max.ms"


class LaggingReplicas:
    """Removes held followers from the ISR that have lacked records for the time that their leader's
    properties file sets. As in Kafka, this is checked twice in that time."""

    def __init__(
        self, controller: Controller, configs: EffectiveConfigs, logs: Logs, brokers: Brokers
    ) -> None:
        self._controller = controller
        self._configs = configs
        self._logs = logs
        self._brokers = brokers
        self._lagging: dict[tuple[TopicPartition, int], int] = {}
        """Since when a replica lacks records."""
        self._timer = controller.timers.timer(self._tick, "replica-lag")
        logs.on_held.append(self._start)

    def _start(self) -> None:
        if self._timer.due_ms is None:
            self._timer.set(self._controller.now_ms + self._interval_ms())

    def _interval_ms(self) -> int:
        brokers = self._controller.state.brokers
        return max(min(filter(None, map(self._most_ms, brokers)), default=1000) // 2, 1)

    def _most_ms(self, broker_id: int) -> int | None:
        text = self._configs.value_set(broker_id, _LAG)
        return None if text is None else int(text)

    def _tick(self) -> None:
        now_ms, held = self._controller.now_ms, False
        for name, partition in list(self._controller.partitions()):
            tp = (name, partition.index)
            replication = self._logs.data(tp).replication
            most_ms = self._most_ms(partition.leader)
            for broker_id in sorted(replication.held):
                held = True
                lacks = replication.lacks_records(broker_id, partition)
                if not lacks or most_ms is None or broker_id not in partition.isr:
                    self._lagging.pop((tp, broker_id), None)
                elif (
                    now_ms - self._lagging.setdefault((tp, broker_id), now_ms) >= most_ms
                    and len(partition.isr) > 1
                    and self._controller.state.controller_id != NO_CONTROLLER
                ):
                    partition = self._brokers.leave_isr(tp, broker_id, cause="replica_lag")
        if held:
            self._timer.set(now_ms + self._interval_ms())
