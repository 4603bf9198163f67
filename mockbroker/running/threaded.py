"""A mock cluster on its own thread, for tests of blocking clients, and of asyncio clients that must
not share an event loop with the cluster.

``ForwardedMethods`` lists the methods of ``MockCluster`` that are no operations once, for
``ThreadedCluster`` and for its ``aio``. Signatures are those of ``MockCluster``, at run time and
for type checkers.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import replace
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Protocol, Self, TypeVar, Unpack, overload

from kproto.dialects import Dialect
from kproto.journal import Journal
from kproto.schema.versions import Versions
from mockbroker.faults.matching import ActiveFault
from mockbroker.options import Clock, ClusterOptions, takes_cluster_options
from mockbroker.profiles import Profile
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.running.operation_methods import AwaitableOperations, ThreadOperations
from mockbroker.running.recorded_requests import (
    ApiChoice,
    M,
    RecordedRequests,
    Request,
    RequestFilters,
    named,
)
from mockbroker.serving.scripts import Script
from mockbroker.simulation.operations import OperationCall
from mockbroker.simulation.security.token_issuer import TokenIssuer

__all__ = ["AsyncMethods", "ForwardedMethods", "ThreadedCluster"]

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_STOP_SECONDS: Final = 30.0


class _Forwarded(Protocol[P, T_co]):
    """The type of a forwarded method, which depends on the object that it belongs to."""

    @overload
    def __get__(self, instance: ThreadedCluster, owner: type[Any]) -> Callable[P, T_co]: ...
    @overload
    def __get__(self, instance: AsyncMethods, owner: type[Any]) -> Callable[P, Awaitable[T_co]]: ...
    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Callable[..., Any]: ...


@overload
def _forward(
    method: Callable[Concatenate[MockCluster, P], Coroutine[Any, Any, T]],
) -> _Forwarded[P, T]: ...
@overload
def _forward(method: Callable[Concatenate[MockCluster, P], T]) -> _Forwarded[P, T]: ...
def _forward(method: Callable[..., Any]) -> Any:
    """Return a method that runs this one on the cluster's thread."""

    @functools.wraps(method)
    def call(self: ForwardedMethods, /, *arguments: Any, **options: Any) -> Any:
        return self._perform(method, arguments, options)

    return call


