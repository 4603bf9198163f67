"""Timers on the virtual clock, and real time for those who must not know an event loop.

``Timers`` is the clock of a cluster and one heap of what is due on it. ``advance`` and, where the
clock follows real time, an ``Alarm`` on the event loop run it.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

__all__ = ["Alarm", "Later", "Timer", "Timers", "sleep", "wait_for_call", "wall_ms"]

ResultT = TypeVar("ResultT")

_MOST_REPLACED = 1000

_EPOCH_AT_START_MS = (time.time_ns() - time.monotonic_ns()) // 1_000_000


class Timer:
    """Calls a function when its time has come. ``Timers.timer`` makes one, not set yet."""

    __slots__ = ("_call", "_timers", "due_ms", "name", "number")

    def __init__(self, timers: Timers, call: Callable[[], None], name: str = "") -> None:
        self._timers = timers
        self._call = call
        self.name = name
        """What it is for, as testers read it."""
        self.due_ms: int | None = None
        """The time at which the function is called; None if the timer is not set."""
        self.number = -1
        """Of the heap's entry that counts: earlier ones have been replaced."""

    def set(self, due_ms: int | None) -> None:
        """Call the function once, at this time instead of the time set before; None: never. A time
        that has passed is due at once, in the next ``run_until``."""
        if due_ms != self.due_ms:
            self.due_ms = due_ms
            self._timers.schedule(self)

    def fire(self) -> None:
        self.due_ms, self.number = None, -1
        self._call()


class Timers:
    """A virtual clock, in milliseconds, and the timers that are set on it.

    Timers of the same time run in the order in which they were set.
    """

    def __init__(self, now_ms: int = 0) -> None:
        self.now_ms = now_ms
        self._on_change: Callable[[], None] = lambda: None
        self._running = False
        self._end_ms = now_ms
        self._heap: list[tuple[int, int, Timer]] = []
        self._replaced = 0
        """How many entries of the heap no longer count."""
        self._numbers = itertools.count()

    def notify(self, call: Callable[[], None]) -> None:
        """Call ``call``, and no earlier one, when the next timer may have changed: after one was
        set, or after ``run_until`` has run some."""
        self._on_change = call

    def timer(self, call: Callable[[], None], name: str = "") -> Timer:
        """A timer that is not set yet."""
        return Timer(self, call, name)

    def pending(self) -> list[tuple[int, str]]:
        """The times at which timers are due, with the timers' names, in order."""
        heap = sorted(
            (*entry[:2], entry[2].name) for entry in self._heap if entry[1] == entry[2].number
        )
        return [(due_ms, name) for due_ms, _, name in heap]

    def schedule(self, timer: Timer) -> None:
        """For ``Timer.set``: replace the timer's entry in the heap."""
        if timer.number >= 0:
            self._replaced += 1
        timer.number = -1
        if timer.due_ms is not None:
            timer.number = next(self._numbers)
            heapq.heappush(self._heap, (timer.due_ms, timer.number, timer))
        if self._replaced > _MOST_REPLACED and self._replaced > len(self._heap) // 2:
            self._sweep()
        if not self._running:
            self._on_change()

    def _sweep(self) -> None:
        """Drop the entries that no longer count, so that timers that are set and stopped over and
        over take no memory until they would have been due."""
        self._heap = [entry for entry in self._heap if entry[1] == entry[2].number]
        heapq.heapify(self._heap)
        self._replaced = 0

    @property
    def next_due_ms(self) -> int | None:
        """When the next timer is due; None if none is set."""
        heap = self._heap
        while heap and heap[0][1] != heap[0][2].number:
            heapq.heappop(heap)
            self._replaced -= 1
        return heap[0][0] if heap else None

    @property
    def horizon_ms(self) -> int:
        """While a timer runs: until when no other timer will change anything."""
        due = self.next_due_ms
        return self._end_ms if due is None else min(self._end_ms, due)

    def pass_until(self, end_ms: int) -> bool:
        """Let time pass until then, unless a timer is due before. Returns whether it has."""
        if self._heap:
            due = self.next_due_ms
            if due is not None and due <= end_ms:
                return False
        if self.now_ms < end_ms:
            self.now_ms = end_ms
        return True

    def run_until(self, end_ms: int) -> None:
        """Let time pass until then. Each timer that falls due runs at its own time, in order, those
        among them that others set meanwhile."""
        if self.pass_until(end_ms):
            return
        self._end_ms, self._running = end_ms, True
        try:
            while (due := self.next_due_ms) is not None and due <= end_ms:
                _, _, timer = heapq.heappop(self._heap)
                self.now_ms = max(self.now_ms, due)
                timer.fire()
            self.now_ms = max(self.now_ms, end_ms)
        finally:
            self._running = False
            self._on_change()


class Alarm:
    """Calls ``ring`` once, at the time set last, on the event loop that ``loop`` returns. If there
    is no loop it is never called."""

    def __init__(
        self, loop: Callable[[], asyncio.AbstractEventLoop | None], ring: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None

    def set(self, milliseconds: int | None) -> None:
        """Ring after this many milliseconds, and not at the time set before; None: never."""
        self.cancel()
        loop = self._loop()
        if milliseconds is not None and loop is not None:
            self._timer = loop.call_later(max(milliseconds, 0) / 1000, self._ring)

    def cancel(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()


def wall_ms() -> int:
    """Real time that never goes back, in milliseconds since the Unix epoch."""
    return _EPOCH_AT_START_MS + time.monotonic_ns() // 1_000_000


async def sleep(seconds: float) -> None:
    """Wait in real time; the cluster's clock is not touched."""
    await asyncio.sleep(seconds)


async def wait_for_call(
    register: Callable[[Callable[[], None]], None],
    timeout_ms: int | None = None,
    timers: Timers | None = None,
) -> bool:
    """Wait until the function that is given to ``register`` is called, on this thread, or until
    ``timeout_ms`` have passed: of real time, or by the clock of ``timers``. Returns whether it was
    called. Calls after the first have no effect."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[bool] = loop.create_future()

    def finish(called: bool) -> None:
        if not done.done():
            done.set_result(called)

    register(lambda: finish(True))
    if timeout_ms is None or done.done():
        return await done
    if timers is not None:
        timer = timers.timer(lambda: finish(False), "a request that waits")
        timer.set(timers.now_ms + timeout_ms)
        try:
            return await done
        finally:
            timer.set(None)
    expiry = loop.call_later(timeout_ms / 1000, finish, False)
    try:
        return await done
    finally:
        expiry.cancel()


class Later(Generic[ResultT]):
    """An awaitable that starts when it is awaited. Unlike a coroutine it may also be dropped."""

    __slots__ = ("_start",)

    def __init__(self, start: Callable[[], Coroutine[Any, Any, ResultT]]) -> None:
        self._start = start

    def __await__(self) -> Generator[Any, None, ResultT]:
        return self._start().__await__()
