"""Processes that play: copies of this one, so many at a time, each of which tells what it finds.

One that is silent for too long is killed, and one that computes for too long in between ends.
"""

from __future__ import annotations

import logging
import multiprocessing
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final

from kspec.errors import KspecError, own_failure

__all__ = ["SILENT_SECONDS", "Workers"]

SILENT_SECONDS: Final = 240.0
"""A process in which no play ends for so long hangs, whatever the load of the machine."""
_END_SECONDS: Final = 10.0
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Those that end a search."""


class Workers:
    """So many processes at a time, each a copy of this one that tells what it finds."""

    def __init__(self, most: int, *, busy_seconds: int | None = None) -> None:
        """With ``busy_seconds``, a process that computes for so long between what it tells is one
        that hangs, too."""
        if "fork" not in multiprocessing.get_all_start_methods():
            raise KspecError("kspec holes needs a system that can fork, such as Linux or macOS")
        self._context = multiprocessing.get_context("fork")
        self._most, self._busy = most, busy_seconds
        self._running: dict[Connection, tuple[Any, BaseProcess, float]] = {}

    @property
    def has_room(self) -> bool:
        return len(self._running) < self._most

    def start(self, work: Callable[..., None], argument: Any, *, key: Any) -> None:
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=_run, args=(work, argument, theirs, self._busy), daemon=True
        )
        self._running[ours] = key, process, time.monotonic()  # a signal may come at any moment
        # An exception that a signal raises in what Python calls around a fork would be ignored.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()

    def messages(self) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        """Yield each message with the key of its process until every process has ended. The last
        one of a process that was killed is ``("hung",)``."""
        while self._running:
            for connection in wait(list(self._running), timeout=1):
                assert isinstance(connection, Connection)
                key, process, _ = self._running[connection]
                try:
                    message = connection.recv()
                except EOFError:
                    process.join(_END_SECONDS)
                    hung = process.exitcode in (None, -signal.SIGXCPU)
                    message = ("hung",) if hung else ("failed", "it ended by itself")
                self._running[connection] = key, process, time.monotonic()
                if message[0] not in ("played", "right"):
                    self._end(connection)
                yield key, message
            for connection, (key, _, last) in list(self._running.items()):
                if time.monotonic() - last > SILENT_SECONDS:
                    self._end(connection)
                    yield key, ("hung",)

    def _end(self, connection: Connection) -> None:
        _, process, _ = self._running.pop(connection)
        if process.pid is not None:
            process.kill()
            process.join()
        connection.close()

    def kill(self) -> None:
        for connection in list(self._running):
            self._end(connection)


def _run(
    work: Callable[..., None], argument: Any, connection: Connection, busy: int | None
) -> None:
    """Work in a process of its own, which signals end."""
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    logging.disable(logging.CRITICAL)

    def limit_computing() -> None:
        if busy is not None:
            _, most = resource.getrlimit(resource.RLIMIT_CPU)
            limit = int(time.process_time()) + busy
            resource.setrlimit(resource.RLIMIT_CPU, (limit if most < 0 else min(limit, most), most))

    def tell(*message: Any) -> None:
        limit_computing()
        with suppress(BrokenPipeError):  # the search has ended
            connection.send(message)

    limit_computing()
    try:
        work(argument, tell)
        tell("done")
    except Exception as error:  # whatever a changed module raises
        tell("failed", own_failure(error))
