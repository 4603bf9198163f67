"""What is built is what is read: records, header, any magic, codec and kind of batch."""

import struct
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records import (
    BatchSettings,
    Compression,
    MessageBatch,
    Record,
    RecordBatch,
    RecordBatchBuilder,
    RecordBatches,
    TimestampType,
    build_batch,
    record,
)
from kproto.records.record_batch import HEADER_SIZE
from tests.records.strategies import batches, records


def expected(given_records: list[Record], settings: BatchSettings) -> list[Record]:
    """What a consumer sees of them."""
    if settings.timestamp_type is TimestampType.CREATE_TIME:
        return given_records
    return [
        Record(r.offset, settings.log_append_time, r.key, r.value, r.headers) for r in given_records
    ]


@given(batches())
def test_what_is_built_is_read(batch):
    given_records, arguments = batch
    settings = BatchSettings(**arguments)
    data = build_batch(given_records, **arguments)
    read = list(RecordBatches(data))
    assert [record for found in read for record in found] == expected(given_records, settings)
    assert b"".join(found.data for found in read) == data
    for found in read:
        assert found.magic == settings.magic
        assert found.compression is settings.compression
        assert found.crc_is_right()
    assert read[0].base_offset == given_records[0].offset
    assert read[-1].last_offset == given_records[-1].offset


@given(batches())
def test_the_header_is_as_set(batch):
    given_records, arguments = batch
    settings = BatchSettings(**{**arguments, "magic": 2})
    arguments["magic"] = 2
    (found,) = RecordBatches(build_batch(given_records, **arguments))
    assert isinstance(found, RecordBatch)
    assert len(found) == found.record_count == len(given_records)
    for name in (
        "partition_leader_epoch",
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "is_transactional",
        "is_control",
        "delete_horizon",
        "timestamp_type",
        "attributes",
    ):
        assert getattr(found, name) == getattr(settings, name), name
    if settings.timestamp_type is TimestampType.LOG_APPEND_TIME:
        assert found.max_timestamp == settings.log_append_time
    else:
        assert found.max_timestamp == max(record.timestamp for record in given_records)
    if settings.base_sequence >= 0:
        spread = found.last_offset - found.base_offset
        assert found.last_sequence == (settings.base_sequence + spread) % (1 << 31)
    else:
        assert found.last_sequence == -1


@given(st.lists(batches(), max_size=4))
def test_batches_of_any_magic_follow_one_another(several):
    data = b"".join(build_batch(given_records, **arguments) for given_records, arguments in several)
    read = [record for found in RecordBatches(data) for record in found]
    assert [record.value for record in read] == [r.value for rs, _ in several for r in rs]


@given(records(), st.sampled_from([bytes, bytearray, memoryview]))
def test_any_buffer_is_read(given_records, kind):
    data = build_batch(given_records)
    assert [r for found in RecordBatches(kind(data)) for r in found] == given_records


def test_no_records_are_no_bytes():
    assert build_batch([]) == b""
    assert list(RecordBatches(b"")) == []
    assert list(RecordBatches(None)) == []


def test_offsets_follow_where_none_is_given():
    data = build_batch([Record(value=b"a"), Record(offset=7, value=b"b"), Record(value=b"c")])
    assert [r.offset for found in RecordBatches(data) for r in found] == [0, 7, 8]
    data = build_batch([Record(value=b"a"), Record(value=b"b")], base_offset=40)
    assert [r.offset for found in RecordBatches(data) for r in found] == [40, 41]


def test_the_builder_is_build_batch_step_by_step():
    builder = RecordBatchBuilder(producer_id=7, producer_epoch=0, base_sequence=3)
    assert builder.build() == b""
    builder.append(b"a", key=b"k", timestamp=5, headers=[("h", None)])
    builder.extend([Record(value=b"b", timestamp=4)])
    assert len(builder) == 2
    assert builder.build() == build_batch(
        [
            Record(timestamp=5, key=b"k", value=b"a", headers=(("h", None),)),
            Record(-1, 4, None, b"b"),
        ],
        producer_id=7,
        producer_epoch=0,
        base_sequence=3,
    )


