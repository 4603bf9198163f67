"""Retention that runs by itself, at an interval of the virtual clock."""

from __future__ import annotations

from mockbroker.errors import ClusterError
from mockbroker.simulation.log.cleaning.cleaner import apply_retention
from mockbroker.simulation.log.logs import Logs
from mockbroker.simulation.state.controller import Controller

__all__ = ["AutoRetention"]


class AutoRetention:
    """Applies retention to all logs every ``interval_ms``, as a broker does every
    ``log.retention.check.interval.ms``."""

    def __init__(self, controller: Controller, logs: Logs, interval_ms: int) -> None:
        if interval_ms < 1:
            raise ClusterError(
                f"the interval of auto-retention must be 1 ms or more, not {interval_ms} ms"
            )
        self._controller = controller
        self._logs = logs
        self._interval_ms = interval_ms
        self._timer = controller.timers.timer(self._tick, "auto-retention")
        self._timer.set(controller.now_ms + interval_ms)

    def _tick(self) -> None:
        now_ms = self._controller.now_ms
        apply_retention(self._logs, None, now_ms, cause="auto_retention")
        self._timer.set(now_ms + self._interval_ms)
