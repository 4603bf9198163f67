"""Calls on a cluster that wait for ZooKeeper without blocking the event loop.

A cluster is plain functions over a ``ZnodeStore``. With a real ZooKeeper each access is a round
trip of unknown duration. Therefore each call runs in a greenlet, which is suspended while the
store waits. Calls that change the cluster take turns, first come, first served, like the
events of Kafka's controller (``controller-event-thread``). Calls that only read do not wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from kproto.errors import KprotoError, MissingExtraError
from mockbroker.errors import ClusterError, NotControllerError

if TYPE_CHECKING:
    from greenlet import greenlet

__all__ = ["Calls", "SuspendedCalls"]

_log = logging.getLogger("mockbroker")

P = ParamSpec("P")
T = TypeVar("T")


class Calls:
    """The calls on a cluster whose znodes, if any, are in this process: none waits."""

    def start(
        self, call: Callable[P, T], *arguments: P.args, **options: P.kwargs
    ) -> T | Awaitable[T]:
        """Start a call; return its result, or an awaitable of it."""
        return call(*arguments, **options)

    def spawn(self, call: Callable[[], object]) -> None:
        """Start a call in the background, and log its error."""
        try:
            done = self.start(call)
        except KprotoError as error:
            _log.error("%s", error)
            return
        if isinstance(done, asyncio.Future):
            done.add_done_callback(_log_failure)

    async def run(self, call: Callable[[], T]) -> T:
        done = self.start(call)
        return await done if isinstance(done, asyncio.Future) else cast(T, done)

    @property
    def busy(self) -> bool:
        """Whether a call other than the caller's is suspended in its turn."""
        return False

    def turn(
        self, *, by_controller: bool = False, first: bool = False
    ) -> AbstractContextManager[None]:
        """Enclose a change of the cluster. ``first``: before the calls that already wait.
        ``by_controller``: raises NotControllerError if the controller resigns meanwhile."""
        return contextlib.nullcontext()

    def preempt(self) -> None:
        """The controller has resigned: fail the calls that wait for it."""

    def bind(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Set the event loop on which calls are suspended; None ends those that are."""


class SuspendedCalls(Calls):
    """The calls on a cluster on a real ZooKeeper. Needs greenlet (extra ``mock``)."""

    def __init__(self) -> None:
        try:
            import greenlet
        except ImportError:
            raise MissingExtraError(
                "a cluster on a ZooKeeper server needs greenlet", extra="mock"
            ) from None
        self._greenlets = greenlet
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begun: dict[greenlet, asyncio.Future[Any]] = {}
        self._owner: greenlet | None = None
        self._waiting: deque[tuple[asyncio.Future[None], bool]] = deque()

    def bind(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._loop = loop
        if loop is None:
            begun, self._begun = self._begun, {}
            for task, outcome in begun.items():
                task.throw(self._greenlets.GreenletExit)
                if not outcome.done():
                    outcome.set_exception(ClusterError("the cluster has stopped"))

    # ---- start, suspend, resume -----------------------------------------------------

    def start(
        self, call: Callable[P, T], *arguments: P.args, **options: P.kwargs
    ) -> T | Awaitable[T]:
        if self._loop is None or self._current() is not None:
            return call(*arguments, **options)
        outcome: asyncio.Future[T] = self._loop.create_future()
        task = self._greenlets.greenlet(call)
        task.gr_context = contextvars.copy_context()
        self._begun[task] = outcome
        try:
            waited = task.switch(*arguments, **options)
        finally:
            if task.dead:
                del self._begun[task]
        if task.dead:
            return cast(T, waited)
        self._resume_after(waited, task)
        return outcome

    def _resume_after(self, waited: asyncio.Future[None], task: greenlet) -> None:
        waited.add_done_callback(lambda _: self._resume(task))

    def _resume(self, task: greenlet) -> None:
        """Resume the call, even if its outcome was cancelled."""
        if task.dead:
            return
        outcome = self._begun[task]
        try:
            waited = task.switch()
        except Exception as error:
            del self._begun[task]
            if not outcome.done():
                outcome.set_exception(error)
            return
        if not task.dead:
            return self._resume_after(waited, task)
        del self._begun[task]
        if not outcome.done():
            outcome.set_result(waited)

    def _current(self) -> greenlet | None:
        """The call that is running, None outside of such calls."""
        current = self._greenlets.getcurrent()
        return current if current in self._begun else None

    def suspend(self, register: Callable[[Callable[[], None]], object]) -> bool:
        """For ``KazooStore``: suspend the running call until the registered callback is
        called, on any thread. Returns False outside of such calls: then the caller has to block."""
        loop = self._loop
        if loop is None or self._current() is None:
            return False
        done: asyncio.Future[None] = loop.create_future()

        def finish() -> None:
            if not done.done():
                done.set_result(None)

        def called() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(finish)

        register(called)
        self._suspend_until(done)
        return True

    def _suspend_until(self, done: asyncio.Future[None]) -> None:
        parent = self._greenlets.getcurrent().parent
        assert parent is not None, "a call runs in a greenlet of its own"
        parent.switch(done)

    # ---- turns -------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        return self._owner is not None and self._owner is not self._current()

    @contextlib.contextmanager
    def turn(self, *, by_controller: bool = False, first: bool = False) -> Iterator[None]:
        current = self._greenlets.getcurrent()
        if self._owner is current:
            yield
            return
        if self._owner is not None:
            self._wait_for_turn(by_controller, first)
        self._owner = current
        try:
            yield
        finally:
            self._owner = None
            self._next_turn()

    def _wait_for_turn(self, by_controller: bool, first: bool) -> None:
        if self._loop is None or self._current() is None:
            raise ClusterError(
                "the cluster waits for ZooKeeper; use `await mock.take(step, ...)` to wait for it"
            )
        turn: asyncio.Future[None] = self._loop.create_future()
        if first:
            self._waiting.appendleft((turn, by_controller))
        else:
            self._waiting.append((turn, by_controller))
        self._suspend_until(turn)
        turn.result()

    def _next_turn(self) -> None:
        while self._waiting:
            turn, _ = self._waiting.popleft()
            if not turn.done():
                # Until the greenlet is resumed, no other may take the turn.
                self._owner = _NO_OWNER
                turn.set_result(None)
                return

    def preempt(self) -> None:
        for turn, by_controller in list(self._waiting):
            if by_controller and not turn.done():
                turn.set_exception(NotControllerError("the controller has resigned"))
        self._waiting = deque(each for each in self._waiting if not each[0].done())


_NO_OWNER: Any = object()


def _log_failure(done: asyncio.Future[Any]) -> None:
    error = None if done.cancelled() else done.exception()
    if isinstance(error, KprotoError):
        _log.error("%s", error)
    elif error is not None:
        _log.error("a call on the cluster failed", exc_info=error)
