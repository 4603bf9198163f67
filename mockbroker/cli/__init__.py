"""The ``mockbroker`` command: ``serve``, ``ctl`` and ``profiles``.

Exit 0 on success, 1 on a failed operation, 2 on bad usage; an error is one line on stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from kproto.errors import KprotoError
from mockbroker.cli.ctl import ctl
from mockbroker.cli.profiles import profiles
from mockbroker.cli.serve import serve

__all__ = ["cli", "main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False)
def cli() -> None:
    """A mock Kafka cluster: real clients connect, negotiate and reassign partitions."""


cli.add_command(serve)
cli.add_command(ctl)
cli.add_command(profiles)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    try:
        result = cli.main(
            None if arguments is None else list(arguments),
            prog_name="mockbroker",
            standalone_mode=False,
        )
        # Without standalone mode click returns the code of --help and the like.
        return result if isinstance(result, int) else 0
    except click.UsageError as error:
        hint = "" if error.ctx is None else f" (see {error.ctx.command_path} --help)"
        return _fail(error.format_message() + hint, error.exit_code)
    except click.ClickException as error:
        return _fail(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", 130)
    except (KprotoError, OSError) as error:
        return _fail(str(error), 1)


def _fail(text: str, code: int) -> int:
    click.echo(f"mockbroker: {' '.join(text.split())}", err=True)
    return code
