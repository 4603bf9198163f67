"""Runs: packets between the same two ends, as their positions in captures. Tasks exchange runs
instead of a row for each packet.

A run is an array of ``ENTRY``, in the order in which one process would read the packets of the
capture. ``RunRows`` collects packets; ``Merging`` puts runs and single packets back in order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wiredump.spark.columns import PACKET_SCHEMA, RUN

__all__ = ["ENTRY", "LONGEST", "Entries", "Merging", "RunRows"]

ENTRY: Final = np.dtype(
    [
        ("place", "=i8"), ("time", "=i8"), ("captured", "=u4"), ("original", "=u4"),
        ("capture", "=i4"), ("link", "=u2"), ("ahead", "=u2"),
    ]
)  # fmt: skip
"""``place`` is where the packet's record begins, its bytes are ``ahead`` behind that. In the
machine's own byte order: a run exists only within a job."""

Entries: TypeAlias = npt.NDArray[np.void]

LONGEST: Final = 1024
"""The most packets of a run, so that rows stay small."""
_HELD: Final = 1 << 16
"""The number of packets that are sorted by their ends together."""


class RunRows:
    """Collects packets with the extension, which finds ends and payloads by itself: ``add`` them,
    ``take`` rows; ``full`` says when. Different tasks may have the same ends: the rows' order sorts
    their packets."""

    def __init__(self, capture: int, merged: bool, module: ModuleType) -> None:
        self._capture = capture
        self._merged = merged
        self._runs = module.Runs(merged, LONGEST, int.from_bytes(os.urandom(8)) >> 2)

    @property
    def full(self) -> bool:
        return len(self._runs) >= _HELD

    def add(self, packets: Any) -> list[int]:
        """Add packets; returns the numbers of unusual ones."""
        return cast(list[int], self._runs.add(packets))

    def counts(self) -> tuple[int, int]:
        """Return packets and bytes of payload since the last call."""
        return cast(tuple[int, int], self._runs.counts())

    def take(self, chunk: bytes = b"", position: int = 0) -> Iterator[pa.RecordBatch]:
        """Return the rows of what was added since the last call, if any. If all of it is in the
        ``chunk`` of the file that begins at ``position``, rows carry the bytes of their packets in
        ``record``."""
        if not len(self._runs):
            return
        rows, (keys_at, keys, runs_at, runs, places, times, orders, sizes, _) = self._runs.take()
        known: dict[str, tuple[bytes, ...]] = {
            "packet": (places,), "ordinal": (places,), "order_ns": (orders,),
            "timestamp_ns": (times,), "payload_size": (sizes,), "key": (keys_at, keys),
            "payload": (runs_at, runs),
        }  # fmt: skip
        if chunk:
            known["record"] = _carried(chunk, position, runs_at, runs)
        same = {"kind": RUN, "capture": self._capture, "flags": int(self._merged)}
        yield pa.RecordBatch.from_arrays(
            [
                pa.Array.from_buffers(
                    field.type, rows, [None, *map(pa.py_buffer, known[field.name])]
                )
                if field.name in known
                else _same(same.get(field.name, 0), field.type, rows)
                for field in PACKET_SCHEMA
            ],
            schema=PACKET_SCHEMA,
        )


def _carried(chunk: bytes, position: int, runs_at: bytes, runs: bytes) -> tuple[bytes, bytes]:
    """Return the bytes of the packets of each run, in the form of Arrow's binary columns."""
    entries = np.frombuffer(runs, ENTRY)
    starts = entries["place"] + entries["ahead"] - position
    ends = starts + entries["captured"]
    data = b"".join([chunk[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)])
    sums = np.concatenate([[0], np.cumsum(entries["captured"], dtype=np.int32)])
    places = np.frombuffer(runs_at, np.int32) // ENTRY.itemsize
    return sums[places].astype(np.int32).tobytes(), data


def _same(value: int, type_: pa.DataType, rows: int) -> pa.Array:
    """Return a column of one number, or of nulls where the type has none."""
    if pa.types.is_boolean(type_) or pa.types.is_integer(type_):
        return pa.repeat(pa.scalar(value, pa.int64()).cast(type_), rows)
    return pa.nulls(rows, type_)


# ---- back in order ------------------------------------------------------------------------------


Order: TypeAlias = tuple[int, int, int]
"""``order_ns``, ``capture``, ``ordinal``."""


class _Run(NamedTuple):
    """The rest of a run. ``merged``: packets are sorted by time first. ``data`` has the bytes of
    the packets, one after the other; None if they are to be read from the capture."""

    entries: Entries
    capture: int
    merged: bool
    data: memoryview | None

    @property
    def head(self) -> Order:
        first = self.entries[0]
        return int(first["time"]) if self.merged else 0, self.capture, int(first["place"])

    def before(self, order: Order) -> int:
        """Return how many packets come before a place."""
        time, capture, place = order
        entries = self.entries
        first, last = 0, len(entries)
        if self.merged:
            first = int(np.searchsorted(entries["time"], time, "left"))
            last = int(np.searchsorted(entries["time"], time, "right"))
        elif time != 0:
            return len(entries) if time > 0 else 0
        if capture != self.capture:
            return last if self.capture < capture else first
        return first + int(np.searchsorted(entries["place"][first:last], place, "left"))


class Merging:
    """Rows come sorted by their first packet. ``give`` is called with consecutive runs and the
    bytes of their packets, or None; at most ``most`` packets are held back for it."""

    def __init__(
        self, give: Callable[[Entries, bytes | None], object], most: int = 8 * LONGEST
    ) -> None:
        self._give = give
        self._most = most
        self._runs: list[_Run] = []
        self._ready: list[Entries] = []
        self._data: list[memoryview] = []
        self._number = 0

    def add(self, order: Order, run: bytes, merged: bool, data: bytes | None = None) -> None:
        """Add a run whose first packet has this place, with the bytes of its packets or without."""
        if self._runs:
            self._before(order)
        view = None if data is None else memoryview(data)
        self._runs.append(_Run(np.frombuffer(run, ENTRY), order[1], merged, view))

    def until(self, order: Order | None) -> None:
        """Return everything before a place; everything for None."""
        if self._runs:
            self._before(order)
        self._flush()

    def _before(self, order: Order | None) -> None:
        runs = self._runs
        while runs:
            if len(runs) > 1:
                runs.sort(key=_head)
            if order is not None and runs[0].head >= order:
                return
            limit = order
            if len(runs) > 1:
                limit = runs[1].head if order is None else min(order, runs[1].head)
            self._cut(len(runs[0].entries) if limit is None else max(1, runs[0].before(limit)))

    def _cut(self, count: int) -> None:
        """The first of a run are next."""
        run = self._runs[0]
        taken, rest, data = run.entries[:count], run.entries[count:], run.data
        if self._ready and bool(self._data) != (data is not None):
            self._flush()
        self._ready.append(taken)
        self._number += count
        if data is not None:
            size = int(taken["captured"].sum())
            self._data.append(data[:size])
            data = data[size:]
        if len(rest):
            self._runs[0] = run._replace(entries=rest, data=data)
        else:
            del self._runs[0]
        if self._number >= self._most:
            self._flush()

    def _flush(self) -> None:
        ready = self._ready
        if ready:
            data = b"".join(self._data) if self._data else None
            self._give(np.concatenate(ready) if len(ready) > 1 else ready[0], data)
        self._ready, self._data, self._number = [], [], 0


def _head(run: _Run) -> Order:
    return run.head
