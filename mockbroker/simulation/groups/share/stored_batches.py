"""What the share coordinator keeps of a share partition's records, as batches of offsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import Final, NamedTuple

from mockbroker.simulation.groups.share.deliveries import RecordState

__all__ = ["STATE_IDS", "StateBatch", "WrittenState", "combine"]


class StateBatch(NamedTuple):
    """What the share coordinator keeps of the records from ``first`` to ``last``: the number of
    their state (``STATE_IDS``), and how often they were delivered."""

    first: int
    last: int
    state: int
    deliveries: int


class WrittenState(NamedTuple):
    """A state that a leader stores. ``start_offset`` -1 keeps the former one."""

    start_offset: int
    complete: int
    batches: Sequence[StateBatch]


STATE_IDS: Final = {RecordState.AVAILABLE: 0, RecordState.ACKNOWLEDGED: 2, RecordState.ARCHIVED: 4}
"""The states that are stored. An acquisition is not: its leader alone knows of it."""


def combine(batches: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """Return the batches behind the start offset without overlaps: of each record the state with
    the most deliveries counts, and of these the highest. Neighbours of one state are joined."""
    kept = [
        batch._replace(first=max(batch.first, start_offset))
        for batch in batches
        if batch.last >= start_offset
    ]
    kept.sort(key=lambda each: each.first, reverse=True)
    edges = sorted({batch.first for batch in kept} | {batch.last + 1 for batch in kept})
    combined: list[StateBatch] = []
    over: list[tuple[int, int, int, StateBatch]] = []
    for first, end in pairwise(edges):
        while kept and kept[-1].first <= first:
            each = kept.pop()
            heappush(over, (-each.deliveries, -each.state, -each.last, each))
        while over and over[0][-1].last < first:
            heappop(over)
        if not over:
            continue
        top = over[0][-1]
        last = combined[-1] if combined else None
        if last is not None and last.last + 1 == first and last[2:] == top[2:]:
            combined[-1] = last._replace(last=end - 1)
        else:
            combined.append(top._replace(first=first, last=end - 1))
    return combined
