"""Runs ``kproto admin`` in this process, as its command line would, in a thread of its own."""

import asyncio
import contextlib
import io
import threading
from typing import NamedTuple

from kproto.__main__ import cli
from kproto.cli.run import run
from mockbroker.running.mock_cluster import MockCluster

__all__ = ["Outcome", "admin", "at"]

# Standard output belongs to the process: two commands at once would share it.
_ONE_AT_A_TIME = threading.Lock()


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


async def admin(*arguments: str) -> Outcome:
    return await asyncio.to_thread(_admin, arguments)


async def at(mock: MockCluster, *arguments: str) -> Outcome:
    """With that mock cluster's brokers as bootstrap servers."""
    return await admin(*arguments, "--bootstrap-server", mock.bootstrap)


def _admin(arguments: tuple[str, ...]) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    code: object = None
    with _ONE_AT_A_TIME, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            run(cli, "kproto", ["admin", *arguments])
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    return Outcome(code, out.getvalue(), err.getvalue())
