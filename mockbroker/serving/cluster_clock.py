"""The simulated clock of a running cluster: real time, or only what ``advance`` adds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from mockbroker.errors import ClusterError
from mockbroker.serving.suspended_calls import Calls
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.state.timers import Alarm, wall_ms

__all__ = ["ClusterClock"]

_BUSY_RETRY_MS: Final = 10
"""Time stands still while a call waits for ZooKeeper."""


class ClusterClock:
    """``follows_wall``: the simulated time follows real time, and an alarm advances it when a timer
    is due. ``make_alarm`` binds a callback to the event loop."""

    def __init__(
        self,
        cluster: Cluster,
        calls: Calls,
        make_alarm: Callable[[Callable[[], None]], Alarm],
        *,
        follows_wall: bool,
    ) -> None:
        self._cluster = cluster
        self._timers = cluster.timers
        self._calls = calls
        self._follows_wall = follows_wall
        self.skipped_ms = 0
        """What ``advance`` has added to real time."""
        self._alarm = make_alarm(self._due)
        self._alarm_set = False
        if follows_wall:
            self._timers.notify(self._set_alarm)

    def start(self) -> None:
        """Follow real time from now on, which needs a running event loop."""
        if self._follows_wall:
            self.follow()
            self._set_alarm()

    def stop(self) -> None:
        self._alarm.cancel()

    def follow(self) -> None:
        """Bring the simulated time up to real time, unless the clock is manual."""
        if not self._follows_wall or self._calls.busy:
            return
        if not self._timers.pass_until(wall_ms() + self.skipped_ms):
            # A timer is due, and its effects are a step.
            self._calls.spawn(partial(self._cluster.turns.follow, self._now))

    def advance(self, milliseconds: int) -> None:
        """Add to the simulated time. Raises ClusterError for a negative amount."""
        self.follow()
        if milliseconds < 0:
            raise ClusterError(f"time cannot go back by {-milliseconds} ms")
        self._cluster.turns.advance(milliseconds)
        self.skipped_ms += milliseconds
        if self._follows_wall:
            self._set_alarm()

    def _now(self) -> int:
        return wall_ms() + self.skipped_ms

    def _set_alarm(self) -> None:
        due_ms = self._cluster.timers.next_due_ms
        if due_ms is not None or self._alarm_set:
            self._alarm_set = due_ms is not None
            self._alarm.set(None if due_ms is None else due_ms - self._cluster.timers.now_ms)

    def _due(self) -> None:
        if self._calls.busy:
            self._alarm.set(_BUSY_RETRY_MS)
            return
        self.follow()
        self._set_alarm()  # the alarm may ring slightly early
