"""Bytes that are no batches: whatever they are, DecodeError with offset and path."""

import struct
import tracemalloc
import zlib
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import DecodeError
from kproto.records import Compression, Incomplete, Record, RecordBatches, build_batch, record
from kproto.records.record_batch import HEADER_SIZE
from tests.records.mutations import PLAIN, batch_of, record_of, with_right_checksums
from tests.records.strategies import batches, records

LIMIT = 1 << 20


def read(data: bytes, **options) -> list[Record]:
    options.setdefault("max_decompressed", LIMIT)
    return [found for batch in RecordBatches(data, **options) for found in batch]


def outcome(data: bytes, **options) -> list[Record] | tuple[str, int, str]:
    """The records, or what the DecodeError says, which is somewhere in the data."""
    try:
        return read(data, **options)
    except DecodeError as error:
        found = error
    assert 0 <= found.offset <= len(data)
    assert found.path.startswith("batches[")
    return (found.problem, found.offset, found.path)


def refused(data: bytes, **options) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        read(data, **options)
    assert 0 <= caught.value.offset <= len(data)
    assert caught.value.path.startswith("batches[")
    return caught.value


@given(batches(), st.data())
def test_mutated_bytes_are_refused_or_read(batch, data):
    whole = bytearray(build_batch(batch[0], **batch[1]))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        kind = data.draw(st.sampled_from(["set", "cut", "insert"]))
        if kind == "set":
            whole[at] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del whole[at : at + data.draw(st.integers(1, 4))]
        else:
            whole[at:at] = data.draw(st.binary(min_size=1, max_size=4))
        if not whole:
            break
    for mutated in (bytes(whole), with_right_checksums(whole)):
        for options in ({}, {"allow_partial": True}, {"check_crc": False}):
            assert outcome(mutated, **options) is not None


@given(records(), st.data())
def test_the_fast_reader_and_the_exact_one_are_one(given_records, data):
    """The fast one leaves to the exact one what is not plain; without it nothing changes."""
    whole = bytearray(build_batch(given_records))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(HEADER_SIZE, len(whole) - 1))
        whole[at] = data.draw(st.sampled_from([0, 1, 2, 3, 0x7F, 0x80, 0x81, 0xFF]))

    together = outcome(bytes(whole), check_crc=False)
    with mock.patch.object(record, "_fast", record._none):
        assert outcome(bytes(whole), check_crc=False) == together


@given(st.binary(max_size=120), st.sampled_from([0, 1, 2]))
def test_random_bytes_behind_a_header(noise, magic):
    head = struct.pack(">qiiB", 0, 5 + len(noise), 0, magic)
    for data in (noise, with_right_checksums(head + noise)):
        assert outcome(data, check_crc=False) is not None


@given(batches(), st.data())
def test_a_cut_batch_is_reported_and_those_before_it_are_read(batch, data):
    first = build_batch([Record(value=b"first", timestamp=1)])
    second = build_batch(batch[0][:1], **batch[1])
    cut = data.draw(st.integers(1, len(second) - 1))
    whole = first + second[:cut]
    (kept,) = found = list(RecordBatches(whole, allow_partial=True))
    assert [kept_record.value for kept_record in kept] == [b"first"]
    assert found[0].data == first
    size = len(second) if cut >= 12 else None
    assert RecordBatches(whole).incomplete == Incomplete(len(first), cut, size)
    error = refused(whole)
    assert (error.offset, error.path) == (len(first), "batches[1]")
    assert "cut off" in error.problem
    assert RecordBatches(first + second).incomplete is None


@given(st.integers(0, 300))
def test_every_byte_is_under_the_checksum(at):
    """All but the base offset, and, of magic 2, the leader's epoch, which brokers fill in."""
    for magic, free in ((2, {*range(8), *range(12, 16)}), (1, set(range(8)))):
        data = bytearray(build_batch([Record(value=b"x" * 20, key=b"k")], magic=magic))
        at %= len(data)
        data[at] ^= 0x01
        if at in free:
            read(bytes(data))
        else:
            refused(bytes(data))


def test_a_wrong_checksum_is_an_error_unless_it_is_not_to_be_looked_at():
    data = bytearray(build_batch([Record(value=b"abc")]))
    data[-2] ^= 0xFF
    error = refused(bytes(data))
    assert (error.offset, error.path) == (17, "batches[0].crc")
    assert error.problem.startswith("checksum is 0x")
    assert read(bytes(data), check_crc=False) == [Record(0, -1, None, b"ab\x9c")]
    assert not next(iter(RecordBatches(data, check_crc=False))).crc_is_right()


def test_the_helper_makes_valid_batches():
    assert read(batch_of(record_of(PLAIN))) == [Record(0, 0)]
    assert read(batch_of(record_of(PLAIN) * 3, count=3)) == [Record(0, 0)] * 3


