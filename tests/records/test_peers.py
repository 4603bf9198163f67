"""aiokafka's readers and writers, its pure ones and its Cython ones, beside ours."""

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

from kproto.records import Compression, Record, RecordBatches, TimestampType, build_batch
from tests.records.strategies import batches, records
from tests.support.toolchain import require_module

HALF = 1 << 62
"""Sums beyond an int64 overflow in its Cython and not in its Python; both are left out."""

_shared = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=["Cython", "Py"])
def aiokafka(request) -> Any:
    """Its classes: reader of magic 2, reader of messages, builder of magic 2."""
    default = require_module("aiokafka.record.default_records")
    legacy = require_module("aiokafka.record.legacy_records")
    return (
        getattr(default, f"_DefaultRecordBatch{request.param}"),
        getattr(legacy, f"_LegacyRecordBatch{request.param}"),
        getattr(default, f"_DefaultRecordBatchBuilder{request.param}"),
    )


def shown(found: Any) -> Record:
    """A record of aiokafka's as ours has it; it says None where a message has no timestamp."""
    timestamp = -1 if found.timestamp is None else found.timestamp
    return Record(found.offset, timestamp, found.key, found.value, tuple(found.headers or ()))


@_shared
@given(batches())
def test_what_we_build_aiokafka_reads(aiokafka, batch):
    given_records, arguments = batch
    assume(all(abs(r.timestamp) < HALF and r.offset < HALF for r in given_records))
    magic = arguments["magic"]
    # Its message reader asserts that the broker's timestamps are on wrappers only, and its reader
    # of lz4 at magic 0 does not know Kafka's mistake in the header.
    assume(magic == 2 or arguments.get("timestamp_type") is not TimestampType.LOG_APPEND_TIME)
    assume(magic > 0 or arguments["compression"] is not Compression.LZ4)
    data = build_batch(given_records, **arguments)
    for found in RecordBatches(data):
        reader = aiokafka[0](found.data) if magic == 2 else aiokafka[1](found.data, magic)
        assert reader.validate_crc()
        assert [shown(record) for record in reader] == found.records()


@_shared
@given(records())
@pytest.mark.parametrize("codec", list(Compression))
def test_what_aiokafka_builds_we_read(aiokafka, codec, given_records):
    assume(all(abs(r.timestamp) < HALF for r in given_records))
    # Its Cython takes a timestamp of -1 for none yet, and uses the next one as base.
    expected = [
        Record(n, max(r.timestamp, 0), r.key, r.value, r.headers)
        for n, r in enumerate(given_records)
    ]
    builder = aiokafka[2](
        magic=2, compression_type=int(codec), is_transactional=1, producer_id=5,
        producer_epoch=1, base_sequence=7, batch_size=1 << 24,
    )  # fmt: skip
    for record in expected:
        builder.append(
            record.offset, record.timestamp, record.key, record.value, list(record.headers)
        )
    data = bytes(builder.build())
    (found,) = RecordBatches(data)
    assert found.records() == expected
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (5, 1, 7)
    assert found.is_transactional
    if codec is Compression.NONE:
        ours = build_batch(
            expected,
            producer_id=5,
            producer_epoch=1,
            base_sequence=7,
            is_transactional=True,
            partition_leader_epoch=found.partition_leader_epoch,
        )
        assert ours == data
