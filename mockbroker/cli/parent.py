"""``--exit-with-parent``: end when the parent process has ended.

No signal announces that. But the system gives an orphan another parent, so the parent's id is
compared with the one at the start.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

__all__ = ["parent_option", "when_orphaned"]

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

_PARENT: Final = os.getppid()
_CHECK_SECONDS: Final = 0.2


def parent_option(command: CommandT) -> CommandT:
    """Add this option to a command."""
    return click.option(
        "--exit-with-parent",
        is_flag=True,
        callback=_check_platform,
        help="Stop when the parent process ends, for whatever reason.",
    )(command)


def _check_platform(_context: Any, _option: Any, requested: bool) -> bool:
    if requested and sys.platform == "win32":
        raise click.UsageError("--exit-with-parent is not available on Windows")
    return requested


async def when_orphaned() -> None:
    """Return once the parent has ended."""
    while os.getppid() == _PARENT:
        await asyncio.sleep(_CHECK_SECONDS)
