"""Run a command line and exit: 0 for success, 1 for a failed operation, 2 for bad usage.

Errors are one line on stderr. A traceback indicates a bug of ours and is printed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from kproto.cli.terminal import echo, guard_streams
from kproto.errors import KprotoError
from kproto.os_errors import os_error_text

__all__ = ["run"]


def run(
    command: click.Command,
    name: str,
    arguments: Sequence[str] | None = None,
    *,
    error_status: int = 1,
) -> NoReturn:
    """Run ``command`` with ``arguments`` (by default the process's own) and exit.

    ``error_status`` is the exit status of a failed operation.
    """
    guard_streams()  # for the whole process: a traceback is printed after this function
    try:
        result = command.main(arguments, prog_name=name, standalone_mode=False)
        sys.exit(result if isinstance(result, int) else 0)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx is not None else name
        _fail(f"{error.format_message()} (see {where} --help)", 2, name)
    except click.ClickException as error:
        _fail(error.format_message(), error.exit_code, name)
    except click.Abort:
        _fail("interrupted", 130, name)
    except BrokenPipeError:
        # The reader (head, less) has finished. Point stdout elsewhere, or the interpreter reports
        # the error again when it flushes at exit.
        sys.stdout = None
        sys.exit(0)
    except SystemExit:
        # If the system reports it, click handles it as a failure. The wrapper that it leaves in
        # stdout's place has no public name.
        if type(sys.stdout).__name__.endswith("PacifyFlushWrapper"):
            sys.exit(0)
        raise
    except KprotoError as error:
        _fail(str(error), error_status, name)
    except OSError as error:
        _fail(os_error_text(error), error_status, name)
    except UnicodeEncodeError as error:
        # Arguments may contain bytes that are not UTF-8, and not every library takes such paths.
        _fail(f"{error.object!r:.80} is not valid UTF-8", error_status, name)


def _fail(message: str, code: int, name: str) -> NoReturn:
    echo(f"{name}: {' '.join(message.split())}", err=True)
    sys.exit(code)
