"""The ``wiredump`` command. ``kproto.cli.run`` turns errors into messages and exit codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from kproto.cli.program import program
from kproto.cli.run import run

__all__ = ["cli", "main"]

_COMMANDS = ("ask", "audit", "compact", "extract", "report", "show", "spark", "sql", "table")

cli = program(
    "wiredump",
    "Decode captures and journals of Kafka's wire protocol, to the last byte.",
    {name: f"wiredump.cli.{name}:{name}_command" for name in _COMMANDS},
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    run(cli, "wiredump", arguments)
