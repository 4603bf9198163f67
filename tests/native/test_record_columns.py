"""The sink in C: what it refuses, what it leaves in memory. What it makes: tests/records."""

import contextlib
import sys
import tracemalloc
from typing import Any

import pytest

from kproto.records import Compression, Record, RecordBatches, build_batch, end_transaction_marker
from kproto.records.columns import COLUMNS, read_columns
from kproto.records.compression import unpack
from kproto.records.sink import ColumnBuffers, PureSink, RecordColumn
from tests.native.records_both import codec, damage, random_records, section, shake_records
from tests.native.test_memory import LOOPS, least_growth
from tests.records.mutations import PLAIN, record_of
from tests.support import seeds

ALL = RecordColumn(255)
MOST = 2**31 - 1
EMPTY = (0, 0, None, bytes(4), b"")


def test_a_sink_begins_empty_and_again() -> None:
    headers = (bytes(4), EMPTY, EMPTY)
    nothing = ColumnBuffers(0, b"", b"", EMPTY, EMPTY, b"", headers, (0, None, b""), EMPTY)  # type: ignore[arg-type]  # plain tuples
    data = section([Record(0, 0, b"k", None, (("h", b"x"),))])
    sink, pure = codec().sink(ALL, MOST), PureSink(ALL, MOST)
    for _ in range(3):
        assert sink.finish() == pure.finish() == nothing
        sink.take_back()
        assert sink.add(data, 0, len(data), 1, 0, 0, None)
        sink.mark()
        assert sink.put([Record(5, 5)])
        sink.take_back()
        assert pure.put([Record(0, 0, b"k", None, (("h", b"x"),))])
        assert sink.finish() == pure.finish()
    assert codec().sink(0, MOST).finish() == (0, *[None] * 8)


def test_what_it_does_not_take_leaves_no_row() -> None:
    """Row for row as the reader and the writer in C: the same bytes, the same objects."""
    rng = seeds.generator("records:sink")
    sink, pure = codec().sink(ALL, MOST), PureSink(ALL, MOST)
    taken = refused = 0
    for _ in range(300):
        records = random_records(rng, most=4)
        data, count = damage(section(records), rng), len(records)
        read = codec().read(data, 0, len(data), count, 5, 7, None)
        assert sink.add(data, 0, len(data), count, 5, 7, None) is (read is not None)
        pure.put(read or [])
        taken, refused = taken + (read is not None), refused + (read is None)
        assert sink.put(records)
        pure.put(records)
        with contextlib.suppress(OverflowError):
            if sink.put(shaken := shake_records(records, rng)):
                pure.put(
                    [Record(*map(r.__getattribute__, Record.__struct_fields__)) for r in shaken]
                )
    assert sink.finish() == pure.finish()
    assert taken > 20
    assert refused > 20


MARKER = end_transaction_marker(
    commit=True, producer_id=9, producer_epoch=0, coordinator_epoch=1, timestamp=7, base_offset=3
)


def test_plain_batches_are_those_that_are_read_alone() -> None:
    """As far as they go, and as many as there is room for; compressed, too."""
    rng = seeds.generator("records:sink:plain")
    left = packed = 0
    for _ in range(200):
        given = [random_records(rng, most=4) or [Record()] for _ in range(rng.randrange(4))]
        parts = [
            build_batch(
                [Record(n, 0, r.key, r.value) for n, r in enumerate(g)],
                compression=rng.choice((Compression.NONE, *Compression)),
            )
            for g in given
        ]
        parts += [MARKER] * (rng.random() < 0.3)
        rng.shuffle(parts)
        data = b"".join(parts)
        if rng.random() < 0.7 and data:
            data = damage(data, rng)
        sink, pure = codec().sink(ALL, MOST), PureSink(ALL, MOST)
        around = rng.randbytes(rng.randrange(3))
        begin = len(around)
        end, counts = sink.add_plain(around + data + around, begin, begin + len(data), unpack)
        end -= begin
        assert len(sink) == sum(counts)
        found = list(RecordBatches(data[:end], check_crc=False))
        packed += sum(batch.compression > 0 for batch in found)
        plain = [[] if batch.is_control else batch.records() for batch in found]
        assert list(map(len, plain)) == counts
        for records in plain:
            pure.put(records)
        assert sink.finish() == pure.finish()
        left += end != len(data)
        tight = codec().sink(ALL, 60)
        assert tight.add_plain(data, 0, len(data), unpack)[0] <= end
        assert tight.finish()[0] <= sum(counts)
    assert left > 20
    assert packed > 20
    for wrong in ((None, 0, 0), (b"", 0, 1), (b"", -1, 0), (b"ab", 2, 1), (b"", 0, 1 << 70)):
        with pytest.raises(ValueError, match="a begin and an end"):
            codec().sink(ALL, MOST).add_plain(*wrong, None)  # type: ignore[arg-type]


