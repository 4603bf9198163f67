"""Run a program and measure the processor time and memory of it and all its children.

Linux only, since it reads /proc. Knows nothing about captures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "FailedError", "Taken", "Watch", "cpu_seconds", "pinned", "resident", "resident_bytes", "run",
    "tree",
]  # fmt: skip

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SAMPLE_SECONDS = 0.05

LAUNCHER = Path(__file__).resolve().parent / "launcher.py"


class FailedError(Exception):
    """A program failed. The message has its output."""


class Taken(NamedTuple):
    """``wall`` and ``cpu`` (user and system, all processes) in seconds, ``peak`` in bytes: the most
    that all processes had resident at one time. ``peak_main`` is that of the largest one alone, as
    the kernel keeps it. ``output`` is what it printed."""

    wall: float
    cpu: float
    peak: int
    peak_main: int
    output: bytes


def pinned(count: int) -> frozenset[int]:
    """The first ``count`` processors of those that this process may use."""
    possible = sorted(os.sched_getaffinity(0))
    if len(possible) < count:
        raise FailedError(f"{count} processors are needed, and there are {len(possible)}")
    return frozenset(possible[:count])


def run(
    command: Sequence[str],
    processors: frozenset[int],
    *,
    watched: bool = False,
    environment: dict[str, str] | None = None,
) -> Taken:
    """Run to the end, on these processors only. ``watched``: with the memory of its children, which
    is looked up every 50 ms. Raises FailedError where the status is not 0."""
    pin = ",".join(map(str, sorted(processors)))
    answer, told = os.pipe()
    with (
        open(answer, "rb") as answers,
        tempfile.TemporaryFile() as said,
        tempfile.TemporaryFile() as complaints,
    ):
        launcher = [sys.executable, "-I", "-S", str(LAUNCHER), str(told), pin]
        process = subprocess.Popen(
            [*launcher, *command], stdin=subprocess.DEVNULL, stdout=said, stderr=complaints,
            env={**os.environ, **(environment or {})}, pass_fds=[told],
        )  # fmt: skip
        os.close(told)
        watch = Watch(process.pid, with_root=False) if watched else None
        found = answers.read()
        process.wait()
        sampled = watch.end() if watch else 0
        said.seek(0)
        complaints.seek(0)
        output, errors = said.read(), complaints.read()
    status, wall, cpu, peak = json.loads(found) if found else (process.returncode, 0, 0, 0)
    if status != 0:
        last = errors.decode("utf-8", "replace").strip().splitlines()[-5:]
        shown = " ".join(map(str, command))[:200]
        raise FailedError(f"status {status} of {shown}: {' / '.join(last)}")
    return Taken(wall, cpu, max(peak, sampled), peak, output)


def tree(root: int) -> dict[int, str]:
    """``root`` and its living descendants: what each is called, by its process id."""
    parents: dict[int, tuple[int, str]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (found := _stat(int(name))):
            parents[int(name)] = (int(found[2]), found[0])
    inside = {root: parents[root][1]} if root in parents else {}
    grown = True
    while grown:
        more = {
            pid: name
            for pid, (parent, name) in parents.items()
            if parent in inside and pid not in inside
        }
        inside |= more
        grown = bool(more)
    return inside


def cpu_seconds(root: int) -> float:
    """What a living process and its descendants took so far: those that ended, too, if whoever
    started them waited for them."""
    ticks = 0
    for pid in tree(root):
        if found := _stat(pid):
            ticks += sum(map(int, found[12:16]))
    return ticks / _TICKS


def resident(root: int, *, with_root: bool = True) -> dict[str, int]:
    """Bytes resident of a process and its descendants, summed up by what they are called."""
    sums: dict[str, int] = {}
    for pid, name in tree(root).items():
        if pid == root and not with_root:
            continue
        sums[name] = sums.get(name, 0) + resident_bytes(pid)
    return sums


def resident_bytes(pid: int) -> int:
    """Bytes resident of one process; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _stat(pid: int) -> list[str] | None:
    """/proc/PID/stat with the name, which may have blanks, in front; None where it ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    name = text[text.index("(") + 1 : text.rindex(")")]
    return [name, *text[text.rindex(")") + 1 :].split()]


class Watch:
    """Looks at a process tree's memory from a thread, until ``end``."""

    def __init__(self, root: int, *, with_root: bool = True) -> None:
        self.peak = 0
        self.by_name: dict[str, int] = {}
        self._root = root
        self._with_root = with_root
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def end(self) -> int:
        """The most bytes that were resident at one time."""
        self._ended.set()
        self._thread.join()
        return self.peak

    def _look(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            found = resident(self._root, with_root=self._with_root)
            self.peak = max(self.peak, sum(found.values()))
            for name, size in found.items():
                self.by_name[name] = max(size, self.by_name.get(name, 0))
