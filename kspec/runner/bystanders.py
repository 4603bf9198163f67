"""Clients without an adapter: a program run for each call, or a person at a keyboard.

Such a client does not report its results, so only its traffic is judged.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from kproto.cli.terminal import echo
from kspec.answers import Answer
from kspec.results import Greeting
from kspec.runner.adapters import ANSWER_SECONDS
from kspec.runner.processes import KILL, ended, signal_group, start_process

__all__ = ["ByCommand", "ByHand"]

_NOTHING = Answer()


@dataclass(slots=True)
class _Bystander:
    """The bootstrap address, from ``connect`` on."""

    greeting: Greeting
    bootstrap: str = ""
    wire_only: ClassVar[bool] = True
    pid: ClassVar[None] = None

    async def call(self, op: str, arguments: Mapping[str, Any]) -> Answer:
        if op == "connect":
            self.bootstrap = arguments["bootstrap"]
        elif op != "close":
            await self._act(op, arguments)
        return _NOTHING

    async def _act(self, op: str, arguments: Mapping[str, Any]) -> None:
        raise NotImplementedError

    async def stop(self) -> None:
        """No state is kept between calls."""


@dataclass(slots=True)
class _Command(_Bystander):
    command: str = ""

    async def _act(self, op: str, arguments: Mapping[str, Any]) -> None:
        """Run it to its end, or kill it."""
        words = [
            word.replace("{bootstrap}", self.bootstrap).replace("{call}", op)
            for word in shlex.split(self.command)
        ]
        nothing = asyncio.subprocess.DEVNULL
        process = await start_process(*words, stdin=nothing, stdout=nothing, stderr=nothing)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await process.wait()
        except TimeoutError:
            signal_group(process, KILL)
            await process.wait()
        ended(process)


class _Person(_Bystander):
    async def _act(self, op: str, arguments: Mapping[str, Any]) -> None:
        echo(f"  {self.bootstrap}", err=True)
        echo(f"  {op} {arguments or ''}; then press Enter", err=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


@dataclass(frozen=True, slots=True)
class ByCommand:
    """A program. ``{bootstrap}`` in its command line is the address, ``{call}`` the operation."""

    name: str
    command: str

    async def start(self) -> _Bystander:
        return _Command(Greeting(client=self.name, language="command"), command=self.command)


@dataclass(frozen=True, slots=True)
class ByHand:
    """A person who points a client at the printed address."""

    name: str = "by hand"

    async def start(self) -> _Bystander:
        return _Person(Greeting(client=self.name))
