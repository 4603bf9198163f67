"""The object behind the fixture ``mock_kafka``: a cluster on its own thread, with assertions on the
requests of its clients."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any, Protocol, Unpack, overload

from mockbroker.options import ClusterOptions, takes_cluster_options
from mockbroker.running.recorded_requests import (
    ApiChoice,
    M,
    RecordedRequests,
    Request,
    RequestFilters,
    named,
)
from mockbroker.running.threaded import AsyncMethods, ThreadedCluster

__all__ = ["AsyncMockKafka", "MockKafka", "MockKafkaFactory"]


class MockKafka(ThreadedCluster, RecordedRequests):
    """A ``MockCluster`` for any thread, with assertions on its clients' requests::

    def test_reassignment(mock_kafka):
        admin = KafkaAdminClient(bootstrap_servers=mock_kafka.bootstrap)
        ...
        mock_kafka.assert_requested("AlterPartitionReassignments", times=1, version=0)
    """

    def _set_up(self, options: ClusterOptions) -> None:
        journal = options.new_journal() if options.journal is None else options.journal
        ThreadedCluster._set_up(self, replace(options, journal=journal))
        RecordedRequests.__init__(self, journal, lambda: self.dialect)

    @property
    def aio(self) -> AsyncMockKafka:
        """The same methods as coroutines, and ``wait_for``."""
        return AsyncMockKafka(self)

    @overload
    def wait_for(
        self, api: type[M], *, timeout: float = 10.0, **filters: Unpack[RequestFilters]
    ) -> Request[M]: ...
    @overload
    def wait_for(
        self,
        api: int | str | None = None,
        *,
        timeout: float = 10.0,
        **filters: Unpack[RequestFilters],
    ) -> Request[Any]: ...
    def wait_for(
        self,
        api: ApiChoice | None = None,
        *,
        timeout: float = 10.0,
        **filters: Unpack[RequestFilters],
    ) -> Request[Any]:
        """Return the first recorded request of this API (of any, without one), and wait for it if
        there is none yet. ``after=mock_kafka.journal.last_sequence`` waits for a new one. Raises
        AssertionError with the journal after ``timeout`` seconds.

        This blocks the thread; a test on an event loop awaits ``aio.wait_for``.
        """
        return self.submit(self._wait_for(api, timeout, filters)).result()

    async def _wait_for(
        self, api: ApiChoice | None, timeout: float, filters: RequestFilters
    ) -> Request[Any]:
        """Runs on the cluster's thread."""
        loop, recorded = asyncio.get_running_loop(), asyncio.Event()
        journal, seen = self.journal, filters.pop("after", 0)
        # A journal may be shared with clusters on other threads.
        with journal.listening(lambda: loop.call_soon_threadsafe(recorded.set)):
            try:
                async with asyncio.timeout(timeout):
                    while True:
                        new, seen = journal.newer(seen), max(seen, journal.last_sequence)
                        for request in self._select(new, api, filters):
                            return request
                        await recorded.wait()
                        recorded.clear()
            except TimeoutError:
                requested = "request" if api is None else f"{named(api)} request"
                self._fail(f"no {requested} within {timeout} s")

    def journal_text(self, most: int | None = None, *, after: int = 0) -> str:
        """The newest ``most`` entries of the journal that are numbered above ``after``, one line a
        frame."""
        return "\n".join(self.lines(most, after=after))


class AsyncMockKafka(AsyncMethods):
    """The methods of a ``MockKafka`` as coroutines."""

    def __init__(self, threaded: MockKafka) -> None:
        super().__init__(threaded)
        self._mock = threaded

    @overload
    def wait_for(
        self, api: type[M], *, timeout: float = 10.0, **filters: Unpack[RequestFilters]
    ) -> Awaitable[Request[M]]: ...
    @overload
    def wait_for(
        self,
        api: int | str | None = None,
        *,
        timeout: float = 10.0,
        **filters: Unpack[RequestFilters],
    ) -> Awaitable[Request[Any]]: ...
    def wait_for(
        self,
        api: ApiChoice | None = None,
        *,
        timeout: float = 10.0,
        **filters: Unpack[RequestFilters],
    ) -> Awaitable[Request[Any]]:
        """As ``MockKafka.wait_for``."""
        return asyncio.wrap_future(self._mock.submit(self._mock._wait_for(api, timeout, filters)))


class MockKafkaFactory(Protocol):
    """What the fixture ``mock_kafka_factory`` gives: called with the arguments of
    ``ClusterOptions``, it starts a cluster."""

    @takes_cluster_options
    def __call__(self, *arguments: Any, **options: Any) -> MockKafka: ...
