"""What cannot be built: an EncodeError that names the setting, or the record and its field."""

from typing import get_type_hints
from unittest import mock

import pytest

from kproto import EncodeError
from kproto.records import (
    BatchArguments,
    BatchSettings,
    Compression,
    Record,
    RecordBatchBuilder,
    TimestampType,
    build_batch,
    encode_batch,
    encode_messages,
)

ONE = [Record(value=b"a")]
PRODUCER = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"magic": 3}, "magic"),
        ({"magic": -1}, "magic"),
        ({"compression": 1}, "compression"),
        ({"timestamp_type": 0}, "timestamp_type"),
        ({"timestamp_type": TimestampType.NO_TIMESTAMP_TYPE}, "timestamp_type"),
        ({"base_offset": 1 << 63}, "base_offset"),
        ({"base_offset": -1}, "base_offset"),
        ({"base_offset": "0"}, "base_offset"),
        ({"delete_horizon": -1}, "delete_horizon"),
        ({"producer_id": None}, "producer_id"),
        ({"producer_id": 1}, "producer_epoch"),
        ({"producer_id": 1, "producer_epoch": 1 << 15, "base_sequence": 0}, "producer_epoch"),
        ({"producer_id": 1, "producer_epoch": 1}, "base_sequence"),
        ({"is_transactional": True}, "producer_id"),
        ({"partition_leader_epoch": 1 << 31}, "partition_leader_epoch"),
        ({"log_append_time": 0.5}, "log_append_time"),
        ({"magic": 1, "compression": Compression.ZSTD}, "compression"),
        ({"magic": 1, "is_control": True}, "is_control"),
        ({"magic": 0, "is_transactional": True, **PRODUCER}, "is_transactional"),
        ({"magic": 1, "delete_horizon": 0}, "delete_horizon"),
    ],
)
def test_settings_no_batch_has(arguments, path):
    with pytest.raises(EncodeError) as caught:
        build_batch(ONE, **arguments)
    assert caught.value.path == path
    with pytest.raises(EncodeError):
        RecordBatchBuilder(**arguments)


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize(
    ("bad", "path"),
    [
        (Record(offset=4), "offset"),
        (Record(offset=3), "offset"),
        (Record(offset=-2), "offset"),
        (Record(offset=1 << 63), "offset"),
        (Record(offset=None), "offset"),
        (Record(timestamp=-2), "timestamp"),
        (Record(key="k"), "key"),
        (Record(value="v"), "value"),
        (Record(value=memoryview(b"abcd").cast("i")), "value"),
        (Record(value=5), "value"),
    ],
)
def test_records_no_batch_holds(magic, bad, path):
    with pytest.raises(EncodeError) as caught:
        build_batch([Record(offset=4), bad], magic=magic)
    assert caught.value.path == f"records[1].{path}"


@pytest.mark.parametrize("magic", [1, 2])
@pytest.mark.parametrize("timestamp", [1 << 63, 0.5, None])
def test_timestamps_that_are_none(magic, timestamp):
    """Magic 0 has none to write."""
    for records in ([Record(timestamp=timestamp)], [Record(), Record(timestamp=timestamp)]):
        with pytest.raises(EncodeError) as caught:
            build_batch(records, magic=magic)
        assert caught.value.path == f"records[{len(records) - 1}].timestamp"


@pytest.mark.parametrize(
    ("headers", "path"),
    [
        (((b"k", b"v"),), "headers[0].key"),
        ((("k", None), ("\ud800", b"v")), "headers[1].key"),
        ((("k", "v"),), "headers[0].value"),
        ((("k", bytearray(b"v")),), "headers[0].value"),
    ],
)
def test_headers_no_batch_holds(headers, path):
    with pytest.raises(EncodeError) as caught:
        build_batch([Record(headers=headers)])
    assert caught.value.path == f"records[0].{path}"


def test_headers_came_with_magic_2():
    for magic in (0, 1):
        with pytest.raises(EncodeError, match=r"records\[0\]\.headers: headers require magic 2"):
            build_batch([Record(headers=(("k", b"v"),))], magic=magic)


def test_what_is_no_record():
    for records in ([b"a"], [*ONE, (1, 2)], [None]):
        with pytest.raises(EncodeError, match="is not a Record"):
            build_batch(records)


def test_offsets_reach_as_far_as_a_delta_does():
    far = [Record(offset=5), Record(offset=5 + (1 << 31) - 1)]
    assert len(build_batch(far)) > 61
    with pytest.raises(EncodeError, match="too far from the base offset 4"):
        build_batch(far, base_offset=4)
    assert len(build_batch([Record(offset=5), Record(offset=1 << 62)], magic=1)) > 50


@pytest.mark.parametrize(("module", "magic"), [(encode_batch, 2), (encode_messages, 1)])
def test_a_batch_is_no_larger_than_its_size_field_says(module, magic):
    with (
        mock.patch.object(module, "LARGEST", 1000),
        pytest.raises(EncodeError, match="exceed an int32"),
    ):
        build_batch([Record(value=bytes(1000))], magic=magic)


def test_the_typed_arguments_are_the_settings():
    assert set(BatchArguments.__annotations__) == set(BatchSettings.__struct_fields__)
    assert get_type_hints(BatchArguments) == get_type_hints(BatchSettings)
