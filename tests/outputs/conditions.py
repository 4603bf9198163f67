"""Conditions that outputs have to bear: a full disk, a signal, a FIFO with a reader; leftovers."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

from tests.cli.programs import MAINS

__all__ = ["ended_at_rename", "full_disk", "left_in", "read_from", "unprivileged"]

NOBODY: Final = 65534


@contextmanager
def full_disk(limit: int = 0) -> Iterator[None]:
    """No file of this process and of its children grows beyond ``limit`` bytes. (Python ignores
    SIGXFSZ, so that writes fail.)"""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    writes_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        sys.dont_write_bytecode = writes_bytecode


@contextmanager
def unprivileged() -> Iterator[None]:
    """This process has no more rights than any user, also if root runs the tests."""
    if os.getuid() != 0:
        yield
        return
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


def left_in(folder: Path) -> list[str]:
    """The names of temporary files and folders of outputs."""
    return sorted(
        each.name
        for each in folder.rglob(".*")
        if each.name.endswith(".part") or each.name.startswith(".kproto-")
    )


@contextmanager
def read_from(path: Path) -> Iterator[list[bytes]]:
    """Read a FIFO in a thread. The list has its content after the block."""
    received: list[bytes] = []
    thread = threading.Thread(target=lambda: received.append(path.read_bytes()), daemon=True)
    thread.start()
    yield received
    thread.join(60)


def ended_at_rename(program: str, words: Sequence[str], number: int, at: int, within: Path) -> int:
    """Run a command in a copy of this process, which gets a signal at the rename with this number
    of those within a folder; return how it ended, as subprocess does. It ends with 99 after an
    unexpected exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads that the copy lacks
        child = os.fork()
    if not child:
        _run(program, words, number, at, str(within))
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _run(program: str, words: Sequence[str], number: int, at: int, within: str) -> NoReturn:
    replace, count = os.replace, 0

    def signalled(source: str, target: str) -> None:
        nonlocal count
        count += os.fspath(target).startswith(within)
        if count == at:
            signal.raise_signal(number)
        replace(source, target)

    code = 99
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.replace = signalled  # type: ignore[assignment]
        MAINS[program](words)
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        os._exit(code)
