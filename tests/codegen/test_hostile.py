"""Bytes that ask for more than they bring: no allocation beyond them, one error, no recursion."""

import struct
import tracemalloc

import pytest

from kproto.codec.classes import make_message_class
from kproto.codec.runtime import unsigned_varint
from kproto.errors import DecodeError
from kproto.messages import (
    AlterClientQuotasRequest,
    DeleteTopicsRequest,
    FetchRequest,
    HeartbeatRequest,
    ListPartitionReassignmentsRequest,
    MetadataResponse,
    ProduceRequest,
)
from kproto.schema.load import parse_message
from tests.support.full import quick

HUGE = struct.pack(">i", 2**31 - 1)
HUGE_VARINT = b"\xff\xff\xff\xff\x07"


@pytest.mark.parametrize(
    ("cls", "version", "data", "path"),
    [
        (MetadataResponse, 0, HUGE, "brokers"),
        (MetadataResponse, 9, bytes(4) + HUGE_VARINT, "brokers"),
        (DeleteTopicsRequest, 0, HUGE, "topic_names"),
        (DeleteTopicsRequest, 4, HUGE_VARINT, "topic_names"),
        (FetchRequest, 4, bytes(17) + HUGE, "topics"),
        (ProduceRequest, 3, b"\xff\xff" + bytes(6) + HUGE, "topic_data"),
        (HeartbeatRequest, 4, HUGE_VARINT, "group_id"),
        (HeartbeatRequest, 4, b"\x01" + bytes(4) + b"\x01\x00" + HUGE_VARINT, ""),
    ],
)
@pytest.mark.requirement("C-09")
def test_announced_sizes_allocate_nothing(cls: type, version: int, data: bytes, path: str) -> None:
    padded = data + bytes(64)
    with pytest.raises(DecodeError):
        cls.decode(padded, version)  # codecs are made here, not while measuring
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError) as caught:
            cls.decode(padded, version)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024
    assert caught.value.path == path


@pytest.mark.counts_memory
@pytest.mark.parametrize(
    ("cls", "version", "element", "begins", "ends"),
    [
        (ListPartitionReassignmentsRequest, 0, b"\1\1\0", 4, b"\0"),
        (AlterClientQuotasRequest, 1, b"\1\1\0", 0, b"\0\0"),
    ],
)
def test_a_message_takes_a_known_multiple_of_its_bytes(cls, version, element, begins, ends):
    """Elements of three bytes are Python objects, as docs/explanation/security.md says."""
    count = quick(20_000, sampled=5_000)
    data = bytes(begins) + unsigned_varint(count + 1) + element * count + ends
    cls.decode(data, version)
    tracemalloc.start()
    try:
        decoded = cls.decode(data, version)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert decoded.encode(version) == data
    assert peak < 64 * len(data), f"{peak / len(data):.1f} times"


def nested_schema(depth: int) -> str:
    field = '{"name": "Leaf", "type": "int32", "versions": "0+"}'
    for level in range(depth):
        field = (
            f'{{"name": "Level{level}", "type": "[]Struct{level}", "versions": "0+",'
            f' "nullableVersions": "0+", "fields": [{field}]}}'
        )
    return (
        '{"type": "data", "name": "Deep", "validVersions": "0", "flexibleVersions": "0+",'
        f' "fields": [{field}]}}'
    )


@pytest.mark.requirement("C-09")
def test_structs_nested_deeper_than_one_function_can_be() -> None:
    """CPython allows 20 nested blocks in a function; a user's schema may nest further."""
    depth = 30
    cls = make_message_class(parse_message(nested_schema(depth)))
    value = cls.STRUCTS["Struct0"](leaf=7)
    for level in range(1, depth):
        value = cls.STRUCTS[f"Struct{level}"](**{f"level{level - 1}": [value, value][:1]})
    message = cls(**{f"level{depth - 1}": [value]})
    body = message.encode(0)
    assert cls.decode(body, 0) == message
    for cut in range(len(body)):
        with pytest.raises(DecodeError):
            cls.decode(body[:cut], 0)
    with pytest.raises(DecodeError) as caught:
        cls.decode(body[: depth + 2], 0)
    assert caught.value.path.endswith(".level1[0].level0")
    assert caught.value.path.count("[0]") == depth - 1


def test_decoders_take_any_contiguous_buffer_and_nothing_else() -> None:
    body = HeartbeatRequest(group_id="g", member_id="m").encode(4)
    for buffer in (body, bytearray(body), memoryview(b"x" + body)[1:]):
        assert HeartbeatRequest.decode(buffer, 4).group_id == "g"
    for wrong in (4, "text", None):
        with pytest.raises(TypeError):
            HeartbeatRequest.decode(wrong, 4)  # type: ignore[arg-type]
