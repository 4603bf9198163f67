"""``--on-bad-file``: what happens to files of which nothing can be read, and the exit statuses that
tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import click

from kproto.cli.terminal import echo
from wiredump.storage import shown

__all__ = ["FAILED", "SKIPPED", "BadFileExit", "bad_file_option", "report_skipped"]

SKIPPED: Final = 3
"""The exit status if the tables are complete but for files that were skipped or quarantined."""
FAILED: Final = 4
"""The exit status if a bad file ended the command, and nothing was written."""

CommandT = TypeVar("CommandT", bound=Callable[..., int | None])


class BadFileExit(click.ClickException):
    """Ends the command because of a bad file."""

    exit_code = FAILED


def bad_file_option(command: CommandT) -> CommandT:
    """Add the option ``on_bad_file``."""
    return click.option(
        "--on-bad-file", type=click.Choice(("fail", "skip", "quarantine")), default="fail",
        show_default=True,
        help="What to do about a file of which nothing can be read: write nothing and exit with "
             f"{FAILED}; write the tables without it and exit with {SKIPPED}; or do that and move "
             "it to DIR/_quarantine.",
    )(command)  # fmt: skip


def report_skipped(found: Mapping[str, str], policy: str) -> int:
    """Print the files that were skipped and return the exit status."""
    what = "quarantined" if policy == "quarantine" else "skipped"
    for path, reason in found.items():
        echo(f"wiredump: {shown(path)} was {what}: nothing could be read: {reason}", err=True)
    return SKIPPED if found else 0
