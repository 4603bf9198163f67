"""Decide whether packets that many tasks read can be sorted by time alone.

One process merges several captures within a window (``readers.merge``): a packet keeps its place by
time unless more than ``WINDOW`` later packets of its capture came before it. Each task notes the
greatest possible number in its part; this module combines the parts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from wiredump.readers import Anomaly, Packet
from wiredump.readers.merge import WINDOW
from wiredump.tables.parts import SplitNote

__all__ = ["in_order", "note_times"]

_KEPT: Final = WINDOW + 1
_Ints: TypeAlias = npt.NDArray[np.int64]


def note_times(note: SplitNote, found: Iterable[Any]) -> None:
    """Note the times of a chunk: of packets and anomalies, and of packets in bulk."""
    alone: list[Packet | Anomaly] = []
    places: list[_Ints] = []
    times: list[_Ints] = []
    for each in found:
        if isinstance(each, (Packet, Anomaly)):
            alone.append(each)
            continue
        for to, part in zip((places, times), each.times(), strict=True):
            to.append(np.frombuffer(part, np.int64))
    if any(isinstance(each, Anomaly) for each in alone):
        note.trouble = note.trouble or "what cannot be read has a place in the order of time"
    places.append(np.array([each.offset for each in alone], np.int64))
    times.append(np.array([each.timestamp_ns for each in alone], np.int64))
    by_place = np.argsort(np.concatenate(places), kind="stable")
    _note(note, np.concatenate(times)[by_place])


def _note(note: SplitNote, times: _Ints) -> None:
    if not len(times):
        return
    earliest = int(times.min())
    # How many came before that are later: of this chunk, and of those before it.
    highest = np.maximum.accumulate(times)
    first_later = np.searchsorted(highest, times, side="right")
    inside = int((np.arange(len(times)) - first_later).max(initial=0))
    note.late = max(note.late, inside + _later(note.latest, earliest))
    note.earliest = earliest if note.earliest is None else min(note.earliest, earliest)
    newest = np.sort(np.concatenate([np.array(note.latest, np.int64), times]))[-_KEPT:]
    note.latest = newest.tolist()


def _later(latest: list[int], time: int) -> int:
    return len(latest) - bisect_right(latest, time)


def in_order(notes: Iterable[SplitNote]) -> bool:
    """Whether time alone gives the order of one capture with these parts, which are in order."""
    latest: list[int] = []
    for note in notes:
        if note.earliest is None:
            continue
        if note.late + _later(latest, note.earliest) > WINDOW:
            return False
        latest = sorted(latest + note.latest)[-_KEPT:]
    return True
