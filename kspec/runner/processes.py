"""Client processes. Each leads a process group, so that its children end with it.

Signals from a terminal or a CI runner do not reach these groups, so a run that is asked to end
passes the signal on.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final, TypeVar

__all__ = [
    "KILL",
    "Interrupted",
    "ended",
    "interrupted",
    "interruptible",
    "kill_processes",
    "signal_group",
    "start_process",
]

T = TypeVar("T")

_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
KILL: Final = signal.SIGKILL if os.name == "posix" else signal.SIGTERM
"""Ends a process at once; on Windows both do."""

_running: set[asyncio.subprocess.Process] = set()


async def start_process(
    *command: str,
    stdin: int,
    stdout: int,
    stderr: int | IO[bytes],
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    limit: int = 2**16,
) -> asyncio.subprocess.Process:
    """Start a process. Raises OSError if that fails.

    ``environment`` is added to ours. ``limit`` is the longest line of output that is read. Call
    ``ended`` when the process has ended.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        limit=limit,
        start_new_session=os.name == "posix",
    )
    _running.add(process)
    return process


def ended(process: asyncio.subprocess.Process) -> None:
    """Note that the process has ended and was reaped, so that its id may be reused."""
    _running.discard(process)


def signal_group(process: asyncio.subprocess.Process, how: signal.Signals) -> None:
    """Send a signal to the process and its children."""
    with suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, how)
        else:
            process.send_signal(how)


def kill_processes() -> None:
    """Kill every running process and its children."""
    for process in _running:
        if process.returncode is None:
            signal_group(process, KILL)


def interruptible(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` on a new event loop.

    A signal kills all client processes, cancels ``work``, lets it clean up, and exits with 128 plus
    the signal's number. No process is left, whatever ``work`` does.
    """
    return asyncio.run(_run(work))


class Interrupted(BaseException):
    """A signal asked this process to end. ``status`` is the exit status that shells use for it."""

    def __init__(self, which: int) -> None:
        super().__init__(signal.Signals(which).name)
        self.status = 128 + which


@contextmanager
def interrupted() -> Iterator[None]:
    """Raise Interrupted on a signal, so that ``finally`` clauses run. For work in the main thread
    without an event loop."""

    def end(which: int, _frame: object) -> None:
        raise Interrupted(which)

    before = {each: signal.signal(each, end) for each in _SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


async def _run(work: Coroutine[Any, Any, T]) -> T:
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    received: list[signal.Signals] = []

    def end(which: signal.Signals) -> None:
        received.append(which)
        kill_processes()
        task.cancel()

    for each in _SIGNALS:
        with suppress(NotImplementedError):  # for example on Windows
            loop.add_signal_handler(each, end, each)
    try:
        return await task
    except BaseException:
        # Report the signal, whatever the cleanup raised.
        if received:
            sys.exit(128 + received[0])
        raise
    finally:
        kill_processes()