def test_what_unpacks_a_plain_batch_may_say_anything() -> None:
    batch = build_batch([Record(value=b"v")] * 3, compression=Compression.GZIP)
    answers: list[Any] = [None, b"", b"x" * 100, bytearray(100), 7, unpack(1, batch[61:])[:-1]]  # type: ignore[index]
    for unpacked in (None, *(lambda _codec, _data, answer=answer: answer for answer in answers)):
        sink = codec().sink(ALL, MOST)
        assert sink.add_plain(batch, 0, len(batch), unpacked) == (0, [])
        assert sink.finish()[0] == 0
    plain = build_batch([Record()])
    both = plain + batch
    sink = codec().sink(ALL, MOST)
    with pytest.raises(ZeroDivisionError):
        sink.add_plain(both, 0, len(both), lambda _codec, _data: 1 // 0)  # type: ignore[arg-type, return-value]
    assert sink.finish()[0] == 0

    class Again:
        """Adds to the sink that asks it."""

        def __call__(self, number: int, data: bytes) -> bytes | None:
            assert sink.add_plain(plain, 0, len(plain), None) == (len(plain), [1])
            return unpack(number, data)

    assert sink.add_plain(batch, 0, len(batch), Again()) == (len(batch), [3])
    assert sink.finish()[0] == 4
    assert unpack(1, b"no gzip") is None
    with pytest.raises(TypeError):
        sink.add_plain(batch)  # type: ignore[call-arg]


@pytest.mark.parametrize("wrong", [-1, 1 << 40, 1 << 70, None, True, 1.5, "2"])
def test_arguments_it_does_not_know(wrong: Any) -> None:
    sink = codec().sink(ALL, MOST)
    usual = [record_of(PLAIN), 0, len(record_of(PLAIN)), 1, 0, 0, None]
    for place in range(4):
        assert sink.add(*usual[:place], wrong, *usual[place + 1 :]) is False
    assert sink.put(wrong) is False
    assert sink.put([wrong]) is False
    with pytest.raises(TypeError):
        sink.add(*usual[:-1])
    for arguments in ((256, MOST), (-1, MOST), (1, 7), (1, 1 << 31), (wrong, wrong)):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            codec().sink(*arguments)
    with pytest.raises(TypeError):
        type(sink)()  # only a codec makes one
    assert sink.finish()[0] == 0


def test_a_bad_batch_comes_before_a_full_column() -> None:
    data = section([Record(n, n, bytes(50)) for n in range(3)])
    sink = codec().sink(ALL, 100)
    for _ in range(2):
        with pytest.raises(OverflowError, match="more than 100 bytes"):
            sink.add(data, 0, len(data), 3, 0, 0, None)
        assert sink.add(data, 0, len(data) - 1, 3, 0, 0, None) is False
        with pytest.raises(OverflowError):
            sink.put([Record(key=bytes(50))] * 3)
        assert sink.put([Record(key=bytes(50))] * 2)
        assert sink.finish()[0] == 2


@pytest.mark.counts_memory
def test_no_block_is_left() -> None:
    rng = seeds.generator("records:sink:memory")
    good = [random_records(rng, most=5) for _ in range(6)]
    sections = [(section(records), len(records)) for records in good]
    sections += [(damage(data, rng), count) for data, count in sections for _ in range(30)]
    shaken = [shake_records(records, rng) for records in good for _ in range(30)]
    whole = b"".join(
        build_batch(records, compression=Compression(at % 5))
        for at, records in enumerate(good)
        if records
    )
    fields = [whole, *(damage(whole, rng) for _ in range(30))]

    def once() -> None:
        for limit in (200, 5000, MOST):
            sink = codec().sink(ALL, limit)
            for at, (data, count) in enumerate(sections):
                if at % 50 == 0:
                    sink.mark()
                with contextlib.suppress(OverflowError):
                    sink.add(data, 0, len(data), count, 5, 7, None)
                if at % 50 == 49:
                    sink.take_back()
            for records in (*good, *shaken):
                with contextlib.suppress(OverflowError):
                    sink.put(records)
            for data in fields:
                sink.add_plain(data, 0, len(data), unpack)
            if limit > 200:
                sink.finish()

    assert least_growth(once, 5) < LOOPS


@pytest.mark.counts_memory
def test_large_buffers_are_freed_and_no_larger_than_they_need_be() -> None:
    data = build_batch([Record(n, n, b"k" * 600, bytes(3000), (("h", b"x"),)) for n in range(300)])
    table = read_columns([data] * 4, COLUMNS)
    held = sum(sys.getsizeof(raw) for column in table for raw in column.buffers if raw is not None)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        table = read_columns([data] * 4, COLUMNS)
        kept = tracemalloc.get_traced_memory()[0] - before
        del table
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert held < kept < held + 100_000
    assert grown < 20_000


@pytest.mark.counts_memory
def test_a_count_reserves_nothing() -> None:
    size = 7 << 20
    data = record_of(PLAIN) * 1000 + bytes(size)
    sink = codec().sink(ALL, MOST)
    tracemalloc.start()
    try:
        assert sink.add(data, 0, len(data), 1 << 20, 0, 0, None) is False
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024
