"""Damage real captures in random places, and know what has to survive.

Captures of real traffic are written in any format (``FORMS``), and some of their bytes are
overwritten, cut out, inserted, repeated or filled with zeros. A record survives if it is at least
one record away from every such place. A seed gives the same file each time.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from struct import unpack_from
from typing import Final, NamedTuple

from tests.captures.test_captures import uncompressed
from tests.wiredump.readers.containers import Form
from wiredump.readers import Anomaly, Packet
from wiredump.readers.pcap import RECORD_HEADER, PcapReader

FORMS: Final = tuple(Form(name, order) for name in ("pcap", "pcap-ns", "pcapng") for order in "<>")
CAPTURES: Final = (
    "kafka-3.9.2-admin",
    "kafka-3.9.2-brokers",
    "kafka-4.4.0-admin",
    "kafka-4.4.0-everyday-1",
    "mock-2.4",
)
KINDS: Final = ("overwritten", "cut", "inserted", "repeated", "zeros")
_APART: Final = 12
"""The fewest records between two damaged places."""


class Record(NamedTuple):
    time: int
    data: bytes


class Damaged(NamedTuple):
    """``what`` lists the kinds of damage and where they are; ``survivors`` are in order."""

    data: bytes
    what: list[tuple[str, int, int]]
    survivors: list[Record]


@cache
def records_of(name: str) -> tuple[Record, ...]:
    """Return the packets of a real capture."""
    found = PcapReader().feed(uncompressed(name))
    return tuple(
        Record(each.timestamp_ns, bytes(each.data)) for each in found if isinstance(each, Packet)
    )


def damaged(rng: random.Random, form: Form, name: str = "", most: int = 600) -> Damaged:
    """Return at most so many records of a capture in this form, damaged in one to three places."""
    records = records_of(name or rng.choice(CAPTURES))
    first = rng.randrange(max(1, len(records) - most))
    records = records[first : first + most]
    pieces = [form.header(), *(form.record(*divmod(t, 10**9), d, 0) for t, d in records)]
    starts = [0]
    for piece in pieces:
        starts.append(starts[-1] + len(piece))
    data = b"".join(pieces)
    lost, what = set[int](), []
    at = len(data)
    for _ in range(rng.randint(1, 3)):  # from the end on, so that earlier places stay right
        number = _record_at(starts, at) - _APART
        if number <= 1:
            break
        until = starts[number]
        begin = rng.randrange(len(pieces[0]), until)
        size = min(rng.choice((1, 4, 16, 100, 1_000, 5_000, 30_000)), until - begin)
        kind = rng.choice(KINDS)
        data = _with(data, begin, size, kind, rng)
        what.append((kind, begin, size))
        touched = 0 if kind in ("inserted", "repeated") else size
        lost.update(range(_record_at(starts, begin) - 1, _record_at(starts, begin + touched) + 2))
        at = begin
    return Damaged(data, what, [r for n, r in enumerate(records) if n + 1 not in lost])


def _record_at(starts: list[int], at: int) -> int:
    """Return the number of the piece that has a byte; the file's head is 0."""
    return max(n for n, start in enumerate(starts) if start <= at)


def _with(data: bytes, at: int, size: int, kind: str, rng: random.Random) -> bytes:
    if kind == "inserted":
        return data[:at] + rng.randbytes(size) + data[at:]
    if kind == "repeated":
        return data[: at + size] + data[at:]
    new = {"overwritten": rng.randbytes(size), "cut": b"", "zeros": bytes(size)}[kind]
    return data[:at] + new + data[at + size :]


def missing(found: Iterable[Record], survivors: list[Record]) -> list[Record]:
    """Return the survivors that are not in ``found``, in the same order."""
    places: dict[Record, list[int]] = defaultdict(list)
    for number, each in enumerate(found):
        places[each].append(number)
    lacking, last = [], -1
    for each in survivors:
        following = next((number for number in places[each] if number > last), None)
        if following is None:
            lacking.append(each)
        else:
            last = following
    return lacking


def uncovered(found: Iterable[Packet | Anomaly], form: Form, file: bytes) -> list[tuple[int, int]]:
    """Return the ranges of a file's bytes that are in no record or block, and not counted as
    lost."""
    covered = [(0, len(form.header()))]
    for each in found:
        if isinstance(each, Anomaly):
            covered.append((each.offset, each.offset + each.lost))
        elif form.name != "pcapng":
            covered.append((each.offset, each.offset + RECORD_HEADER + len(each.data)))
    gaps, end = [], 0
    for begin, until in [*sorted(covered), (len(file), len(file))]:
        while end < begin and form.name == "pcapng":  # packets, and blocks that are passed over
            (length,) = unpack_from(form.order + "I", file, end + 4)
            if unpack_from(form.order + "I", file, end + length - 4) != (length,):
                break
            end += length
        if begin > end:
            gaps.append((end, begin))
        end = max(end, until)
    return gaps
