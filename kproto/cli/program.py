"""What the four programs ``kproto``, ``mockbroker``, ``wiredump`` and ``kspec`` have in common:
commands that are imported on use, ``--version``, and the commands ``completion`` and ``help``."""

from __future__ import annotations

import importlib
import sys
from collections import UserDict
from collections.abc import Mapping
from typing import Any

import click

import kproto
from kproto.cli.terminal import guard_streams

__all__ = ["LazyCommands", "program"]

_COMMON = {
    "completion": "kproto.cli.completion:completion_command",
    "help": "kproto.cli.help_topics:help_command",
}


class LazyCommands(UserDict[str, Any]):
    """Commands by name, imported on use, so that no command pays for another's imports.

    A value is a command, or its location: ``module:attribute``.
    """

    def __getitem__(self, name: str) -> click.Command:
        found = self.data[name]
        if isinstance(found, str):
            module, _, attribute = found.partition(":")
            found = self.data[name] = getattr(importlib.import_module(module), attribute)
            outputs = sys.modules.get("kproto.cli.outputs")  # who has outputs has imported it
            if outputs is not None:
                outputs.spare_inputs(found)
        assert isinstance(found, click.Command)
        return found


class _Program(click.Group):
    def main(self, *arguments: Any, **options: Any) -> Any:
        guard_streams()
        return super().main(*arguments, **options)


def program(name: str, about: str, commands: Mapping[str, str]) -> click.Group:
    """Return the group of all commands of a program; ``commands`` are locations."""
    group = _Program(
        name,
        LazyCommands({**commands, **_COMMON}),
        help=about,
        context_settings={"help_option_names": ["-h", "--help"]},
        no_args_is_help=False,
    )
    engine = f"{kproto.engine} engine"
    note = f": {kproto.engine_note}" if kproto.engine_note else ""
    message = f"%(prog)s %(version)s ({engine}){note}"
    return click.version_option(kproto.__version__, prog_name=name, message=message)(group)
