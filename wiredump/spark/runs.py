"""Runs: packets between the same two ends, as their positions in captures. Tasks exchange runs
instead of a row for each packet.

A run is an array of ``ENTRY``, in the order in which one process would read the packets of the
capture. ``RunRows`` collects usual packets; ``Merging`` puts runs and single packets back in order.
With the extension if it is built, else with numpy; both make the same rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wiredump.spark.columns import PACKET_SCHEMA, RUN, binaries

__all__ = ["ENTRY", "LONGEST", "Entries", "Merging", "QuickRuns", "RunRows"]

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
    """``add`` packets, ``take`` rows; ``full`` is when. Different tasks may have the same ends: the
    rows' order sorts their packets."""

    def __init__(self, capture: int, merged: bool) -> None:
        self._capture = capture
        self._merged = merged
        self._parts: list[tuple[Entries, npt.NDArray[np.uint8], npt.NDArray[np.int64]]] = []
        self._count = 0

    @property
    def full(self) -> bool:
        return self._count >= _HELD

    def add(
        self, entries: Entries, flows: npt.NDArray[np.uint8], sizes: npt.NDArray[np.int64]
    ) -> None:
        """``flows`` are IPv4's, already those of the two ends whichever way it goes."""
        self._parts.append((entries, flows, sizes))
        self._count += len(entries)

    def take(self) -> Iterator[pa.RecordBatch]:
        """Return the rows of what was added since the last call, if any."""
        if not self._count:
            return
        entries, flows, sizes = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        self._parts, self._count = [], 0
        ends = np.ascontiguousarray(flows).view(f"V{flows.shape[1]}").reshape(-1)
        _, first, group = np.unique(ends, return_index=True, return_inverse=True)
        keys = (entries["place"], entries["time"], group) if self._merged else (group,)
        order = np.lexsort(keys)
        entries, sizes, group = entries[order], sizes[order], group[order]
        begins = np.flatnonzero(np.diff(group, prepend=-1))
        inside = np.arange(len(group)) - np.repeat(begins, np.diff(begins, append=len(group)))
        rows = np.flatnonzero(inside % LONGEST == 0)
        raw = entries.tobytes()
        yield _batch(
            self._capture, self._merged, len(rows),
            binaries(flows[first[group[rows]]]),
            _binary(np.append(rows, len(entries)) * ENTRY.itemsize, raw),
            entries["place"][rows], entries["time"][rows],
            entries["time"][rows] if self._merged else np.zeros(len(rows), np.int64),
            np.add.reduceat(sizes, rows),
        )  # fmt: skip


class QuickRuns:
    """The same with the extension, which finds ends and payloads by itself."""

    def __init__(self, capture: int, merged: bool, module: Any) -> None:
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

    def take(self) -> Iterator[pa.RecordBatch]:
        if not len(self._runs):
            return
        rows, (keys_at, keys, runs_at, runs, places, times, orders, sizes, _) = self._runs.take()

        def numbers(data: bytes, type_: pa.DataType) -> pa.Array:
            return pa.Array.from_buffers(type_, rows, [None, pa.py_buffer(data)])

        def binary(at: bytes, data: bytes) -> pa.Array:
            return pa.Array.from_buffers(
                pa.binary(), rows, [None, pa.py_buffer(at), pa.py_buffer(data)]
            )

        yield _batch(
            self._capture, self._merged, rows, binary(keys_at, keys), binary(runs_at, runs),
            numbers(places, pa.int64()), numbers(times, pa.int64()), numbers(orders, pa.int64()),
            numbers(sizes, pa.int32()),
        )  # fmt: skip


def _batch(
    capture: int, merged: bool, count: int, keys: pa.Array, runs: pa.Array, places: Any,
    times: Any, orders: Any, sizes: Any,
) -> pa.RecordBatch:  # fmt: skip
    known: dict[str, Any] = {
        "kind": np.full(count, RUN, np.int8), "capture": np.full(count, capture, np.int32),
        "packet": places, "ordinal": places, "order_ns": orders, "timestamp_ns": times,
        "key": keys, "payload": runs, "payload_size": sizes,
        "flags": np.full(count, merged, np.int16), "record": pa.nulls(count, pa.binary()),
        "tunnel": pa.nulls(count, pa.string()),
    }  # fmt: skip
    arrays = []
    for field in PACKET_SCHEMA:
        value = known.get(field.name)
        if value is None:
            dtype = np.bool_ if field.type == pa.bool_() else field.type.to_pandas_dtype()
            value = np.zeros(count, dtype)
        if not isinstance(value, pa.Array):
            value = pa.array(np.asarray(value).astype(field.type.to_pandas_dtype(), copy=False))
        arrays.append(value.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=PACKET_SCHEMA)


def _binary(at: npt.NDArray[np.int64], data: bytes) -> pa.Array:
    offsets = pa.py_buffer(at.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(at) - 1, [None, offsets, pa.py_buffer(data)])


# ---- back in order ------------------------------------------------------------------------------


Order: TypeAlias = tuple[int, int, int]
"""``order_ns``, ``capture``, ``ordinal``."""


class _Run(NamedTuple):
    """The rest of a run. ``merged``: packets are sorted by time first."""

    entries: Entries
    capture: int
    merged: bool

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
    """Rows come sorted by their first packet. ``give`` is called with consecutive runs; at most
    ``most`` packets are held back for it."""

    def __init__(self, give: Callable[[Entries], object], most: int = 8 * LONGEST) -> None:
        self._give = give
        self._most = most
        self._runs: list[_Run] = []
        self._ready: list[Entries] = []
        self._number = 0

    def add(self, order: Order, run: bytes, merged: bool) -> None:
        """A run whose first packet stands there."""
        if self._runs:
            self._before(order)
        self._runs.append(_Run(np.frombuffer(run, ENTRY), order[1], merged))

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
        self._ready.append(run.entries[:count])
        self._number += count
        rest = run.entries[count:]
        if len(rest):
            self._runs[0] = run._replace(entries=rest)
        else:
            del self._runs[0]
        if self._number >= self._most:
            self._flush()

    def _flush(self) -> None:
        ready = self._ready
        if ready:
            self._give(np.concatenate(ready) if len(ready) > 1 else ready[0])
        self._ready, self._number = [], 0


def _head(run: _Run) -> Order:
    return run.head
