"""The session of a member: its group forgets it unless it sends a request in time."""

from __future__ import annotations

from collections.abc import Callable

from mockbroker.simulation.state.timers import Timer, Timers

__all__ = ["Session"]


class Session:
    """A deadline that requests push back. Its timer runs at the deadline set first and then at the
    next one, so that a heartbeat costs no entry in the heap of timers."""

    __slots__ = ("_end", "_name", "_timer", "_timers", "deadline_ms")

    def __init__(self, timers: Timers, end: Callable[[], None], name: str = "") -> None:
        self._timers = timers
        self._end = end
        self._name = name
        self._timer: Timer | None = None
        self.deadline_ms: int | None = None
        """When the session ends; None if it does not run."""

    def renew(self, timeout_ms: int) -> None:
        """Let the session end after this time, unless it is renewed before."""
        self.deadline_ms = self._timers.now_ms + timeout_ms
        if self._timer is None:
            self._timer = self._timers.timer(self._due, self._name)
        if self._timer.due_ms is None or self._timer.due_ms > self.deadline_ms:
            self._timer.set(self.deadline_ms)

    def stop(self) -> None:
        """Never end."""
        self.deadline_ms = None
        if self._timer is not None:
            self._timer.set(None)
            self._timer = None

    def _due(self) -> None:
        assert self._timer is not None
        if self.deadline_ms is not None and self.deadline_ms > self._timers.now_ms:
            self._timer.set(self.deadline_ms)
        elif self.deadline_ms is not None:
            self.deadline_ms = None
            self._end()
