"""What reading and writing records in C leaves behind: no block, no reference, no garbage."""

import gc
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from kproto.records import Record, RecordBatches, build_batch
from tests.native.records_both import (
    codec,
    codec_type,
    damage,
    random_records,
    section,
    shake_records,
)
from tests.native.test_memory import LOOPS, collector, least_growth
from tests.records.mutations import PLAIN, batch_of, record_of
from tests.support import seeds


def good_and_bad() -> Callable[[], None]:
    """A round of everything that may happen to the records of a batch."""
    rng = seeds.generator("records:memory")
    good = [random_records(rng, most=5) for _ in range(6)]
    sections = [(section(records), len(records)) for records in good]
    sections += [(damage(data, rng), count) for data, count in sections for _ in range(60)]
    written: list[list[Any]] = [*good, *(shake_records(r, rng) for r in good for _ in range(60))]

    messages = [build_batch([Record(n, n, b"k", b"v" * n) for n in range(9)], magic=1)]
    messages += [damage(messages[0], rng) for _ in range(60)]

    def once() -> None:
        for data, count in sections:
            codec().read(data, 0, len(data), count, 5, 1 << 40, None)
        for records in written:
            codec().write(records, 0, 0)
        for data in messages:
            codec().read_messages(data, 0, len(data), 1, 1 << 40, zlib.crc32, None)
            codec().read_messages(data, 0, len(data), 1, 0, None, 7)

    return once


@pytest.mark.counts_memory
def test_no_block_is_left() -> None:
    assert least_growth(good_and_bad()) < LOOPS


@pytest.mark.counts_memory
def test_large_buffers_are_freed() -> None:
    """What goes past the object allocator, on every way out."""
    records = [Record(n, n, b"k" * 600, bytes(3000)) for n in range(300)]
    data = section(records)
    broken: list[Any] = [*records[:-1], Record(300, 300, None, "text")]

    def once() -> None:
        assert codec().read(data, 0, len(data), 300, 0, 0, None) is not None
        assert codec().read(data, 0, len(data) - 1, 300, 0, 0, None) is None
        assert codec().write(records, 0, 0) is not None
        assert codec().write(broken, 0, 0) is None

    once()
    tracemalloc.start()
    try:
        once()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(5):
            once()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 100_000


def test_references_are_given_back() -> None:
    records = [Record(n, n, b"key", b"value", (("h", b"x"),)) for n in range(100)]
    data = build_batch(records)
    shared = (None, Record, records[0], records[0].key, records[0].headers, ())

    def once() -> None:
        (batch,) = RecordBatches(data)
        batch.records()
        build_batch(records)

    once()  # what is imported and kept at the first use
    gc.collect()
    before = [sys.getrefcount(each) for each in shared]
    for _ in range(50):
        once()
    gc.collect()
    after = [sys.getrefcount(each) for each in shared]
    assert all(abs(new - old) < 30 for new, old in zip(after, before, strict=True))


@pytest.mark.counts_memory
def test_little_is_for_the_collector_to_look_at() -> None:
    """The list itself; neither records nor their headers, which no cycle goes through."""
    records = [Record(n, n, b"key", b"value", (("h", b"x"), ("i", None))) for n in range(1000)]
    data = section(records)
    gc.collect()
    with collector(False):
        before = len(gc.get_objects())
        kept = codec().read(data, 0, len(data), 1000, 0, 0, None)
        assert len(gc.get_objects()) - before < 10
        assert gc.is_tracked(kept)
        blocks = sys.getallocatedblocks()
        del kept
        assert sys.getallocatedblocks() < blocks - 5000


@pytest.mark.counts_memory
def test_a_count_reserves_nothing() -> None:
    """Millions of records announced, which the bytes could hold: no list is made for them."""
    size = 7 << 20
    data = batch_of(record_of(PLAIN) * 1000 + bytes(size), count=1 << 20)
    tracemalloc.start()
    try:
        assert codec().read(data, 61, len(data), 1 << 20, 0, 0, None) is None
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024


@pytest.mark.counts_memory
def test_codecs_are_freed() -> None:
    def once() -> None:
        codec_type()(Record)
        for wrong in (int, dict, 5):
            with pytest.raises((ValueError, TypeError)):
                codec_type()(wrong)

    assert least_growth(once, 100) < 100
