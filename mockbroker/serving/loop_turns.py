"""Turns: how long one connection may keep the event loop before others have it.

All connections of a process share one event loop. One read may hold thousands of small requests,
and libuv reads a busy socket up to 32 times in a row. A turn of a connection therefore ends after
``MOST_REQUESTS`` requests or ``MOST_SECONDS``, whichever is first. The rest of what was received
waits in a queue, first in, first out, and the connection is not read from meanwhile. The loop
continues one connection of the queue at a time and polls every socket in between, so that
a connection with little to do waits for about one turn, however long the queue is. Long answers of
the control port are made in the same turns.

A single request is never interrupted. Knows nothing of requests, sockets or HTTP.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final
from weakref import WeakKeyDictionary

__all__ = [
    "LARGE_READ",
    "MOST_REQUESTS",
    "MOST_SECONDS",
    "TaskTurn",
    "Turn",
    "Turns",
    "turns_of_loop",
]

MOST_REQUESTS: Final = 256
"""Requests of one turn."""
MOST_SECONDS: Final = 0.002
"""Seconds of one turn; the request that exceeds them is its last."""

LARGE_READ: Final = 128 * 1024
"""Bytes of a read behind which libuv may read the socket again at once. It does so if the read
filled the buffer, which has 256,000 bytes."""


class Turns:
    """The queue of one event loop. ``clock`` returns seconds and never goes back."""

    def __init__(
        self,
        *,
        most_requests: int = MOST_REQUESTS,
        most_seconds: float = MOST_SECONDS,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.most_requests = most_requests
        self.most_seconds = most_seconds
        self.clock = clock
        self._queue: deque[Turn] = deque()
        self._iteration = 0
        self._counts = False

    def iteration(self) -> int:
        """Return a number that is another one once the loop has left the reads of this
        iteration."""
        if not self._counts:
            self._counts = True
            asyncio.get_running_loop().call_soon(self._count_iteration)
        return self._iteration

    def _count_iteration(self) -> None:
        self._iteration += 1
        self._counts = False

    def enqueue(self, turn: Turn) -> None:
        """Continue ``turn`` after those that wait already."""
        if not self._queue:
            asyncio.get_running_loop().call_soon(self._continue_first)
        self._queue.append(turn)

    def _continue_first(self) -> None:
        turn = self._queue.popleft()
        if self._queue:
            asyncio.get_running_loop().call_soon(self._continue_first)
        turn.resume()


class Turn:
    """The turns of one connection. ``work`` continues with what the connection has received."""

    __slots__ = ("_ends", "_iteration", "_left", "_turns", "_work", "waiting")

    def __init__(self, turns: Turns, work: Callable[[], None]) -> None:
        self._turns = turns
        self._work = work
        self._left = 0
        self._ends = 0.0
        self._iteration = -1
        self.waiting = False
        """Whether the connection is in the queue."""

    def begin(self, received: int = 0) -> None:
        """Begin to count requests and time. ``received`` is the size of the read that begins the
        turn; large reads that follow one another belong to one turn."""
        turns = self._turns
        if received >= LARGE_READ:
            iteration = turns.iteration()
            if iteration == self._iteration:
                return
            self._iteration = iteration
        self._left = turns.most_requests
        self._ends = turns.clock() + turns.most_seconds

    @property
    def requests_left(self) -> int:
        """The number of requests that the turn may still have."""
        return self._left

    def count(self, requests: int) -> None:
        """Count requests besides the one that ``ends`` counts."""
        self._left -= requests

    def over(self) -> bool:
        """Count one request that was worked on. Returns whether the turn is over."""
        self._left -= 1
        return self._left <= 0 or self._turns.clock() >= self._ends

    def ends(self) -> bool:
        """As ``over``; ``work`` is then called again, in the next turn."""
        self._left -= 1
        if self._left > 0 and self._turns.clock() < self._ends:
            return False
        self.wait()
        return True

    def wait(self) -> None:
        """Take another turn, after those that wait already."""
        if not self.waiting:
            self.waiting = True
            self._turns.enqueue(self)

    def resume(self) -> None:
        """Take the turn that the connection waits for. Called by ``Turns``."""
        self.waiting = False
        self._work()


class TaskTurn:
    """The turns of a task that works through much. The first begins at once."""

    __slots__ = ("_next", "_turn")

    def __init__(self) -> None:
        self._turn = Turn(turns_of_loop(), self._resume)
        self._turn.begin()
        self._next: asyncio.Future[None] | None = None

    def over(self) -> bool:
        """Count one piece of work. Returns whether the turn is over."""
        return self._turn.over()

    async def pause(self) -> None:
        """Count one piece of work, and wait for the next turn if this one is over."""
        if self._turn.over():
            await self.next()

    async def next(self) -> None:
        """Wait for the next turn."""
        self._next = asyncio.get_running_loop().create_future()
        self._turn.wait()
        await self._next
        self._turn.begin()

    def _resume(self) -> None:
        if self._next is not None and not self._next.done():  # as when the task was cancelled
            self._next.set_result(None)


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()


def turns_of_loop() -> Turns:
    """Return the turns of the running event loop, which all servers on it share."""
    loop = asyncio.get_running_loop()
    found = _of_loops.get(loop)
    if found is None:
        found = _of_loops[loop] = Turns()
    return found
