"""Divide captures into parts, and check that what tasks read is everything, without overlaps.

A job first trusts its guesses of where parts begin. If the notes of its tasks contradict them, or
show what the job has to know beforehand, its output is discarded, and it runs once more.

This module knows sizes and notes; only ``true_splits`` reads files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from struct import Struct
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from kproto.errors import KprotoError
from wiredump.readers.pcap import LARGEST_RECORD, RecordHeaders
from wiredump.spark.heads import CONTEXT_BLOCKS, Head, head_of
from wiredump.spark.order import in_order
from wiredump.spark.splits import Split
from wiredump.spark.survey import Surveyed, survey
from wiredump.storage import Location, RangedFile
from wiredump.tables.parts import Counts, SplitNote, summed

__all__ = [
    "Certain",
    "Learnt",
    "UnreadableError",
    "again",
    "packed",
    "parts_of",
    "plan",
    "read_of",
    "read_until_certain",
    "true_splits",
]

_ATTEMPTS: Final = 5
_LEAST_PART: Final = 16 << 20

_DECOMPRESSED: Final = 4
_FILE_COST: Final = 128 << 10
"""The bytes that are read in the time that opening a file and making its first rows takes."""

_READ: Final = 1 << 20
_RECORD: Final = 16
_BLOCK: Final = 12
_Result = TypeVar("_Result")


class UnreadableError(KprotoError):
    """Files changed while they were being read, or tasks failed."""


class Learnt(NamedTuple):
    """What only reading shows: whether there are fragments to join, TLS key logs, and the ports of
    brokers that decide what connections are whose bytes do not."""

    fragments: bool = False
    secrets: tuple[bytes, ...] = ()
    ports: tuple[int, ...] = ()


_NOTHING: Final = Learnt()


class Certain(NamedTuple, Generic[_Result]):
    """The result of a job and its notes, which nothing contradicts, with the parts and what else it
    needed. ``redone`` are the captures whose parts were guessed wrong."""

    result: _Result
    notes: list[SplitNote]
    splits: list[Split]
    learnt: Learnt
    redone: set[int]


def parts_of(size: int, split_bytes: int, cores: int) -> int:
    """Return the length of parts: no longer than requested, with equally many for every core, and
    not so short that starting a task takes longer than reading."""
    rounds = max(1, -(-size // (split_bytes * cores)))
    return min(split_bytes, max(_LEAST_PART, -(-size // (rounds * cores))))


def plan(
    paths: Iterable[tuple[int, str]], split_bytes: int, *, merged: bool = False,
    packets: bool = False, max_decompressed: int | None = None,
    surveyed: Mapping[int, Surveyed] | None = None,
) -> list[Split]:  # fmt: skip
    """Return parts of equal length of each capture (number and path), or one part if it cannot be
    divided. ``packets``: the table of that name is wanted. ``max_decompressed`` as in ``Capture``.
    ``surveyed`` are the captures if they are known; otherwise each is opened."""
    splits = []
    for capture, path in paths:
        place = Location(path)
        known = surveyed[capture] if surveyed is not None else survey({capture: path})[capture]
        _, size, version, whole = known
        step = max(size, 1) if whole else max(1, split_bytes)
        for start in range(0, max(size, 1), step):
            end = min(size, start + step)
            split = Split(path, capture, start, end, size, whole=whole, merged=merged)
            split.packets, split.version, split.carried = packets, version, not place.is_local
            split.max_decompressed = max_decompressed
            splits.append(split)
    return splits


def packed(splits: Iterable[Split], split_bytes: int) -> list[list[Split]]:
    """Return what each task reads: parts that follow each other, of at most ``split_bytes`` unless
    one is longer. A compressed one counts several times its bytes."""
    found: list[list[Split]] = []
    room = 0
    for split in splits:
        size = (split.end - split.start) * (_DECOMPRESSED if split.whole else 1) + _FILE_COST
        if size > room:
            found.append([])
            room = split_bytes
        found[-1].append(split)
        room -= size
    return found


def read_until_certain(
    job: Callable[[list[Split], Learnt], tuple[_Result, list[SplitNote]]],
    clear: Callable[[], object],
    splits: list[Split],
    split_bytes: int,
    learnt: Learnt = _NOTHING,
    counts_of: Callable[[_Result], Iterable[Counts]] = lambda result: (),
) -> Certain[_Result]:
    """Run a job, which returns its result and notes, until nothing contradicts the notes, nor what
    ``counts_of`` finds in the result; ``clear`` removes what an attempt wrote. Raises
    UnreadableError if the files keep changing."""
    redone: set[int] = set()
    for attempt in range(_ATTEMPTS):
        if attempt:
            clear()
        result, notes = job(splits, learnt)
        fragments = learnt.fragments or any(note.fragments for note in notes)
        secrets = {each for note in notes for each in note.secrets}
        counts = summed(counts_of(result))
        ports = {*learnt.ports, *(counts.kafka_ports & counts.doubtful_ports)}
        found = Learnt(fragments, tuple(sorted(secrets)), tuple(sorted(ports)))
        repeated = again(splits, notes, split_bytes)
        if not repeated and found == learnt:
            return Certain(result, notes, splits, learnt, redone)
        learnt, wrong = found, {split.capture for split in repeated}
        if attempt:  # a pcapng whose packets have no times, say: only one task gets them right
            repeated = [split.of_whole_file() for split in repeated if split.start == 0]
        splits = [split for split in splits if split.capture not in wrong] + repeated
        redone |= wrong
    raise UnreadableError("the files keep changing while they are being read")


def read_of(notes: Iterable[SplitNote]) -> dict[int, int]:
    """Return the bytes read of each capture."""
    found: dict[int, int] = {}
    for note in notes:
        found[note.capture] = min(note.read, found.get(note.capture, note.read))
    return found


def again(splits: list[Split], notes: Iterable[SplitNote], split_bytes: int) -> list[Split]:
    """Return parts of the captures that have to be read once more; none if everything is right."""
    by_capture: dict[int, list[SplitNote]] = defaultdict(list)
    for note in notes:
        by_capture[note.capture].append(note)
    found = []
    for first in (split for split in splits if split.start == 0):
        mine = sorted(by_capture[first.capture], key=lambda note: note.start)
        whole = first.of_whole_file()
        if first.merged and (not in_order(mine) or any(note.trouble for note in mine)):
            if not all(note.single for note in mine):
                found.append(first.of_whole_file(single=True))
        elif mine and all(note.whole for note in mine):
            continue
        elif any(note.damaged or note.trouble for note in mine):
            found.append(whole)
        elif not _closes(mine, first.size) or _contexts_in_between(mine):
            found += true_splits(first, split_bytes) or [whole]
    return found


def _closes(notes: list[SplitNote], size: int) -> bool:
    """Whether each part begins where the previous one ended."""
    position = notes[0].first if notes else None
    for note in notes:
        if position == size and not note.packets:
            continue  # behind the last whole record
        if note.first is None or note.first != position:
            return False
        position = note.end
    return position == size


def _contexts_in_between(notes: list[SplitNote]) -> bool:
    """Whether a part was read without a block that it depends on, which is in another part."""
    seen = False
    for note in notes:
        if seen and note.packets and not note.contexts_known:
            return True
        seen = seen or bool(note.contexts)
    return False


def true_splits(split: Split, split_bytes: int) -> list[Split]:
    """Return the parts of a capture, each of which begins with a record, by walking from record to
    record. None if that reaches something that cannot be a record."""
    with Location(split.path).open_ranged() as file:
        file.require(split.version)
        head = head_of(file)
        if head is None:
            return []
        if head.format == "pcap":
            ends = _records(file, head, split.size)
        else:
            ends = _blocks(file, head.first, split.size, head.order)
        starts, contexts, known = [0], [[]], []  # type: ignore[var-annotated]
        position = head.first
        for end, is_context in ends:
            if end < 0:
                return []
            if position >= starts[-1] + max(1, split_bytes) and position > head.first:
                starts.append(position)
                contexts.append(list(known))
            if is_context:
                known.append((position, end - position))
            position = end
    ends_of = [*starts[1:], split.size]
    return [
        msgspec.structs.replace(
            split, start=start, end=end, exact=True, whole=False, contexts=context
        )
        for start, end, context in zip(starts, ends_of, contexts, strict=True)
    ]


class _Bytes:
    """The headers of a file, read in blocks."""

    def __init__(self, file: RangedFile) -> None:
        self._file = file
        self._data = b""
        self._base = 0

    def at(self, position: int, length: int) -> bytes:
        start = position - self._base
        if start < 0 or start + length > len(self._data):
            self._data, self._base, start = self._file.read_at(position, _READ), position, 0
        return self._data[start : start + length]


def _records(file: RangedFile, head: Head, size: int) -> Iterator[tuple[int, bool]]:
    """Yield where each record ends; -1 for one that is invalid."""
    data, position = _Bytes(file), head.first
    headers = RecordHeaders(head.order, head.nanoseconds, head.limit, head.seconds)
    while position + _RECORD <= size:
        header = headers.unpack(data.at(position, _RECORD))
        position += _RECORD + header[2]
        if headers.problem(*header):
            yield -1, False
            return
        if position <= size:
            yield position, False


def _blocks(file: RangedFile, position: int, size: int, order: str) -> Iterator[tuple[int, bool]]:
    """Yield where each block ends, and whether later packets depend on it."""
    data = _Bytes(file)
    while position + _BLOCK <= size:
        head = data.at(position, _BLOCK)
        block, length = Struct(order + "II").unpack_from(head)
        if block in CONTEXT_BLOCKS and block != 1:
            order = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}.get(head[8:12], "")
            length = Struct(order + "I").unpack_from(head, 4)[0] if order else 0
        if length < _BLOCK or length & 3 or length > LARGEST_RECORD:
            yield -1, False
            return
        position += length
        if position <= size:
            yield position, block in CONTEXT_BLOCKS
