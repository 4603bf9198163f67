"""Run a command that listens until a signal stops it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import re
import secrets
import signal
from collections.abc import Coroutine, Iterator, Mapping
from functools import partial
from typing import Any, Final

import click

from kproto.cli.terminal import echo
from kproto.safe_text import printable
from mockbroker.cli.option_types import ParsedOption
from mockbroker.cli.parent import call_at_stdin_eof, when_orphaned
from mockbroker.errors import ClusterError
from mockbroker.options.addresses import parse_endpoint
from mockbroker.serving.endpoints import is_loopback

__all__ = [
    "CONTROL_OPTIONS",
    "listen_address",
    "log_to_stderr",
    "naming_the_option",
    "raise_file_limit",
    "random_token",
    "report_file_limit",
    "run_loop",
    "stop_requested",
]


def listen_address(text: str) -> tuple[str, int]:
    """Split ``HOST:PORT``. Raises ClusterError, also without a port."""
    host, port = parse_endpoint(text)
    if port is None:
        raise ClusterError(f"{text!r} has no port; use HOST:PORT, where port 0 takes a free one")
    return host, port


CONTROL_OPTIONS: Final = (
    click.option(
        "--control",
        type=ParsedOption("HOST:PORT", listen_address),
        help="Open the HTTP control port at this address. Default: none.",
    ),
    click.option(
        "--control-token",
        envvar="MOCKBROKER_TOKEN",
        show_envvar=True,
        help="The token that control requests must carry. Default: none on loopback, a "
        "random one otherwise, which is printed.",
    ),
)
"""The options of the control port, for an option group."""

_OWN_FILES: Final = 8
"""Descriptors of the event loop and of the control port's listener."""
_ADDRESS_ERRORS: Final = (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES)


class _LineFormatter(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:
        return printable(super().formatMessage(record))


def log_to_stderr() -> None:
    """Write log messages to standard error, a line each; only tracebacks have more."""
    handler = logging.StreamHandler()
    handler.setFormatter(_LineFormatter("mockbroker: %(message)s"))
    logging.basicConfig(handlers=[handler])


def stop_requested(options: Mapping[str, Any]) -> asyncio.Event:
    """Return an event that is set at SIGINT and SIGTERM, and at the parent's end if the options of
    ``parent_options`` say so. Call it on the running loop."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, stopped.set)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stopped.set))
    if options["exit_on_stdin_eof"]:
        call_at_stdin_eof(partial(_set_from_thread, loop, stopped))
    if options["exit_with_parent"]:
        orphaned = loop.create_task(when_orphaned())
        orphaned.add_done_callback(lambda _: stopped.set())
        _kept.add(orphaned)
    return stopped


def _set_from_thread(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(event.set)


_kept: Final[set[asyncio.Task[None]]] = set()
"""Tasks that wait for the parent's end, which the loop itself does not keep."""


@contextlib.contextmanager
def naming_the_option(option: str) -> Iterator[None]:
    """Say which address cannot be listened on, and why, without the system's number."""
    try:
        yield
    except OSError as error:
        if error.errno not in _ADDRESS_ERRORS:
            raise
        found = re.search(r"\('([^']+)', (\d+)", str(error))
        address = f" {found[1]}:{found[2]}" if found else ""
        why = os.strerror(error.errno).lower()
        raise click.ClickException(
            f"{option}: cannot listen on{address}: {why}; port 0 takes a free one"
        ) from None


def raise_file_limit(connections: int, *, more: bool) -> None:
    """Raise the soft limit of open files (often 1024) as far as these connections, their listeners
    and the inter-broker connections need; ``more`` adds some for clusters created later."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    requested = 256 + 2 * connections + 8192 * more
    if soft != resource.RLIM_INFINITY and soft < requested:
        allowed = requested if hard == resource.RLIM_INFINITY else min(requested, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))


def report_file_limit(connections: int, listeners: int, permitted: str) -> None:
    """Say so if the limit of open files has no room for all connections that are permitted."""
    from mockbroker.serving.acceptor import file_limit, room  # here: not needed for --help

    left = room()
    if left is not None and left - listeners - _OWN_FILES < connections:
        echo(
            f"mockbroker: the limit of {file_limit()} open files (ulimit -n) leaves room for "
            f"{max(0, left - listeners - _OWN_FILES)} connections, not for {permitted}; further "
            "ones are closed",
            err=True,
        )


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop if it is installed, otherwise on asyncio's own loop."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
        return
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


def random_token(options: dict[str, Any]) -> dict[str, str]:
    """Make a control token if one is needed and none is given; a member of the first line."""
    if options["control"] is None or options["control_token"]:
        return {}
    if is_loopback(options["control"][0]):
        return {}
    options["control_token"] = secrets.token_urlsafe(24)
    return {"control_token": options["control_token"]}
