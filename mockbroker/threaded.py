"""A mock cluster on its own thread, for tests of blocking clients, and of asyncio clients that must
not share an event loop with the cluster.

Every method and property of ``MockCluster`` is forwarded; none is listed here.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Final, Self

from mockbroker.cluster_options import ClusterOptions, takes_cluster_options
from mockbroker.mock_cluster import MockCluster

__all__ = ["ThreadedCluster"]

_STOP_SECONDS: Final = 30.0


class ThreadedCluster:
    """A ``MockCluster`` with the same arguments, usable from any thread::

        with ThreadedCluster(topics=["foo=1,2,3"], brokers=6) as mock:
            admin = KafkaAdminClient(bootstrap_servers=mock.bootstrap)
            ...
            mock.join_isr("foo-0", 4)

    Methods run on the cluster's thread and return when they are done, including the coroutines of
    ``MockCluster``. ``aio`` has the same methods as coroutines, which do not block the caller's
    event loop. Errors of the cluster are raised in the caller.
    """

    @takes_cluster_options
    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._set_up(ClusterOptions(*arguments, **options))

    @classmethod
    def from_options(cls, options: ClusterOptions) -> Self:
        """A cluster with these options."""
        made = cls.__new__(cls)
        made._set_up(options)
        return made

    def _set_up(self, options: ClusterOptions) -> None:
        self.options = options
        self._cluster: MockCluster | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.aio = _Coroutines(self)

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
        """The cluster itself, for use on its own thread. Raises RuntimeError before ``start``."""
        if self._cluster is None:
            raise RuntimeError("the cluster is not started")
        return self._cluster

    def start(self) -> None:
        """Once this returns, clients can connect. Raises the errors of ``MockCluster``."""
        if self._thread is not None:
            raise RuntimeError("the cluster has been started before")
        loop = self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_run, args=(loop,), name="mock-kafka", daemon=True)
        self._thread.start()
        try:
            self._cluster = self.submit(self._start_cluster()).result()
        except BaseException:
            self.stop()
            raise

    async def _start_cluster(self) -> MockCluster:
        cluster = MockCluster.from_options(self.options)
        await cluster.start()
        return cluster

    def stop(self) -> None:
        """Close every listener and connection, and end the thread. Stopping twice is harmless."""
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
        """A method of ``MockCluster``, wrapped, or the current value of a property."""
        if name.startswith("_"):
            raise AttributeError(name)
        kind = getattr(MockCluster, name, None)
        if callable(kind):

            def call(*arguments: Any, **options: Any) -> Any:
                return self.submit(self._call(name, arguments, options)).result()

            call.__name__, call.__doc__ = name, kind.__doc__
            return call
        return self.submit(self._read(name)).result()

    async def _read(self, name: str) -> Any:
        return getattr(self.cluster, name)

    async def _call(self, name: str, arguments: Any, options: Any) -> Any:
        return await self.cluster.take(getattr(self.cluster, name), *arguments, **options)


class _Coroutines:
    """The methods of the cluster as coroutines."""

    def __init__(self, threaded: ThreadedCluster) -> None:
        self._threaded = threaded

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("_") or not callable(getattr(MockCluster, name, None)):
            raise AttributeError(f"MockCluster has no method {name!r}")

        def call(*arguments: Any, **options: Any) -> Awaitable[Any]:
            work = self._threaded._call(name, arguments, options)
            return asyncio.wrap_future(self._threaded.submit(work))

        return call


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        # Connections may still be closing.
        pending = asyncio.all_tasks(loop)
        for task in pending:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
