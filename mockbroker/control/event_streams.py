"""Server-sent events about a running cluster: listeners are woken when there are new ones.

A stream's ``EventSource`` decides what the events are. Without a listener, the journal and
the cluster call nothing of this module.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from aiohttp import web

from kproto.journal import Entry, Journal
from mockbroker.control.errors import RefusedError
from mockbroker.serving.loop_turns import TaskTurn
from mockbroker.simulation.cluster import Cluster

__all__ = ["STREAM", "Batch", "EventSource", "Feed", "ServerSentEvent", "stream_events"]

STREAM: Final = "text/event-stream"

_MOST_LISTENERS: Final = 64
_KEEP_ALIVE_SECONDS: Final = 5.0
"""A comment is sent after this much silence, so that a closed connection is detected."""


class ServerSentEvent(NamedTuple):
    """``number`` is the event's id, from which a client resumes; None for an event without one."""

    name: str
    number: int | None
    data: Any


class Batch(NamedTuple):
    """``upto`` is where the next batch begins; ``more`` says whether it is available already."""

    events: list[ServerSentEvent]
    upto: int
    more: bool


EventSource: TypeAlias = Callable[[int, TaskTurn], Batch]
"""Returns the events after a number: at least one if there are any, and no more than the turn has
time for."""


class Feed:
    """The listeners to one cluster's journal and action log; a proxy has no ``cluster``."""

    def __init__(self, journal: Journal, cluster: Cluster | None) -> None:
        self._journal = journal
        self._cluster = cluster
        self._listeners: set[asyncio.Event] = set()
        self._sink: Callable[[Entry], object] | None = None
        self.closed = False

    @contextlib.contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """An event that is set whenever there is something new. Raises RefusedError."""
        if self.closed:
            raise RefusedError(503, "the cluster has stopped")
        if len(self._listeners) >= _MOST_LISTENERS:
            raise RefusedError(503, f"{_MOST_LISTENERS} streams are open already")
        changed = asyncio.Event()
        if not self._listeners:
            self._attach()
        self._listeners.add(changed)
        try:
            yield changed
        finally:
            self._listeners.discard(changed)
            if not self._listeners:
                self._detach()

    def close(self) -> None:
        """End every stream."""
        self.closed = True
        self._wake()

    def _attach(self) -> None:
        self._sink, self._journal.sink = self._journal.sink, self._on_entry
        if self._cluster is not None:
            self._cluster.turns.on_step.append(self._wake)

    def _detach(self) -> None:
        # A hook that wraps ours in the meantime stays, and may go on calling it harmlessly.
        if self._journal.sink == self._on_entry:
            self._journal.sink = self._sink
        if self._cluster is not None:
            self._cluster.turns.on_step.remove(self._wake)

    def _on_entry(self, entry: Entry) -> None:
        if self._sink is not None:
            self._sink(entry)
        self._wake()

    def _wake(self) -> None:
        for changed in self._listeners:
            changed.set()


async def stream_events(
    request: web.Request, feed: Feed, source: EventSource, after: int
) -> web.StreamResponse:
    """Stream the events after a number, past and future, until the client or the cluster is
    gone."""
    with feed.listening() as changed:
        response = web.StreamResponse(
            headers={"Content-Type": STREAM, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        with contextlib.suppress(ConnectionError):
            await response.prepare(request)
            await response.write(b": past events, then new ones\n\n")
            turn = TaskTurn()
            while not feed.closed:
                await turn.next()
                changed.clear()
                batch = source(after, turn)
                after = batch.upto
                if batch.events:
                    await response.write(b"".join(map(_frame, batch.events)))
                if not batch.more and not await _wait(changed):
                    await response.write(b": keep-alive\n\n")
            await response.write(_frame(ServerSentEvent("end", None, None)))
            await response.write_eof()
        return response


async def _wait(changed: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(_KEEP_ALIVE_SECONDS):
            await changed.wait()
    except TimeoutError:
        return False
    return True


def _frame(event: ServerSentEvent) -> bytes:
    lines = [f"event: {event.name}", f"data: {json.dumps(event.data)}"]
    if event.number is not None:
        lines.insert(0, f"id: {event.number}")
    return ("\n".join(lines) + "\n\n").encode()
