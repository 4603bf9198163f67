"""A mock cluster on a thread of its own, for programs that have no event loop to spare: tests of
blocking clients, and of asyncio ones that must not share a loop with the cluster.

Knows nothing of what a cluster can do: every method and property of ``MockCluster`` is there.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Final, Self

from mockbroker.mock_cluster import MockCluster

__all__ = ["ThreadedCluster"]

_STOP_SECONDS: Final = 30.0


class ThreadedCluster:
    """``MockCluster`` by the same arguments, for any thread::

        with ThreadedCluster(topics=["foo=1,2,3"], brokers=6) as mock:
            admin = KafkaAdminClient(bootstrap_servers=mock.bootstrap)
            ...
            mock.join_isr("foo-0", 4)

    Methods run on the cluster's own thread and come back when they are done, those that are
    coroutines of ``MockCluster`` as well. ``aio`` has the same ones to be awaited, so that a wait
    does not stop the caller's event loop. An error that the cluster raises is raised here.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._arguments, self._options = arguments, options
        self._cluster: MockCluster | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.aio: Final = _Awaited(self)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def cluster(self) -> MockCluster:
        """The cluster itself, which belongs to its thread. Raises RuntimeError before ``start``."""
        if self._cluster is None:
            raise RuntimeError("the cluster is not started")
        return self._cluster

    def start(self) -> None:
        """On return clients can connect. Raises what ``MockCluster`` does."""
        if self._thread is not None:
            raise RuntimeError("the cluster was started before")
        loop = self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_run, args=(loop,), name="mock-kafka", daemon=True)
        self._thread.start()
        try:
            self._cluster = self.submit(self._started()).result()
        except BaseException:
            self.stop()
            raise

    async def _started(self) -> MockCluster:
        cluster = MockCluster(*self._arguments, **self._options)
        await cluster.start()
        return cluster

    def stop(self) -> None:
        """Close every listener and connection, and end the thread. Twice does no harm."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None or not thread.is_alive():
            return
        try:
            if self._cluster is not None:
                self.submit(self._cluster.stop()).result(_STOP_SECONDS)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(_STOP_SECONDS)

    def submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Run a coroutine on the cluster's thread."""
        if self._loop is None or self._loop.is_closed():
            work.close()
            raise RuntimeError("the cluster is not running")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def __getattr__(self, name: str) -> Any:
        """What ``MockCluster`` has: its methods wrapped, its properties as they are now."""
        if name.startswith("_"):
            raise AttributeError(name)
        kind = getattr(MockCluster, name, None)
        if callable(kind):

            def call(*arguments: Any, **options: Any) -> Any:
                return self.submit(self._called(name, arguments, options)).result()

            call.__name__, call.__doc__ = name, kind.__doc__
            return call
        return self.submit(self._read(name)).result()

    async def _read(self, name: str) -> Any:
        return getattr(self.cluster, name)

    async def _called(self, name: str, arguments: Any, options: Any) -> Any:
        return await self.cluster.take(getattr(self.cluster, name), *arguments, **options)


class _Awaited:
    """The same methods, for a caller with an event loop."""

    def __init__(self, threaded: ThreadedCluster) -> None:
        self._threaded = threaded

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("_") or not callable(getattr(MockCluster, name, None)):
            raise AttributeError(f"MockCluster has no method {name!r}")

        def call(*arguments: Any, **options: Any) -> Awaitable[Any]:
            work = self._threaded._called(name, arguments, options)
            return asyncio.wrap_future(self._threaded.submit(work))

        return call


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        # What the cluster left behind: connections being closed.
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
