"""The ``mockbroker`` command: ``serve``, ``ctl``, ``profiles``, ``scenario`` and ``fuzz``.

``kproto.cli.run`` handles errors and exit codes. ``fuzz`` belongs to kspec, which is built on this
package, so it is imported by name when it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import click

import kproto
from kproto.cli.lazy import LazyGroup
from kproto.cli.run import run
from mockbroker.cli.ctl import ctl
from mockbroker.cli.profiles import profiles
from mockbroker.cli.scenario import scenario
from mockbroker.cli.serve import serve

__all__ = ["cli", "main"]


_ELSEWHERE = {"fuzz": "kspec.clientfuzz.cli:fuzz"}


@click.group(
    cls=LazyGroup,
    lazy=_ELSEWHERE,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=False,
)
@click.version_option(kproto.__version__, prog_name="mockbroker", message="%(prog)s %(version)s")
def cli() -> None:
    """A mock Kafka cluster: real clients connect, negotiate and reassign partitions."""


cli.add_command(serve)
cli.add_command(ctl)
cli.add_command(profiles)
cli.add_command(scenario)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    run(cli, "mockbroker", arguments)
