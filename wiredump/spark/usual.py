"""Read many usual packets at once: whole IPv4 packets with TCP, over Ethernet or a Linux cooked
link, with nothing unusual in front of the ports.

These are exactly the packets for which ``readers.SegmentReader`` has a fast path, and the rows are
the same; all others are left to that reader.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wiredump.spark.columns import PACKET_SCHEMA, SEGMENT, binaries

__all__ = ["Records", "usual_entries", "usual_rows"]

Ints = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]

_TYPE_AT: Final = {1: 12, 113: 14}
_LENGTH: Final = 42
"""EtherType, IPv4 and TCP headers."""
_IPV4: Final = 0x0800
_MORE_OR_OFFSET: Final = 0x3FFF


class Records:
    """The records of a chunk that is at ``base`` of the file: where each begins, where in the chunk
    its packet's bytes are and how many, its time, and its length on the wire. All have one link
    type."""

    def __init__(
        self, base: int, link_type: int, places: Ints, begins: Ints, captured: Ints, times: Ints,
        originals: Ints,
    ) -> None:  # fmt: skip
        self.base = base
        self.link_type = link_type
        self.places = places
        self.begins = begins
        self.captured = captured
        self.times = times
        self.originals = originals


class _Found(NamedTuple):
    """The usual packets: their numbers, the bytes from their EtherType to the end of the TCP
    header, where in the chunk that is, how far behind it the payload begins, and its size. ``rest``
    are all others."""

    chosen: Ints
    heads: _Bytes
    begins: Ints
    payload: Ints
    sizes: Ints
    rest: Ints


def _find(chunk: bytes, records: Records) -> _Found | None:
    raw = np.frombuffer(chunk, np.uint8)
    count = len(records.places)
    at = _TYPE_AT.get(records.link_type)
    if at is None or not count:
        return None
    long = np.flatnonzero(records.captured >= at + _LENGTH)
    begins = records.begins[long] + at
    heads = raw[begins[:, None] + np.arange(_LENGTH)]
    length = _number(heads, 4, 2)
    payload = 2 + 20 + (heads[:, 34].astype(np.int64) >> 4 << 2)
    end = 2 + length
    usual = (
        (_number(heads, 0, 2) == _IPV4)
        & (heads[:, 2] == 0x45)
        & (heads[:, 11] == 6)
        & (heads[:, 34] >= 0x50)
        & (_number(heads, 8, 2) & _MORE_OR_OFFSET == 0)
        & (payload <= end)
        & (end <= records.captured[long] - at)
    )
    chosen = long[usual]
    rest = np.ones(count, np.bool_)
    rest[chosen] = False
    payload, sizes = payload[usual], (end - payload)[usual]
    return _Found(chosen, heads[usual], begins[usual], payload, sizes, np.flatnonzero(rest))


def usual_rows(
    chunk: bytes, records: Records, capture: int, merged: bool
) -> tuple[pa.RecordBatch, Ints, int]:
    """Return the rows of usual packets, the numbers of all others, and the payload of the
    former."""
    found = _find(chunk, records)
    if found is None:
        return _none(), np.arange(len(records.places)), 0
    payload_at = records.base + found.begins + found.payload
    rows = _rows(records, found.chosen, found.heads, payload_at, found.sizes, capture, merged)
    return rows, found.rest, int(found.sizes.sum())


def usual_entries(
    chunk: bytes, records: Records, capture: int
) -> tuple[npt.NDArray[np.void], _Bytes, Ints, Ints] | None:
    """Return usual packets as ``runs.ENTRY``, their ends, their payload sizes, and the numbers of
    all others (None for all packets)."""
    from wiredump.spark.runs import ENTRY

    found = _find(chunk, records)
    if found is None:
        return None
    chosen = found.chosen
    entries = np.zeros(len(chosen), ENTRY)
    entries["place"] = records.base + records.places[chosen]
    entries["time"] = records.times[chosen]
    entries["captured"] = records.captured[chosen]
    entries["original"] = records.originals[chosen]
    entries["capture"] = capture
    entries["link"] = records.link_type
    entries["ahead"] = (records.begins - records.places)[chosen]
    return entries, _ends(found.heads)[0], found.sizes, found.rest


def _none() -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([], each.type) for each in PACKET_SCHEMA], schema=PACKET_SCHEMA
    )


def _rows(
    records: Records, chosen: Ints, heads: _Bytes, payload_at: Ints, sizes: Ints, capture: int,
    merged: bool,
) -> pa.RecordBatch:  # fmt: skip
    count = len(chosen)
    places = records.base + records.places[chosen]
    times = records.times[chosen]
    keys, swapped = _ends(heads)
    columns: dict[str, Any] = {
        "kind": np.full(count, SEGMENT, np.int8),
        "capture": np.full(count, capture, np.int32),
        "packet": places,
        "order_ns": times if merged else np.zeros(count, np.int64),
        "ordinal": places,
        "timestamp_ns": times,
        "key": binaries(keys),
        "reversed": swapped,
        "sequence": _number(heads, 26, 4),
        "acknowledgement": _number(heads, 30, 4),
        "flags": heads[:, 35].astype(np.int16),
        "window": _number(heads, 36, 2).astype(np.int32),
        "payload_at": payload_at,
        "payload_size": sizes.astype(np.int32),
        "missing": np.zeros(count, np.int64),
        "payload": pa.nulls(count, pa.binary()),
        "record": pa.nulls(count, pa.binary()),
        "tunnel": pa.nulls(count, pa.string()),
    }
    arrays = [
        value if isinstance(value, pa.Array) else pa.array(value, each.type)
        for each, value in zip(PACKET_SCHEMA, columns.values(), strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=PACKET_SCHEMA)


def _ends(heads: _Bytes) -> tuple[_Bytes, npt.NDArray[np.bool_]]:
    """Return the two ends of each packet in a fixed order, and whether that is the opposite
    direction."""
    flows = heads[:, 14:26]
    source, destination = _number(flows, 0, 4), _number(flows, 4, 4)
    from_port, to_port = _number(flows, 8, 2), _number(flows, 10, 2)
    swapped = (destination < source) | ((destination == source) & (to_port < from_port))
    back = flows[:, [4, 5, 6, 7, 0, 1, 2, 3, 10, 11, 8, 9]]
    return np.where(swapped[:, None], back, flows), swapped


def _number(raw: _Bytes, at: int, width: int) -> Ints:
    """Return big-endian numbers, one for each row."""
    number = np.zeros(len(raw), np.int64)
    for place in range(at, at + width):
        number = number << 8 | raw[:, place]
    return number
