"""Conditions that outputs have to bear: a full disk, a signal, a FIFO with a reader; leftovers."""

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.outputs.signalled import UNEXPECTED

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
    """Run a command in a process that gets a signal at the rename with this number of those within
    a folder; return how it ended, as subprocess does. It ends with 99 after an unexpected
    exception."""
    arguments = [program, str(number), str(at), str(within), *words]
    root = Path(__file__).parents[2]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]),
    }
    # A copy of this process, by fork, would have locks that threads of libraries held.
    ended = subprocess.run(
        [sys.executable, "-m", "tests.outputs.signalled", *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if ended.returncode == UNEXPECTED:
        print(ended.stderr)
    return ended.returncode