def test_a_compacted_batch_may_be_empty():
    """Compaction keeps the header of an idempotent producer's last batch without its records."""
    whole = build_batch([Record(value=b"a")], producer_id=1, producer_epoch=0, base_sequence=9)
    header = bytearray(whole[:HEADER_SIZE])
    struct.pack_into(">i", header, 8, HEADER_SIZE - 12)
    struct.pack_into(">i", header, 57, 0)
    (found,) = RecordBatches(header, check_crc=False)
    assert not found.crc_is_right()
    assert found.records() == []
    assert (found.producer_id, found.last_sequence, found.next_offset) == (1, 9, 1)


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_lack_what_came_with_batches(magic):
    (found,) = RecordBatches(build_batch([Record(value=b"a", timestamp=5)], magic=magic))
    assert isinstance(found, MessageBatch)
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (-1, -1, -1)
    assert (found.last_sequence, found.partition_leader_epoch) == (-1, -1)
    assert not found.is_transactional
    assert not found.is_control
    assert found.delete_horizon is None
    assert found.max_timestamp == (5 if magic else -1)
    assert found.timestamp_type == (
        TimestampType.CREATE_TIME if magic else TimestampType.NO_TIMESTAMP_TYPE
    )


def test_many_records_of_every_length():
    """Each length of varint occurs, in the fast reader and in the exact one."""
    given_records = [
        Record(offset, timestamp, bytes(size), bytes(size // 3))
        for offset, (timestamp, size) in enumerate(
            zip(
                [0, 63, 64, 1 << 13, 1 << 20, 1 << 27, 1 << 34, 1 << 55, (1 << 63) - 1, -1],
                [0, 1, 63, 64, 8191, 8192, 1 << 20, 127, 128, 2],
                strict=True,
            )
        )
    ]
    for codec in Compression:
        data = build_batch(given_records, compression=codec)
        assert [r for found in RecordBatches(data) for r in found] == given_records


def test_plain_records_are_read_by_the_fast_reader_alone():
    """Lengths and deltas of one byte to four, headers and nulls among them."""
    sizes = [None, 0, 1, 63, 64, 127, 128, 8191, 8192, 1 << 20]
    given_records = [
        Record(
            number * 9000,
            1_700_000_000_000 + number * 70_000_000 - (number == 3) * 400_000_000,
            None if size is None else bytes(size),
            None if size is None else b"v" * size,
            tuple(
                ("k" * (number % 3), None if size is None else bytes(size)) for _ in range(number)
            ),
        )
        for number, size in enumerate(sizes)
    ]
    data = build_batch(given_records)
    with mock.patch.object(record, "_exact", None):
        assert [r for found in RecordBatches(data) for r in found] == given_records


def test_a_delta_of_timestamps_may_overflow():
    given_records = [Record(0, -1), Record(1, (1 << 63) - 1)]
    data = build_batch(given_records)
    assert [r for found in RecordBatches(data) for r in found] == given_records


@pytest.mark.parametrize(
    ("base", "last"), [((1 << 31) - 3, (1 << 31) - 1), ((1 << 31) - 2, 0), ((1 << 31) - 1, 1)]
)
def test_sequences_start_again_after_the_largest(base, last):
    data = build_batch(
        [Record(), Record(), Record()], producer_id=1, producer_epoch=0, base_sequence=base
    )
    assert next(iter(RecordBatches(data))).last_sequence == last


def test_a_batch_says_what_it_is():
    data = build_batch([Record(value=b"a")])
    (found,) = RecordBatches(data)
    assert repr(found) == f"<RecordBatch magic 2, up to offset 0, {len(data)} bytes at 0>"