class ForwardedMethods:
    """The methods of ``MockCluster`` that other threads may call."""

    run_command = _forward(MockCluster.run_command)

    follow_clock = _forward(MockCluster.follow_clock)
    read_znode = _forward(MockCluster.read_znode)

    # ---- records, groups, offsets and transactions
    produce = _forward(MockCluster.produce)
    records = _forward(MockCluster.records)
    group = _forward(MockCluster.group)
    groups = _forward(MockCluster.groups)
    committed = _forward(MockCluster.committed)
    wait_for_group = _forward(MockCluster.wait_for_group)
    wait_for_committed = _forward(MockCluster.wait_for_committed)
    transactions = _forward(MockCluster.transactions)
    wait_for_transaction = _forward(MockCluster.wait_for_transaction)
    telemetry = _forward(MockCluster.telemetry)
    wait_for_push = _forward(MockCluster.wait_for_push)
    assert_produced = _forward(MockCluster.assert_produced)
    assert_committed = _forward(MockCluster.assert_committed)

    # ---- what the cluster knows
    connections = _forward(MockCluster.connections)
    settled = _forward(MockCluster.settled)
    broker_knows = _forward(MockCluster.broker_knows)

    # ---- faults and scripted answers
    fault = _forward(MockCluster.fault)
    load_faults = _forward(MockCluster.load_faults)
    remove_fault = _forward(MockCluster.remove_fault)
    clear_faults = _forward(MockCluster.clear_faults)
    wait_for_hit = _forward(MockCluster.wait_for_hit)
    unused_faults = _forward(MockCluster.unused_faults)
    failed_faults = _forward(MockCluster.failed_faults)
    assert_faults_used = _forward(MockCluster.assert_faults_used)
    fault_problems = _forward(MockCluster.fault_problems)
    script = _forward(MockCluster.script)
    clear_scripts = _forward(MockCluster.clear_scripts)
    replay = _forward(MockCluster.replay)

    def carry_out(self, call: OperationCall) -> Any:
        """Carry out an operation. Raises ClusterError if the cluster cannot."""
        return self._perform(MockCluster.carry_out, (call,), {})

    def _perform(
        self, method: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        raise NotImplementedError


class ThreadedCluster(ForwardedMethods, ThreadOperations, RecordedRequests):
    """A ``MockCluster`` with the same arguments, usable from any thread::

        with ThreadedCluster(topics=["foo=1,2,3"], brokers=6) as mock:
            admin = KafkaAdminClient(bootstrap_servers=mock.bootstrap)
            ...
            mock.join_isr("foo-0", 4)
            mock.assert_requested("AlterPartitionReassignments", times=1)

    Methods run on the cluster's thread and return when they are done, including the coroutines of
    ``MockCluster``. ``aio`` has the same methods as coroutines, which do not block the caller's
    event loop. Errors of the cluster are raised in the caller. Leaving the ``with`` block without
    an exception calls ``check``.
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
        journal = options.new_journal() if options.journal is None else options.journal
        self.options = replace(options, journal=journal)
        RecordedRequests.__init__(self, journal, lambda: self.dialect)
        self._cluster: MockCluster | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

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
        if error is None:
            self.check()

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

    def take_handler_errors(self) -> list[Exception]:
        """As ``MockCluster.take_handler_errors``, also after ``stop``."""
        return self.cluster.take_handler_errors()

    def check(self) -> None:
        """As ``MockCluster.check``, also after ``stop``: raise what a test must not pass with."""
        self.cluster.check()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the cluster's thread."""
        if self._loop is None or self._loop.is_closed():
            work.close()
            raise RuntimeError("the cluster is not running")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _perform(
        self, method: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        return self._submit(method, arguments, options).result()

    def _submit(
        self, method: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> Future[Any]:
        return self.submit(self._take(functools.partial(method, **options), arguments))

    async def _take(self, method: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        return await self.cluster.take(method, self.cluster, *arguments)

    def _read(self, get: Callable[[MockCluster], T]) -> T:
        async def read() -> T:
            return get(self.cluster)

        return self.submit(read()).result()

    # ---- properties --------------------------------------------------------------------------

    @property
    def aio(self) -> AsyncMethods:
        """The same methods as coroutines."""
        return AsyncMethods(self)

    @property
    def cluster(self) -> MockCluster:
        """The cluster itself, for use on its own thread. Raises RuntimeError before ``start``."""
        if self._cluster is None:
            raise RuntimeError("the cluster is not started")
        return self._cluster

    @property
    def bootstrap(self) -> str:
        """``host:port`` of every broker's listener, comma-separated."""
        return self.cluster.bootstrap

    @property
    def addresses(self) -> dict[int, str]:
        """Broker id -> ``host:port`` that a client on this machine can dial."""
        return self.cluster.addresses

    @property
    def listeners(self) -> dict[int, dict[str, str]]:
        """Broker id -> name of a listener -> ``host:port`` that a client on this machine can
        dial."""
        return self.cluster.listeners

    def bootstrap_of(self, listener: str) -> str:
        """As ``MockCluster.bootstrap_of``."""
        return self.cluster.bootstrap_of(listener)

    @property
    def served(self) -> Mapping[int, Versions]:
        """API key -> versions, as ApiVersions lists them."""
        return self._read(lambda mock: mock.served)

    @property
    def faults(self) -> list[ActiveFault]:
        """Every rule in the order in which they are tried, including those that have ended."""
        return self._read(lambda mock: mock.faults)

    @property
    def has_snapshot(self) -> bool:
        """Whether there is a snapshot that ``reset`` returns to."""
        return self._read(lambda mock: mock.has_snapshot)

    @property
    def profile(self) -> Profile:
        """The release that the cluster behaves as."""
        return self.cluster.profile

    @property
    def dialect(self) -> Dialect:
        """The dialect of the listeners."""
        return self.cluster.dialect

    @property
    def journal(self) -> Journal:
        """The recorded traffic."""
        return self.cluster.journal

    @property
    def token_issuer(self) -> TokenIssuer | None:
        """Gives signed tokens to OAuth clients; None without any."""
        return self.cluster.token_issuer

    @property
    def clock(self) -> Clock:
        """The cluster's clock."""
        return self.cluster.clock

    @property
    def auto_progress_ms(self) -> int | None:
        """The interval of auto-progress; None if it is off."""
        return self.cluster.auto_progress_ms

    # ---- requests ------------------------------------------------------------------------------

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
        there is none yet. ``after=mock.journal.last_sequence`` waits for a new one. Raises
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

    # ---- scripted answers --------------------------------------------------------------------

    def on(
        self, api_key: int, *, versions: str | None = None, times: int | None = None
    ) -> Callable[[Script], Script]:
        """As ``MockCluster.on``. The function runs on the cluster's thread."""
        register = self._read(lambda mock: mock.on(api_key, versions=versions, times=times))
        return lambda script: self._read(lambda _mock: register(script))


class AsyncMethods(ForwardedMethods, AwaitableOperations):
    """The methods of the cluster as coroutines, which do not block the caller's event loop."""

    def __init__(self, threaded: ThreadedCluster) -> None:
        self._threaded = threaded

    def _perform(
        self, method: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> Awaitable[Any]:
        return asyncio.wrap_future(self._threaded._submit(method, arguments, options))

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
        """As ``ThreadedCluster.wait_for``."""
        return asyncio.wrap_future(
            self._threaded.submit(self._threaded._wait_for(api, timeout, filters))
        )


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
