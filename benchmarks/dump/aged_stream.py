"""A stream's checkpoint that is as large as after many batches: the last batch of a short stream
gets a high number, and records and excerpts as batches before it would have left them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from wiredump.spark.rotation import Rotated
from wiredump.spark.stream_folder import Noted, Span, StreamFolder, Taken
from wiredump.tables.deferred_rows import EXCERPTS

__all__ = ["age"]

_SPAN: Final = 10_000
"""Records in the largest files of merged ones."""
_KEPT: Final = 100
"""Batches in Spark's logs: ``spark.sql.streaming.minBatchesToRetain``."""


def age(checkpoint: Path, state: Path, batches: int) -> None:
    """Let the last batch of a stream be the last of ``batches``, a multiple of 10,000. ``state`` is
    the folder of what is kept between batches. The files of the batches before are gone."""
    store = StreamFolder(str(state))
    record = store.last()
    assert record is not None
    assert batches % _SPAN == 0
    before, last = record.batch, batches - 1
    excerpts = [pq.read_table(path) for path in store.excerpts(None)]
    for kind in ("batches", "files", EXCERPTS):
        for path in (state / kind).glob("*"):
            path.unlink()
    record.batch, record.count = last, batches
    record.files = [Taken(last, each.file) for each in record.files[-1:]]
    record.read = dict.fromkeys([last], sum(record.read.values()))
    record.times = {}
    (state / "files").mkdir(exist_ok=True)
    encoder = msgspec.json.Encoder()
    for first in range(0, batches, _SPAN):
        span = Span(first, first + _SPAN)
        with (state / "files" / span.name).open("wb") as file:
            for number in range(*span):
                file.write(encoder.encode(_noted(number)) + b"\n")
        if excerpts:
            rows = pa.concat_tables(excerpts) if not first else excerpts[0].slice(0, 0)
            pq.write_table(rows, state / EXCERPTS / f"{span.name}.merged")
    store.commit(record)
    for log in ("offsets", "commits"):
        _renumber(checkpoint / log, before, last)


def _noted(number: int) -> Noted:
    time = 1_700_000_000_000_000_000 + number * 60_000_000_000
    file = Rotated(f"/captures/before/trace.pcap{number}", 100_000_000, time, time)
    return Noted(
        batch=number, files=[Taken(number, file)], read={number: file.size},
        times={number: (time, time + 60_000_000_000)},
    )  # fmt: skip


def _renumber(log: Path, before: int, last: int) -> None:
    """Replace a log of Spark's by the entries of the last batches."""
    *head, text = (log / str(before)).read_text().split("\n")
    for path in log.glob("*"):
        path.unlink()
    for path in log.glob(".*.crc"):
        path.unlink()
    offset = json.loads(text)
    for number in range(last - _KEPT + 1, last + 1):
        if "count" in offset:
            offset["count"] = number + 1
            for each in offset["planned"]["files"]:
                each["number"] = number
        (log / str(number)).write_text("\n".join([*head, json.dumps(offset)]))
