"""Messages of magic 0 and 1: wrappers, relative offsets, and what is wrong with some."""

import struct

import pytest

from kproto import DecodeError
from kproto.records import (
    Compression,
    MessageBatch,
    Record,
    RecordBatches,
    TimestampType,
    build_batch,
)
from kproto.records.compression import decompress
from tests.records.mutations import message, with_right_checksums, wrapper

GZIP = Compression.GZIP


def read(data: bytes, **options) -> list[Record]:
    return [record for batch in RecordBatches(data, **options) for record in batch]


def refused(data: bytes) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        read(data)
    return caught.value


def test_the_bytes_of_a_message():
    """KIP-32's layout, spelt out."""
    assert message(b"ab", magic=0, offset=3).hex() == (
        "0000000000000003" "00000010" "bb7edf1a" "00" "00" "ffffffff" "00000002" "6162"
    )  # fmt: skip
    data = build_batch([Record(3, 7, b"k", None)], magic=1)
    assert data[:12].hex() == "000000000000000300000017"
    assert data[16:].hex() == "01000000000000000007000000016bffffffff"


def test_offsets_within_a_wrapper_are_relative_since_magic_1():
    records = [Record(100, 5, None, b"a"), Record(102, 6, None, b"b"), Record(107, 4, None, b"c")]
    (batch,) = RecordBatches(build_batch(records, magic=1, compression=GZIP))
    assert (batch.base_offset, batch.last_offset, batch.max_timestamp) == (100, 107, 6)
    inner = message(b"a") + message(b"b", offset=2) + message(b"c", offset=7)
    assert [r.offset for r in read(wrapper(inner, offset=107))] == [100, 102, 107]
    absolute = message(b"a", magic=0, offset=100) + message(b"b", magic=0, offset=102)
    assert [r.offset for r in read(wrapper(absolute, magic=0, offset=102))] == [100, 102]


def test_a_wrapper_of_offset_0_counts_from_0():
    """As some releases of librdkafka produced; Kafka reads it so."""
    inner = message(b"a", offset=4) + message(b"b", offset=5)
    assert [r.offset for r in read(wrapper(inner, offset=0))] == [4, 5]


def test_the_brokers_timestamp_is_every_records():
    inner = message(b"a", timestamp=1) + message(b"b", timestamp=2, offset=1)
    (batch,) = RecordBatches(wrapper(inner, offset=1, attributes=9))
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [r.timestamp for r in batch] == [99, 99]
    assert [r.timestamp for r in read(wrapper(inner, offset=1))] == [1, 2]


def test_within_the_wrapper_the_producers_timestamps_are_kept():
    records = [Record(0, 1, None, b"a"), Record(1, 2, None, b"b")]
    data = build_batch(
        records,
        magic=1,
        compression=GZIP,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        log_append_time=99,
    )
    assert [r.timestamp for r in read(data)] == [99, 99]
    assert read(decompress(GZIP, data[34:], limit=1000)) == records


def test_limits_and_checksums_reach_into_the_wrapper():
    bad = bytearray(message(b"abc"))
    bad[-1] ^= 1
    error = refused(wrapper(bytes(bad)))
    assert error.path == "batches[0].records[0].crc"
    assert error.problem.endswith(", 12 bytes in")
    assert error.offset == 12 + 4 + 2 + 8 + 4 + 4  # where the wrapper's value begins
    assert read(wrapper(bytes(bad)), check_crc=False) == [Record(0, 7, None, b"abb")]


@pytest.mark.parametrize(
    ("data", "offset", "path", "problem"),
    [
        (wrapper(b""), 34, "records", "a wrapper without messages"),
        (wrapper(message(b"a") + b"\x00" * 5), 34, "records[1]", "bytes needed: 12, left: 5"),
        (wrapper(message(b"a")[:-1]), 34, "records[0].message_size", "left: 22"),
        (wrapper(struct.pack(">qi", 0, 13) + bytes(13)), 34, "records[0].message_size",
         "at least 14"),
        (wrapper(message(b"a", magic=0)), 34, "records[0].magic", "in a wrapper of magic 1"),
        (wrapper(wrapper(message(b"a"))), 34, "records[0].attributes", "a compressed message"),
        (wrapper(message(b"a", offset=9), offset=8), 0, "offset", "below its last message's, 9"),
        (with_right_checksums(struct.pack(">qiIbbii", 0, 14, 0, 0, 1, -1, -1)), 18, "value",
         "may not be null"),
        (with_right_checksums(struct.pack(">qiIbbii", 0, 14, 0, 0, 4, -1, -1)), 17, "attributes",
         "zstd requires magic 2"),
        (with_right_checksums(struct.pack(">qiIbbii", 0, 14, 0, 0, 6, -1, -1)), 17, "attributes",
         "no codec has number 6"),
        (with_right_checksums(struct.pack(">qiIbbii", 0, 14, 0, 0, 0, -2, -1)), 18, "key",
         "only -1 means null"),
        (with_right_checksums(struct.pack(">qiIbbii", 0, 14, 0, 0, 0, 5, -1)), 18, "key",
         "bytes needed: 5, left: 4"),
        (with_right_checksums(struct.pack(">qiIbbii", 0, 14, 0, 0, 0, 4, -1)), 26, "value",
         "bytes needed: 4, left: 0"),
        (with_right_checksums(struct.pack(">qiIbbii", 0, 15, 0, 0, 0, -1, -1) + b"?"), 26, "",
         "1 bytes after"),
        (with_right_checksums(struct.pack(">qiIbb8xi", 0, 18, 0, 1, 0, -1)), 30, "value",
         "bytes needed: 4, left: 0"),
        (with_right_checksums(struct.pack(">qiIbbii", 0, 14, 0, 1, 0, -1, -1)), 26, "key",
         "bytes needed: 4, left: 0"),
    ],
)  # fmt: skip
def test_what_is_wrong_and_where(data, offset, path, problem):
    error = refused(data)
    expected = f"batches[0].{path}" if path else "batches[0]"
    assert (error.offset, error.path) == (offset, expected), str(error)
    assert problem in error.problem


def test_timestamps_of_magic_0_are_not_written():
    assert read(message(b"a", magic=0, timestamp=5)) == [Record(0, -1, None, b"a")]


def test_a_set_is_a_batch_a_message():
    data = message(b"a") + message(b"b", magic=0, offset=1)
    found = list(RecordBatches(data))
    assert [(type(batch), batch.magic, batch.offset) for batch in found] == [
        (MessageBatch, 1, 0),
        (MessageBatch, 0, 35),
    ]
    assert all(batch.crc_is_right() for batch in found)
