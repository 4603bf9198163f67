"""``--exit-with-parent`` and ``--exit-on-stdin-eof``: end when the parent process has ended.

No signal announces that. But the system gives an orphan another parent, so the parent's id is
compared with the one at the start. On Windows it does not; there, and behind wrappers that outlive
the program that started them, the end of standard input tells: the system closes a pipe whose
writer has ended.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

__all__ = ["call_at_stdin_eof", "parent_options", "when_orphaned"]

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

_PARENT: Final = os.getppid()
_CHECK_SECONDS: Final = 0.2
_READ_BYTES: Final = 4096


def parent_options(command: CommandT) -> CommandT:
    """Add these options to a command."""
    of_stdin = click.option(
        "--exit-on-stdin-eof",
        is_flag=True,
        help="Stop at the end of standard input, which a program that started this one holds open.",
    )
    return click.option(
        "--exit-with-parent",
        is_flag=True,
        callback=_check_platform,
        help="Stop when the parent process ends, for whatever reason.",
    )(of_stdin(command))


def _check_platform(_context: Any, _option: Any, requested: bool) -> bool:
    if requested and sys.platform == "win32":
        raise click.UsageError("--exit-with-parent is not available on Windows")
    return requested


async def when_orphaned() -> None:
    """Return once the parent has ended."""
    while os.getppid() == _PARENT:
        await asyncio.sleep(_CHECK_SECONDS)


def call_at_stdin_eof(call: Callable[[], object]) -> None:
    """Call the function, on a thread of its own, once standard input ends."""

    def read() -> None:
        try:
            while os.read(0, _READ_BYTES):
                pass
        except OSError:  # there is no standard input
            pass
        call()

    # Nothing waits for this thread: it may be in a read that never returns.
    threading.Thread(target=read, name="stdin", daemon=True).start()
