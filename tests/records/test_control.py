"""Control batches: markers, and bad ones. ``oracle/`` compares the bytes with Kafka's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import DecodeError, EncodeError
from kproto.messages import EndTxnMarker, LeaderChangeMessage, SnapshotFooterRecord
from kproto.records import (
    ControlRecord,
    ControlRecordType,
    Record,
    RecordBatches,
    build_control_batch,
    end_transaction_marker,
    read_control_record,
)


@given(st.booleans(), st.integers(0, (1 << 31) - 1), st.integers(0, (1 << 40)))
def test_the_end_of_a_transaction(commit, epoch, offset):
    data = end_transaction_marker(
        commit=commit,
        producer_id=8,
        producer_epoch=1,
        coordinator_epoch=epoch,
        timestamp=77,
        base_offset=offset,
    )
    (batch,) = RecordBatches(data)
    assert batch.is_control
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (8, 1, -1)
    assert (batch.base_offset, batch.last_offset, batch.max_timestamp) == (offset, offset, 77)
    (record,) = batch
    kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
    assert read_control_record(record) == (kind, EndTxnMarker(coordinator_epoch=epoch))


def test_a_later_version_is_read_as_the_first():
    record = Record(key=b"\x00\x01\x00\x00later", value=b"\x00\x05\x00\x00\x00\x09later")
    assert read_control_record(record) == (0, EndTxnMarker(coordinator_epoch=9))


def test_a_type_of_the_future_has_no_message():
    assert read_control_record(Record(key=b"\x00\x00\x00\x63", value=b"?")) == ControlRecord(
        99, None
    )


@pytest.mark.parametrize(
    ("key", "value", "offset", "path", "problem"),
    [
        (None, b"", 0, "key", "null"),
        (b"\x00\x00\x00", b"", 0, "key", "bytes needed: 4, left: 3"),
        (b"\xff\xff\x00\x01", b"", 0, "key", "version -1 is negative"),
        (b"\x00\x00\x00\x01", None, 0, "value", "null"),
        (b"\x00\x00\x00\x01", b"\x80\x00\x00\x00\x00\x01", 0, "value", "is negative"),
        (b"\x00\x00\x00\x01", b"\x00\x00\x00\x00", 2, "value.coordinator_epoch", "needed"),
        (b"\x00\x00\x00\x02", b"\x00\x00\x00", 2, "value.leader_id", "needed"),
        (b"\x00\x00\x00\x04", None, 0, "value", "null"),
    ],
)
def test_markers_that_are_none(key, value, offset, path, problem):
    with pytest.raises(DecodeError) as caught:
        read_control_record(Record(key=key, value=value))
    assert (caught.value.offset, caught.value.path) == (offset, path)
    assert problem in caught.value.problem


def test_a_message_of_another_type_is_refused():
    with pytest.raises(EncodeError, match="LEADER_CHANGE requires a LeaderChangeMessage"):
        build_control_batch(ControlRecordType.LEADER_CHANGE, SnapshotFooterRecord(), timestamp=0)
    data = build_control_batch(ControlRecordType.LEADER_CHANGE, LeaderChangeMessage(), timestamp=0)
    (batch,) = RecordBatches(data)
    assert batch.is_control
    assert not batch.is_transactional
