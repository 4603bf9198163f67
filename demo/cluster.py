"""A mock cluster for one client, with its controls, on an event loop in a thread of its own.

``ctl`` takes the same commands as ``mockbroker ctl URL ...``, so that what the demo shows can be
typed against a ``mockbroker serve``.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from demo.story import BROKERS, CONTROLLER, TOPICS
from kproto.journal import Entry, Journal
from mockbroker import MockCluster

__all__ = ["RunningCluster", "start"]

STEP_SECONDS = 10.0

T = TypeVar("T")


class RunningCluster:
    """A started ``MockCluster``, to be called from other threads than its own."""

    def __init__(self, mock: MockCluster, loop: asyncio.AbstractEventLoop) -> None:
        self._mock = mock
        self._loop = loop

    @property
    def bootstrap(self) -> str:
        return self._on_loop(lambda: self._mock.bootstrap)

    def ctl(self, *words: str) -> None:
        """Run a command: ``join-isr foo-0 4``, ``failover 3``, ``stop-broker 2``, ``start-broker
        2``."""
        verb, arguments = words[0], words[1:]
        if verb == "join-isr":
            partition, broker_id = arguments
            self._on_loop(lambda: self._mock.join_isr(partition, int(broker_id)))
        elif verb == "failover":
            self._on_loop(lambda: self._mock.failover(int(arguments[0])))
        elif verb == "stop-broker":
            self._wait_for(self._mock.stop_broker(int(arguments[0])))
        elif verb == "start-broker":
            self._wait_for(self._mock.start_broker(int(arguments[0])))
        else:
            raise ValueError(f"the demo knows no step {verb!r}")

    def partition(self, topic: str) -> Mapping[str, Any]:
        """Return partition 0 as ``mockbroker ctl URL state --json`` prints it."""
        partitions = self._on_loop(self._mock.cluster.describe)["topics"][topic]
        (state,) = partitions.values()  # every topic of the story has one partition
        found: Mapping[str, Any] = state
        return found

    def entries(self, after: int = 0) -> list[Entry]:
        return self._on_loop(lambda: self._mock.journal.select(after=after))

    def _on_loop(self, call: Callable[[], T]) -> T:
        async def on_loop() -> T:
            return call()

        return self._wait_for(on_loop())

    def _wait_for(self, what: Awaitable[T]) -> T:
        async def waiting() -> T:
            return await what

        return asyncio.run_coroutine_threadsafe(waiting(), self._loop).result(STEP_SECONDS)


@contextmanager
def start(profile: str, sink: Callable[[Entry], object] | None = None) -> Iterator[RunningCluster]:
    """Start a cluster for the story on ephemeral ports, with broker 3 as controller and 1 as leader
    of baz-0. ``sink`` is called with every journal entry."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    journal = Journal(sink=sink)
    mock = MockCluster(brokers=BROKERS, topics=TOPICS, profile=profile, journal=journal)
    cluster = RunningCluster(mock, loop)
    try:
        cluster._wait_for(mock.start())
        cluster.ctl("failover", str(CONTROLLER))
        # Broker 6 gets its replica back, but not the leadership.
        cluster.ctl("stop-broker", "6")
        cluster.ctl("start-broker", "6")
        cluster.ctl("join-isr", "baz-0", "6")
        yield cluster
    finally:
        cluster._wait_for(mock.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(STEP_SECONDS)
        loop.close()
