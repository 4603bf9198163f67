"""``--exit-with-parent``: what somebody started must not outlive them.

Knows who the parent was when this process came up. Where that ends, an orphan is given another
parent: that is what is looked for, since no signal says so.
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
_LOOK_SECONDS: Final = 0.2


def parent_option(command: CommandT) -> CommandT:
    """Give a command this option."""
    return click.option(
        "--exit-with-parent",
        is_flag=True,
        callback=_where_possible,
        help="End when the process that started this one has ended, however it did.",
    )(command)


def _where_possible(_context: Any, _option: Any, wanted: bool) -> bool:
    if wanted and sys.platform == "win32":
        raise click.UsageError("--exit-with-parent: Windows gives an orphan no other parent")
    return wanted


async def when_orphaned() -> None:
    """Return once the parent has ended."""
    while os.getppid() == _PARENT:
        await asyncio.sleep(_LOOK_SECONDS)
