"""Rotating captures as ``tcpdump -C``, ``-G``, ``-W`` and ``dumpcap -b`` write them: find the
files, their order, and which of them are complete.

The order is that of the names, with numbers compared as numbers (``a.pcap2`` before ``a.pcap10``).
A ring reuses its names: it continues behind the last file read or, before the first one was read,
where the times of first packets step back. If names contradict those times otherwise, the times
decide.

A file is complete once there is a newer one. Only the beginnings of files are read here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from glob import glob, has_magic
from itertools import pairwise
from typing import Final

import msgspec

from kproto.errors import KprotoError
from wiredump.readers import Capture, Packet
from wiredump.sources.opening import kind_of

__all__ = [
    "SLACK_NS",
    "Rotated",
    "Rotation",
    "RotationError",
    "complete",
    "in_order",
    "require_unchanged",
]

SLACK_NS: Final = 1_000_000_000
"""Packets of several queues or interfaces are not quite in the order of time: a step back up to
this does not affect the order of files."""
_PACKED: Final = (".gz", ".zst")


class RotationError(KprotoError):
    """Files cannot be the parts of one capture. The message names them and the reason."""


class Rotated(msgspec.Struct, frozen=True):
    """A file. ``first_ns`` is the time of its first packet; None without packets."""

    path: str
    size: int
    modified_ns: int
    first_ns: int | None

    @property
    def name(self) -> tuple[str | int, ...]:
        """The sort key."""
        parts = re.split(r"(\d+)", self.path)
        return tuple(int(part) if number % 2 else part for number, part in enumerate(parts))

    @property
    def stem(self) -> str:
        """The path before compression."""
        for suffix in _PACKED:
            if self.path.endswith(suffix):
                return self.path.removesuffix(suffix)
        return self.path


class Rotation:
    """The files of a folder (without hidden ones), or those that match a pattern."""

    def __init__(self, where: str) -> None:
        self.where = os.path.abspath(where)
        self._relative = not os.path.isabs(where)
        self._known: dict[str, Rotated] = {}

    def files(self) -> list[Rotated]:
        """Return all files, in no order. Raises RotationError for a file that is not a capture, and
        if ``where`` does not exist."""
        found = []
        for path in self._paths():
            try:
                about = os.stat(path)
                known = self._known.get(path)
                if known is None or (known.size, known.modified_ns) != (
                    about.st_size,
                    about.st_mtime_ns,
                ):
                    first = _first_ns(path)
                    known = Rotated(path, about.st_size, about.st_mtime_ns, first)
                    self._known[path] = known
            except FileNotFoundError:
                continue  # gone since it was listed
            found.append(known)
        return found

    def _paths(self) -> Iterable[str]:
        if os.path.isdir(self.where):
            with os.scandir(self.where) as entries:
                found = [each for each in entries if not each.name.startswith(".")]
                return [each.path for each in found if each.is_file()]
        if not has_magic(self.where) and not os.path.exists(os.path.dirname(self.where)):
            raise RotationError(f"{self.where} does not exist: name a folder or a pattern")
        return [path for path in glob(self.where) if os.path.isfile(path)]

    def shown(self, path: str) -> str:
        """The name that the user gave."""
        return os.path.relpath(path) if self._relative else path

    def new(self, taken: Mapping[str, Rotated], last: Rotated | None) -> list[Rotated]:
        """Those not taken yet, in order. ``taken`` has what was known by a stem when it was taken
        last, ``last`` is the last of them.

        Raises RotationError where a file has changed since it was taken, or belongs in front of
        one that was: then rows would be wrong, or lost.
        """
        new: dict[tuple[str, int | None], Rotated] = {}
        for each in sorted(self.files(), key=lambda each: each.name):
            if not _was_taken(each, taken.get(each.stem)):
                # Beside its compressed copy, while that is being made.
                new.setdefault((each.stem, each.first_ns), each)
        ordered = in_order(new.values(), last)
        if ordered and last is not None and _steps_back([last, ordered[0]]):
            raise RotationError(
                f"{ordered[0].path} begins before {last.path}, which has already been read: "
                "captures must appear in the order in which they were written"
            )
        return ordered


def _first_ns(path: str) -> int | None:
    if kind_of(path) != "capture":
        raise RotationError(f"{path} is not a capture: use a pattern that excludes it")
    with Capture(path) as capture:
        return next((each.timestamp_ns for each in capture if isinstance(each, Packet)), None)


def _was_taken(now: Rotated, before: Rotated | None) -> bool:
    if before is None or now.first_ns != before.first_ns:
        return False  # a ring may use the name again
    if now.path != before.path or now.size == before.size:
        return True
    raise RotationError(
        f"{now.path} changed although there is a newer file: two programs may be capturing to the "
        "same folder"
    )


def in_order(files: Iterable[Rotated], last: Rotated | None) -> list[Rotated]:
    """Sort files as they were written; ``last`` was written before them."""
    named = sorted(files, key=lambda each: each.name)
    if last is not None:
        behind = last.name
        named.sort(key=lambda each: each.name <= behind)
    else:
        begin = _beginning(named)
        named = named[begin:] + named[:begin]
    if _steps_back(named):
        # What has no packets is placed by the clock of the file system.
        named.sort(key=lambda each: each.modified_ns if each.first_ns is None else each.first_ns)
    return named


def _beginning(named: Sequence[Rotated]) -> int:
    """Return where a ring begins: behind its only step back."""
    timed = [(number, each.first_ns) for number, each in enumerate(named) if each.first_ns]
    back = [number for (_, before), (number, after) in pairwise(timed) if before - after > SLACK_NS]
    return back[0] if len(back) == 1 else 0


def _steps_back(files: Sequence[Rotated]) -> bool:
    times = [each.first_ns for each in files if each.first_ns is not None]
    return any(before - after > SLACK_NS for before, after in pairwise(times))


def complete(ordered: Sequence[Rotated]) -> list[Rotated]:
    """Return the files in order that are no longer written to. A file without packets may be the
    one being written, unless another one was changed later."""
    newest = max((each.modified_ns for each in ordered), default=0)
    found = []
    for each in ordered[:-1]:
        if each.first_ns is None and each.modified_ns == newest:
            break
        found.append(each)
    return found


def require_unchanged(files: Iterable[Rotated]) -> None:
    """Raise RotationError if a file has changed since it was chosen."""
    for file in files:
        try:
            about = os.stat(file.path)
            same = about.st_size == file.size and (
                about.st_mtime_ns == file.modified_ns or _first_ns(file.path) == file.first_ns
            )
        except FileNotFoundError:
            raise RotationError(
                f"{file.path} was removed before its rows were committed: restore it, or start a "
                "new stream"
            ) from None
        if not same:
            raise RotationError(
                f"{file.path} changed before its rows were committed: allow more files in the ring "
                "(tcpdump -W, dumpcap -b files:)"
            )