@pytest.mark.parametrize(
    ("data", "offset", "path", "problem"),
    [
        (batch_of(b"", count=-1), 57, "record_count", "is negative"),
        (batch_of(record_of(PLAIN), count=2), 57, "record_count", "do not fit"),
        (batch_of(record_of(PLAIN) * 2, count=1), 68, "records", "7 bytes after"),
        (batch_of(b"\x00" * 7), 62, "records[0].attributes", "bytes needed: 1"),
        (batch_of(b"\x01" + PLAIN), 61, "records[0].length", "length -1"),
        (batch_of(b"\x0e" + PLAIN), 61, "records[0].length", "length 7 of 6"),
        (batch_of(b"\x80\x80\x80\x80\x80\x80\x80"), 61, "records[0].length", "longer than 5"),
        (batch_of(record_of(PLAIN + b"?")), 68, "records[0]", "1 bytes after"),
        (batch_of(record_of(b"\x00\x00\x00\x03\x01\x00")), 65, "records[0].key", "only -1 means"),
        (batch_of(record_of(b"\x00\x00\x00\x01\x06ab")), 66, "records[0].value", "needed: 3"),
        (batch_of(record_of(b"\x00\x00\x00\x01\x03\x00")), 66, "records[0].value",
         "length -2 is negative"),
        (batch_of(record_of(b"\x00\x00\x00\x01\x01\x02\x02a\x03")), 70,
         "records[0].headers[0].value", "length -2 is negative"),
        (batch_of(record_of(b"\x00\x00\x00\x01\x01\x01")), 67, "records[0].headers", "-1 headers"),
        (batch_of(record_of(b"\x00\x00\x00\x01\x01\x02\x03\x01")), 68,
         "records[0].headers[0].key", "negative, and only -1"),
        (batch_of(record_of(b"\x00\x00\x00\x01\x01\x02\x01\x01")), 68, "records[0].headers[0].key",
         "may not be null"),
        (batch_of(record_of(b"\x00\x00\x00\x01\x01\x02\x02\xff\x01")), 68,
         "records[0].headers[0].key", "not UTF-8"),
        (batch_of(record_of(b"\x00\x00\x00\x01\x01\x02\x02a\x08")), 70,
         "records[0].headers[0].value", "bytes needed: 4"),
        (batch_of(record_of(b"\x00\x00\x00\x01\x01\x7e\x02a")), 67, "records[0].headers",
         "63 headers in 2 bytes"),
        (batch_of(record_of(b"\x00\x00\x02\x01\x01\x00"), base_offset=(1 << 63) - 1), 64,
         "records[0].offset_delta", "not an int64"),
        (batch_of(record_of(PLAIN), base_offset=(1 << 63) - 1, last_offset_delta=1), 23,
         "last_offset_delta", "9223372036854775808 from 9223372036854775807 on is not a"),
        (batch_of(record_of(PLAIN), base_offset=5, last_offset_delta=-1), 23,
         "last_offset_delta", "4 from 5 on"),
        (batch_of(record_of(PLAIN), attributes=5), 21, "attributes", "no codec has number 5"),
        (batch_of(record_of(PLAIN), attributes=1), 61, "records", "gzip: "),
    ],
)  # fmt: skip
def test_what_is_wrong_and_where(data, offset, path, problem):
    error = refused(data)
    assert (error.offset, error.path) == (offset, f"batches[0].{path}"), str(error)
    assert problem in error.problem


def test_a_record_does_not_reach_into_the_next_batch():
    """Whose first byte, 0, would do for the count of headers of a record that is too long."""
    error = refused(batch_of(b"\x14\x00\x00\x00\x01\x08abcd") + batch_of(record_of(PLAIN)))
    assert (error.offset, error.path) == (61, "batches[0].records[0].length")
    assert error.problem == "length 10 of 9 bytes left"


def test_a_header_that_is_no_batch():
    cases = [
        (b"\x00" * 8 + struct.pack(">i", 13) + bytes(20), 8, "batch_length"),
        (b"\x00" * 8 + struct.pack(">i", -1) + bytes(20), 8, "batch_length"),
        (b"\x00" * 8 + struct.pack(">iiB", 20, 0, 3) + bytes(20), 16, "magic"),
        (b"\x00" * 8 + struct.pack(">iiB", 40, 0, 2) + bytes(40), 8, "batch_length"),
    ]
    for data, offset, field in cases:
        error = refused(data)
        assert (error.offset, error.path) == (offset, f"batches[0].{field}")


def test_errors_within_compressed_records_point_at_them():
    good = build_batch([Record(value=b"a", timestamp=0)])
    inner = record_of(PLAIN) + record_of(PLAIN + b"?")
    packer = zlib.compressobj(wbits=31)
    packed = packer.compress(inner) + packer.flush()
    error = refused(good + batch_of(packed, count=2, attributes=1))
    assert error.offset == len(good) + 61
    assert error.path == "batches[1].records[1]"
    assert error.problem == "1 bytes after the record's headers, 14 bytes in"


@pytest.mark.parametrize(
    ("magic", "codec"),
    [(1, codec) for codec in list(Compression)[1:4]]
    + [(2, codec) for codec in list(Compression)[1:]],
)
def test_a_bomb_is_stopped_at_the_limit(magic, codec):
    """Megabytes of zeros in some kilobytes: no more is made of them than the limit says."""
    data = build_batch([Record(value=bytes(8 << 20), timestamp=0)], compression=codec, magic=magic)
    batch = next(iter(RecordBatches(data, max_decompressed=LIMIT)))
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError, match=f"more than {LIMIT} bytes") as caught:
            batch.records()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.path == "batches[0].records"
    assert peak < 3 * LIMIT + len(data), f"{peak} bytes were reserved"


def test_a_count_is_no_reason_to_reserve_anything():
    data = batch_of(record_of(PLAIN) * 1000, count=(1 << 31) - 1)
    tracemalloc.start()
    try:
        refused(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


def test_the_limit_is_exact():
    one = [Record(value=bytes(1000), timestamp=0)]
    held = len(build_batch(one)) - HEADER_SIZE
    for codec in list(Compression)[1:]:
        data = build_batch(one, compression=codec)
        assert read(data, max_decompressed=held) == [Record(0, 0, None, bytes(1000))]
        refused(data, max_decompressed=held - 1)
