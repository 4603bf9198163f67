"""The processes of clients: each leads a group of its own, so that what it starts ends with it, and
none outlives the run that started it.

A group of its own is not reached by what a terminal or a CI runner sends to ours: a run that is
told to end passes it on.
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
    """Raises OSError where it cannot be started. ``environment`` is beside our own; ``limit`` is
    how many bytes of a line of its output we take. Tell ``ended`` when it has ended."""
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
    """It has ended, and was waited for: its number may be another's by now."""
    _running.discard(process)


def signal_group(process: asyncio.subprocess.Process, how: signal.Signals) -> None:
    """To the process and all that it started."""
    with suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, how)
        else:
            process.send_signal(how)


def kill_processes() -> None:
    """Every process that is still there, with all that it started."""
    for process in _running:
        if process.returncode is None:
            signal_group(process, signal.SIGKILL if os.name == "posix" else signal.SIGTERM)


def interruptible(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` on an event loop of its own. A signal kills the processes of all clients,
    cancels ``work``, lets it clean up, and exits as shells tell a signal: 128 and its number.
    Whatever ``work`` comes to, none of the processes is left."""
    return asyncio.run(_run(work))


class Interrupted(BaseException):
    """A signal told this process to end; ``status`` is its exit status, as shells tell a signal."""

    def __init__(self, which: int) -> None:
        super().__init__(signal.Signals(which).name)
        self.status = 128 + which


@contextmanager
def interrupted() -> Iterator[None]:
    """For work without an event loop of its own: a signal raises Interrupted, so that ``finally``
    gets to end what was started. In the main thread."""

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
        with suppress(NotImplementedError):  # as on Windows
            loop.add_signal_handler(each, end, each)
    try:
        return await task
    except BaseException:
        # Whatever cleaning up has come to: this is why.
        if received:
            sys.exit(128 + received[0])
        raise
    finally:
        kill_processes()
