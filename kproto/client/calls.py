"""Run calls: choose the broker, retry if that can help, and stop at the deadline.

The callers build requests and interpret responses; this module only knows NOT_CONTROLLER (41) and
broken connections. Each call runs in a task of its own and its outcome is a future. Cancelling the
future ends the call, and ``close`` fails the calls that are left.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from kproto.client.connection import Connection
from kproto.client.deadlines import Backoff, Deadline
from kproto.client.errors import ConnectionClosedError, NotControllerError, RequestTimeoutError
from kproto.client.nodes import Nodes
from kproto.dialects import Dialect
from kproto.schema.versions import Versions

__all__ = ["Attempt", "Calls", "Where"]

T = TypeVar("T")

Where = Callable[[Deadline], Awaitable[Connection]]
"""``Nodes.controller``, ``Nodes.any``, or one broker."""


class Attempt:
    """One attempt of a call: a connection, and the time that remains."""

    def __init__(
        self, connection: Connection, dialect: Dialect, deadline: Deadline, timeout_ms: int
    ) -> None:
        self.dialect = dialect
        self.timeout_ms = timeout_ms
        """The request's own time-out: how long the broker may take."""
        self._connection = connection
        self._deadline = deadline

    def version(self, api_key: int, allowed: Versions | None = None) -> int:
        """Return the highest common version. Raises UnsupportedVersionError."""
        return self._connection.version_for(api_key, allowed)

    def serves(self, api_key: int) -> bool:
        """Whether the broker advertises the API."""
        return api_key in (self._connection.peer_versions or ())

    async def request(self, body: Any, version: int | None = None) -> Any:
        """Send a request and return the response's body; see ``Connection.request``."""
        return await self._connection.request(
            body, version, timeout=self._deadline.response_timeout
        )


class Calls:
    """Runs calls and keeps track of those in progress."""

    def __init__(
        self,
        nodes: Nodes,
        dialect: Dialect,
        *,
        timeout_ms: int,
        backoff_ms: int,
        longest_backoff_ms: int,
        on_failure: Callable[[Exception], Awaitable[None]],
    ) -> None:
        """``on_failure`` is called with each error before another attempt; what it raises ends the
        call."""
        self._nodes = nodes
        self._dialect = dialect
        self._timeout_ms = timeout_ms
        self._backoff = (backoff_ms, longest_backoff_ms)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False
        self._on_failure = on_failure

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Run ``work``; cancelling the future cancels it. The event loop does not report its error
        as never retrieved, since other futures of the same call carry it too."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if self._closed:
            work.close()
            future.set_exception(ConnectionClosedError("the client was closed"))
            future.exception()
            return future
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._settle(done, future))
        future.add_done_callback(lambda done: _look(done, task))
        return future

    def _settle(self, task: asyncio.Task[T], future: asyncio.Future[T]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            if not future.done():
                future.set_exception(ConnectionClosedError("the client was closed"))
            return
        error = task.exception()
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(task.result())

    async def run(
        self, where: Where, attempt: Callable[[Attempt], Awaitable[T]], timeout_ms: int | None
    ) -> T:
        """Attempt a call until it has a final response or the time has passed.

        ``timeout_ms`` None is the client's default. The first request carries the time-out
        unchanged, later ones what remains of it. Raises what ``attempt`` raises. When the time has
        passed, raises NotControllerError if that was the last response, otherwise
        RequestTimeoutError.
        """
        allowed = self._timeout_ms if timeout_ms is None else timeout_ms
        deadline = Deadline(allowed)
        backoff = Backoff(*self._backoff)
        wire_timeout = allowed
        while True:
            try:
                connection = await where(deadline)
                return await attempt(Attempt(connection, self._dialect, deadline, wire_timeout))
            except ssl.SSLError:
                # Retrying does not help with certificates.
                raise
            except (NotControllerError, OSError) as error:
                self._nodes.forget()
                pause = backoff.next()
                if pause >= deadline.remaining:
                    if isinstance(error, NotControllerError | RequestTimeoutError):
                        raise
                    text = f"no success within {allowed} ms: {error}"
                    raise RequestTimeoutError(text) from error
                await self._on_failure(error)
            await asyncio.sleep(pause)
            wire_timeout = deadline.remaining_ms

    async def close(self) -> None:
        """Fail all calls in progress and close all connections."""
        self._closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._nodes.close()


def _look(future: asyncio.Future[Any], task: asyncio.Task[Any]) -> None:
    if future.cancelled():
        task.cancel()
    else:
        future.exception()
