"""The simulated clock of a running cluster: real time, or only what ``advance`` adds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mockbroker.cluster import Cluster
from mockbroker.errors import ClusterError
from mockbroker.serving.operations import Operations
from mockbroker.timers import Alarm, wall_ms

__all__ = ["ClusterClock"]


class ClusterClock:
    """``follows_wall``: the simulated time follows real time, with a tick at each interval of
    auto-progress. ``make_alarm`` binds a callback to the event loop."""

    def __init__(
        self,
        cluster: Cluster,
        operations: Operations,
        make_alarm: Callable[[Callable[[], None]], Alarm],
        *,
        follows_wall: bool,
        auto_progress_ms: int | None,
    ) -> None:
        self._cluster = cluster
        self._operations = operations
        self._follows_wall = follows_wall
        self._auto_progress_ms = auto_progress_ms
        self._skipped_ms = 0
        self._tick_alarm = make_alarm(self._tick)
        self._due_alarm = make_alarm(self._due)
        if follows_wall:
            cluster.when_due = self._set_due

    def start_ticking(self) -> None:
        """Follow real time at each interval of auto-progress from now on."""
        if self._follows_wall:
            self._tick_alarm.set(self._auto_progress_ms)

    def stop(self) -> None:
        self._tick_alarm.cancel()
        self._due_alarm.cancel()

    def follow(self) -> None:
        """Bring the simulated time up to real time, unless the clock is manual."""
        behind = self._follows_wall and self._now() > self._cluster.now_ms
        if behind and not self._operations.busy:
            self._operations.spawn(partial(self._cluster.follow, self._now))

    def advance(self, milliseconds: int) -> None:
        """Add to the simulated time. Raises ClusterError for a negative amount."""
        self.follow()
        if milliseconds < 0:
            raise ClusterError(f"time cannot go back by {-milliseconds} ms")
        self._cluster.advance(milliseconds)
        self._skipped_ms += milliseconds

    def _now(self) -> int:
        return wall_ms() + self._skipped_ms

    def _set_due(self, due_ms: int | None) -> None:
        self._due_alarm.set(None if due_ms is None else due_ms - self._cluster.now_ms)

    def _due(self) -> None:
        self.follow()
        # Timers may fire slightly early.
        self._set_due(self._cluster.next_due_ms)

    def _tick(self) -> None:
        self.follow()
        self.start_ticking()
