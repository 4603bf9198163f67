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
from itertools import pairwise
from typing import Final

import msgspec

from kproto.errors import KprotoError
from wiredump.readers import Capture, Packet
from wiredump.sources.kinds import kind_of
from wiredump.storage import Info, Location, absolute, has_magic, is_uri, matches, shown

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
        place = Location(self.path)
        for suffix in _PACKED:
            if place.name.endswith(suffix):
                return str(place.parent / place.name.removesuffix(suffix))
        return self.path


class Rotation:
    """The files of a folder (without hidden ones), or those that match a pattern. Either may be a
    URI."""

    def __init__(self, where: str) -> None:
        self.where = absolute(where)
        self._relative = not is_uri(where) and not os.path.isabs(where)
        self._known: dict[str, Rotated] = {}

    def require(self) -> None:
        """Raise RotationError if the folder does not exist. An object store has no empty folders;
        there, raise StorageError if the bucket does not exist."""
        folder = Location(self.where)
        while has_magic(str(folder)):
            folder = folder.parent
        if not folder.exists() and not folder.is_object:
            raise RotationError(
                f"{folder.shown} does not exist: check --follow, or create the folder to which "
                "captures are written"
            )

    def files(self) -> list[Rotated]:
        """Return all files, in no order. Raises RotationError for a file that is not a capture, and
        if ``where`` does not exist."""
        found = []
        for path, about in self._paths():
            known = self._known.get(path)
            if known is None or (known.size, known.modified_ns) != about[:2]:
                try:
                    known = Rotated(path, about.size, about.modified_ns, _first_ns(path))
                except FileNotFoundError:
                    continue  # gone since it was listed
                self._known[path] = known
            found.append(known)
        return found

    def _paths(self) -> Iterable[tuple[str, Info]]:
        place = Location(self.where)
        if place.is_dir():
            listed = place.listed(recursive=False)
            found = [(str(place / name), about) for name, about in listed if name[0] != "."]
        else:
            found = list(matches(self.where))
        if not found:
            self.require()
        return [(path, about) for path, about in found if about.is_file]

    def shown(self, path: str) -> str:
        """The name that the user gave."""
        return os.path.relpath(path) if self._relative else shown(path)

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
                f"{shown(ordered[0].path)} begins before {shown(last.path)}, which has already "
                "been read: captures must appear in the order in which they were written"
            )
        return ordered


def _first_ns(path: str) -> int | None:
    if kind_of(path) != "capture":
        raise RotationError(f"{shown(path)} is not a capture: use a pattern that excludes it")
    with Location(path).open() as file, Capture(file) as capture:
        return next((each.timestamp_ns for each in capture if isinstance(each, Packet)), None)


def _was_taken(now: Rotated, before: Rotated | None) -> bool:
    if before is None or now.first_ns != before.first_ns:
        return False  # a ring may use the name again
    if now.path != before.path or now.size == before.size:
        return True
    raise RotationError(
        f"{shown(now.path)} changed although there is a newer file: two programs may be capturing "
        "to the same folder"
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
            about = Location(file.path).info()
            same = about.size == file.size and (
                about.modified_ns == file.modified_ns or _first_ns(file.path) == file.first_ns
            )
        except FileNotFoundError:
            raise RotationError(
                f"{shown(file.path)} was removed before its rows were committed: restore it, or "
                "start a new stream"
            ) from None
        if not same:
            raise RotationError(
                f"{shown(file.path)} changed before its rows were committed: allow more files in "
                "the ring (tcpdump -W, dumpcap -b files:)"
            )
