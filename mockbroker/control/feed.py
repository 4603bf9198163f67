"""News of a running cluster for who listens over HTTP: woken when there is any, told as
server-sent events. What the news are is their callers' to say.

Nobody is called on the hot path unless somebody listens.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from aiohttp import web

from kproto.journal import Entry
from mockbroker.control.routes import STREAM, RefusedError
from mockbroker.mock_cluster import MockCluster

__all__ = ["Batch", "Feed", "News", "Said", "tell"]

_MOST_LISTENERS: Final = 64
_KEEP_ALIVE_SECONDS: Final = 5.0
"""Silence after which a comment is sent: one that has gone is found out by that."""


class Said(NamedTuple):
    """One server-sent event. ``number`` is where to resume after it; None: not there."""

    name: str
    number: int | None
    data: Any


class Batch(NamedTuple):
    """``upto``: where the next one begins. ``more``: there is more at once."""

    events: list[Said]
    upto: int
    more: bool


News: TypeAlias = Callable[[int], Batch]
"""What there is after a number."""


class Feed:
    """Who waits for news of one cluster's journal and log."""

    def __init__(self, mock: MockCluster) -> None:
        self._mock = mock
        self._waiting: set[asyncio.Event] = set()
        self._sink: Callable[[Entry], object] | None = None
        self._on_step: Callable[[], None] = lambda: None
        self.closed = False

    @contextlib.contextmanager
    def following(self) -> Iterator[asyncio.Event]:
        """An event that is set whenever there is something new. Raises RefusedError."""
        if self.closed or len(self._waiting) >= _MOST_LISTENERS:
            raise RefusedError(503, f"{len(self._waiting)} listen already, or the cluster is gone")
        woken = asyncio.Event()
        if not self._waiting:
            self._listen()
        self._waiting.add(woken)
        try:
            yield woken
        finally:
            self._waiting.discard(woken)
            if not self._waiting:
                self._unlisten()

    def close(self) -> None:
        """Every stream ends."""
        self.closed = True
        self._wake()

    def _listen(self) -> None:
        journal, cluster = self._mock.journal, self._mock.cluster
        self._sink, journal.sink = journal.sink, self._heard
        self._on_step, cluster.on_step = cluster.on_step, self._stepped

    def _unlisten(self) -> None:
        # What somebody else has put around it meanwhile goes on calling it, and that does no harm.
        if self._mock.journal.sink == self._heard:
            self._mock.journal.sink = self._sink
        if self._mock.cluster.on_step == self._stepped:
            self._mock.cluster.on_step = self._on_step

    def _heard(self, entry: Entry) -> None:
        if self._sink is not None:
            self._sink(entry)
        self._wake()

    def _stepped(self) -> None:
        self._on_step()
        self._wake()

    def _wake(self) -> None:
        for woken in self._waiting:
            woken.set()


async def tell(request: web.Request, feed: Feed, news: News, after: int) -> web.StreamResponse:
    """All news after a number, and those to come, until the client goes or the cluster does."""
    with feed.following() as woken:
        response = web.StreamResponse(
            headers={"Content-Type": STREAM, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        with contextlib.suppress(ConnectionError):
            await response.prepare(request)
            await response.write(b": the past first, then what comes\n\n")
            while not feed.closed:
                woken.clear()
                batch = news(after)
                after = batch.upto
                if batch.events:
                    await response.write(b"".join(map(_frame, batch.events)))
                    await asyncio.sleep(0)  # whoever reads a long past holds up nobody
                if not batch.more and not await _woken(woken):
                    await response.write(b": still here\n\n")
            await response.write(_frame(Said("end", None, None)))
            await response.write_eof()
        return response


async def _woken(woken: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(_KEEP_ALIVE_SECONDS):
            await woken.wait()
    except TimeoutError:
        return False
    return True


def _frame(event: Said) -> bytes:
    lines = [f"event: {event.name}", f"data: {json.dumps(event.data)}"]
    if event.number is not None:
        lines.insert(0, f"id: {event.number}")
    return ("\n".join(lines) + "\n\n").encode()
