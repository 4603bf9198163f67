"""The ``wiredump`` command. ``kproto.cli.run`` turns errors into messages and exit codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import click

import kproto
from kproto.cli.lazy import LazyGroup
from kproto.cli.run import run

__all__ = ["cli", "main"]


_COMMANDS = {
    name: f"wiredump.cli.{name}:{name}_command"
    for name in ("audit", "extract", "report", "show", "spark", "table")
}


@click.group(
    cls=LazyGroup,
    lazy=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=False,
)
@click.version_option(kproto.__version__, prog_name="wiredump", message="%(prog)s %(version)s")
def cli() -> None:
    """Decode captures and journals of Kafka's wire protocol, to the last byte."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    run(cli, "wiredump", arguments)
