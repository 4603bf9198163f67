"""Rotating captures as ``tcpdump -C``, ``-G``, ``-W`` and ``dumpcap -b`` write them: find the
files, their order, and which of them are complete.

The order is that of the names, with numbers compared as numbers (``a.pcap2`` before ``a.pcap10``).
A ring reuses its names: it continues behind the last file read or, before the first one was read,
where the times of first packets step back. If names contradict those times otherwise, the times
decide; but the next numbers after the last file read, while that is still there, come next even if
the clock was set back.

A file is complete once there is a newer one. A file that begins as another one does is a copy, or
was renamed. Only the beginnings of files are read here, and files that are neither captures nor
journals nor logs are left alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import islice, pairwise
from typing import Final, NamedTuple

import msgspec

from kproto.errors import KprotoError
from wiredump.readers import Capture, Packet
from wiredump.sources.kinds import Kind, known_kind
from wiredump.storage import Info, Location, absolute, has_magic, is_uri, matches, shown

__all__ = [
    "SLACK_NS",
    "Fault",
    "FaultError",
    "Found",
    "Rotated",
    "Rotation",
    "RotationError",
    "as_it_is",
    "complete",
    "in_order",
    "require_unchanged",
]

SLACK_NS: Final = 1_000_000_000
"""Packets of several queues or interfaces are not quite in the order of time: a step back up to
this does not affect the order of files."""
_PACKED: Final = (".gz", ".zst")
_HEAD_PACKETS: Final = 3
"""Packets that distinguish a capture from any other one."""
_HEAD_BYTES: Final = 512
"""The same of a journal or log."""
GO_ON: Final = "--on-bad-file skip goes on without it"


class RotationError(KprotoError):
    """Files cannot be the parts of one capture. The message names them and the reason."""


class FaultError(RotationError):
    """A file is late, has changed or is gone."""


class Rotated(msgspec.Struct, frozen=True):
    """A file. ``first_ns`` is the time of its first packet; None without packets, and for the text
    of a journal or log. ``head`` is a digest of its beginning, odd for a file that has no more than
    that and may grow; 0 for one that has nothing."""

    path: str
    size: int
    modified_ns: int
    first_ns: int | None
    kind: Kind = "capture"
    head: int = 0

    @property
    def name(self) -> tuple[str | int, ...]:
        """The sort key."""
        return _numbered(self.path)

    @property
    def stem(self) -> str:
        """The path before compression."""
        return _stem(self.path)


def _numbered(path: str) -> tuple[str | int, ...]:
    parts = re.split(r"(\d+)", path)
    return tuple(int(part) if number % 2 else part for number, part in enumerate(parts))


def _stem(path: str) -> str:
    suffix = next((each for each in _PACKED if path.endswith(each)), "")
    return path.removesuffix(suffix)


class Fault(NamedTuple):
    """A file that cannot be read at its place in the stream, and the reason."""

    file: Rotated
    reason: str


class Found(NamedTuple):
    """New files in order, and those that are at fault."""

    files: list[Rotated]
    faults: list[Fault]


class Rotation:
    """The files of a folder (without hidden ones), or those that match a pattern. Either may be a
    URI. Files among ``known`` that have not changed are not opened."""

    def __init__(self, where: str, known: Iterable[Rotated] = ()) -> None:
        self.where = absolute(where)
        self._relative = not is_uri(where) and not os.path.isabs(where)
        self._known: dict[str, Rotated] = {each.path: each for each in known}
        self._others: dict[str, tuple[int, int]] = {}
        self._unreadable: dict[str, Fault] = {}

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
        """Return all captures, journals and logs, in no order. Raises RotationError if ``where``
        does not exist."""
        found: dict[str, Rotated] = {}
        others: dict[str, tuple[int, int]] = {}
        self._unreadable = {}
        for path, about in self._paths():
            state = about.size, about.modified_ns
            known = self._known.get(path)
            if known is not None and (known.size, known.modified_ns) == state:
                found[path] = known
            elif self._others.get(path) == state:
                others[path] = state
            else:
                try:
                    read = _read(path, *state)
                except FileNotFoundError:
                    continue  # gone since it was listed
                except OSError as error:
                    reason = (
                        f"{shown(path)} cannot be read: {error.strerror or error}. Correct this, "
                        f"and start again; {GO_ON}"
                    )
                    self._unreadable[path] = Fault(Rotated(path, *state, None), reason)
                    continue
                if read is None:
                    others[path] = state
                else:
                    found[path] = read
        self._known, self._others = found, others
        return list(found.values())

    @property
    def others(self) -> list[str]:
        """The paths of files that are neither captures nor journals nor logs."""
        return sorted(self._others)

    @property
    def stems(self) -> set[str]:
        """The stems of the files that were there at the last look."""
        return {_stem(path) for path in (*self._known, *self._unreadable)}

    def listed_stems(self) -> set[str]:
        """Return the stems of all files, without opening any."""
        return {_stem(path) for path, _ in self._paths()}

    def _paths(self) -> Iterable[tuple[str, Info]]:
        place = Location(self.where)
        if place.is_dir():
            listed = place.listed(recursive=False)
            found = [(str(place / name), about) for name, about in listed if name[0] != "."]
        else:
            found = list(matches(self.where))
        if not found:
            self.require()
        files = {path for path, about in found if about.is_file}
        base = self._folder()
        known = files if base is None else {*self._known, *self._others}
        return [
            (path, about)
            for path, about in found
            if path in files and (path in known or not _is_second_name(path, str(base), files))
        ]

    def _folder(self) -> str | None:
        """The local folder that all files are in; None for a URI."""
        place = Location(self.where)
        while has_magic(str(place)):
            place = place.parent
        return place.path if place.is_local else None

    def shown(self, path: str) -> str:
        """The name that the user gave."""
        return os.path.relpath(path) if self._relative else shown(path)

    def new(
        self, taken: Mapping[str, Rotated], last: Rotated | None,
        heads: Mapping[int, str] | None = None,
    ) -> Found:  # fmt: skip
        """Return those not taken yet, in order. ``taken`` has what was known by a stem when it was
        taken last, ``last`` is the last of them, and ``heads`` has the paths of files that were
        read, by their beginnings.

        A file that has changed since it was taken is at fault, and so is one that belongs in front
        of one that was taken: its rows would be wrong, or out of order. So is a copy, and one that
        cannot be opened.
        """
        faults = []
        new: dict[tuple[str, int | None], Rotated] = {}
        untaken = []
        files = self.files()
        for fault in self._unreadable.values():
            if taken.get(fault.file.stem) != fault.file:
                faults.append(fault)
        for each in files:
            before = taken.get(each.stem)
            if before is None or each.first_ns != before.first_ns:
                untaken.append(each)  # a ring may use the name again
            elif each.path == before.path and each.size != before.size:
                reason = (
                    f"{shown(each.path)} changed although there is a newer file: two programs may "
                    f"be capturing to the same folder. Restore it; {GO_ON}"
                )
                faults.append(Fault(each, reason))
        read, newest = dict(heads or {}), _still(last, files)
        behind: list[Rotated] = []  # with the next numbers
        rest: list[Rotated] = []
        for each in sorted(untaken, key=lambda each: each.name):
            if (each.stem, each.first_ns) in new:
                continue  # beside its compressed copy, while that is being made
            follows = newest is not None and _succeeds(newest, each)
            if each.head in read:
                reason = (
                    f"{shown(each.path)} begins as {shown(read[each.head])} does: it is a copy, or "
                    f"was renamed after it was read. Remove it, or rename it back; {GO_ON}"
                )
                faults.append(Fault(each, reason))
                continue
            if last is not None and not follows and _steps_back([last, each]):
                reason = (
                    f"{shown(each.path)} begins before {shown(last.path)}, which has already been "
                    "read: captures must appear in the order in which they were written. Move it "
                    f"away, and read it with wiredump spark --mode append; {GO_ON}"
                )
                faults.append(Fault(each, reason))
                continue
            new[each.stem, each.first_ns] = each
            if each.head:
                read[each.head] = each.path
            if follows:
                behind.append(each)
                newest = each
            else:
                rest.append(each)
        return Found([*behind, *in_order(rest, behind[-1] if behind else last)], faults)


def _still(last: Rotated | None, files: Iterable[Rotated]) -> Rotated | None:
    """Return the last file, if it is still there: then a ring has not reused its name, and no file
    behind it is older."""
    if last is None:
        return None
    there = ((each.stem, each.first_ns) for each in files)
    return last if (last.stem, last.first_ns) in there else None


def _succeeds(before: Rotated, after: Rotated) -> bool:
    """Whether a file has the next number: ``a.pcap3`` after ``a.pcap2``, ``a.pcap1`` after
    ``a.pcap``."""
    old, new = _numbered(before.stem), _numbered(after.stem)
    if len(old) != len(new):
        return new == (*old[:-1], f"{old[-1]}", 1, "")
    other = [number for number, part in enumerate(old) if part != new[number]]
    if len(other) != 1 or other[0] % 2 == 0:
        return False
    return new[other[0]] == int(old[other[0]]) + 1


def _is_second_name(path: str, base: str, listed: Collection[str]) -> bool:
    """Whether a path leads, by symbolic links, to a file that is listed as well."""
    real, place = os.path.realpath(path), os.path.realpath(base)
    if real == os.path.join(place, os.path.relpath(path, base)):
        return False
    return os.path.join(base, os.path.relpath(real, place)) in listed


def _read(path: str, size: int, modified_ns: int) -> Rotated | None:
    """Read the beginning of a file; None for a kind that is not read."""
    kind = known_kind(path)
    if kind in ("journal", "request log"):
        with Location(path).open() as file:
            text = file.read(_HEAD_BYTES)
        return Rotated(
            path, size, modified_ns, None, kind, _digest([text], len(text) < _HEAD_BYTES)
        )
    if kind != "capture":
        return None
    return Rotated(path, size, modified_ns, *_beginning_of(path))


def _beginning_of(path: str) -> tuple[int | None, Kind, int]:
    """Return the time of the first packet of a capture, its kind, and the digest of its head."""
    with Location(path).open() as file, Capture(file) as capture:
        packets = (each for each in capture if isinstance(each, Packet))
        found = [(each.timestamp_ns, bytes(each.data)) for each in islice(packets, _HEAD_PACKETS)]
    parts = [part for at, data in found for part in (b"%d " % at, data)]
    head = _digest(parts, len(found) < _HEAD_PACKETS)
    return found[0][0] if found else None, "capture", head


def _digest(parts: Sequence[bytes], may_grow: bool) -> int:
    found = blake2b(digest_size=7)
    for each in parts:
        found.update(each)
    return int.from_bytes(found.digest()) << 1 | may_grow if any(parts) else 0


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


def as_it_is(file: Rotated) -> Rotated:
    """Return a file that was chosen as it is now: perhaps it has grown since. Raises FaultError if
    it is another one, or gone."""
    try:
        about = Location(file.path).info()
        if (about.size, about.modified_ns) == (file.size, file.modified_ns):
            return file
        now = _read(file.path, about.size, about.modified_ns)
    except FileNotFoundError:
        raise FaultError(
            f"{shown(file.path)} was removed before its rows were committed: restore it; {GO_ON}"
        ) from None
    if now is None or now.kind != file.kind or not _begins_as(now, file):
        raise FaultError(
            f"{shown(file.path)} changed before its rows were committed: restore it, and allow "
            f"more files in the ring (tcpdump -W, dumpcap -b files:); {GO_ON}"
        )
    return now


def _begins_as(now: Rotated, before: Rotated) -> bool:
    same = now.first_ns == before.first_ns and now.size >= before.size
    return same and (before.head in (0, now.head) or before.head & 1 == 1)


def require_unchanged(file: Rotated) -> None:
    """Raise FaultError if a file has changed while it was read."""
    if as_it_is(file).size != file.size:
        raise FaultError(
            f"{shown(file.path)} grew while it was read: start again when it is complete; {GO_ON}"
        )
