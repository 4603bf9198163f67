"""The four command lines, as entry points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

import click

import kproto.__main__
import kspec.cli
import mockbroker.cli
import wiredump.cli

__all__ = ["MAINS", "PROGRAMS"]

PROGRAMS: dict[str, click.Group] = {
    "kproto": kproto.__main__.cli,
    "mockbroker": mockbroker.cli.cli,
    "wiredump": wiredump.cli.cli,
    "kspec": kspec.cli.commands,
}

MAINS: dict[str, Callable[[Sequence[str]], NoReturn]] = {
    "kproto": kproto.__main__.main,
    "mockbroker": mockbroker.cli.main,
    "wiredump": wiredump.cli.main,
    "kspec": kspec.cli.main,
}
