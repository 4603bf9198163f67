"""Auto-progress: replicas that catch up by themselves, one at each tick of the virtual clock."""

from __future__ import annotations

from mockbroker.errors import ClusterError
from mockbroker.simulation.brokers.brokers import Brokers
from mockbroker.simulation.state.actions import AutoProgressChanged
from mockbroker.simulation.state.cluster_parts import (
    NO_CONTROLLER,
    NO_LEADER,
    Partition,
    TopicPartition,
)
from mockbroker.simulation.state.controller import Controller

__all__ = ["AutoProgress"]


class AutoProgress:
    """Lets replicas catch up by themselves: one replica of the cluster at each tick.

    A tick serves reassignments first, in the order of topics, partitions and replicas, then
    replicas that left an ISR. Ticks are counted from the moment this was switched on.
    """

    def __init__(self, controller: Controller, brokers: Brokers) -> None:
        self._controller = controller
        self._brokers = brokers
        self._timer = controller.timers.timer(self._tick, "auto-progress")

    @property
    def next_tick_ms(self) -> int | None:
        """When the next tick is due on the virtual clock; None when off."""
        return self._timer.due_ms

    def set_interval(self, interval_ms: int | None) -> None:
        """Let one replica join an ISR every ``interval_ms`` from now on; None switches this off."""
        if interval_ms is not None and interval_ms < 1:
            raise ClusterError(
                f"the interval of auto-progress must be 1 ms or more, not {interval_ms} ms"
            )
        with self._controller.turns.step():
            self._controller.record("set_auto_progress", AutoProgressChanged(interval_ms))
            self._timer.set(None if interval_ms is None else self._controller.now_ms + interval_ms)

    def _tick(self) -> None:
        now_ms, interval = self._controller.now_ms, self._controller.state.auto_progress_ms
        assert interval is not None, "the timer is set while auto-progress is on"
        skipped = 0
        if not self._join():
            # The ticks until something else happens would be idle.
            skipped = (self._controller.timers.horizon_ms - now_ms) // interval
        self._timer.set(now_ms + (skipped + 1) * interval)

    def _join(self) -> bool:
        chosen = self._next_to_join()
        if chosen is None or self._controller.state.controller_id == NO_CONTROLLER:
            return False
        self._brokers.join_isr(*chosen, cause="auto_progress")
        return True

    def _next_to_join(self) -> tuple[TopicPartition, int] | None:
        fallback = None
        for name, partition in self._controller.partitions():
            if partition.leader == NO_LEADER or (fallback and not partition.reassigning):
                continue
            for replica in partition.target or partition.replicas:
                if replica not in partition.isr and self._may_join(name, partition, replica):
                    if partition.reassigning:
                        return (name, partition.index), replica
                    fallback = fallback or ((name, partition.index), replica)
        return fallback

    def _may_join(self, name: str, partition: Partition, replica: int) -> bool:
        targets = self._controller.state.known_targets
        tp = (name, partition.index)
        return self._controller.is_served(tp, replica) and targets.fetches(replica, tp, partition)
