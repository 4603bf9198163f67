"""Encoding in parts gives what encoding gives, and copies no value of bytes."""

import random
from typing import Any

import pytest

import kproto
from kproto.codec.message import Message
from kproto.codec.structs import MessageStruct
from kproto.errors import EncodeError
from kproto.messages import FetchResponse
from kproto.messages.fetch_response import FetchableTopicResponse, PartitionData
from kproto.reference.random_trees import random_tree
from kproto.schema.model import Struct
from tests.support import engines, seeds
from tests.support.full import quickly_drawn
from tests.support.instances import to_instance
from tests.support.schemas import released

ENGINES = [pytest.param(name, id=name) for name in ("pure", "native")]


def cut(value: bytes, rng: random.Random) -> tuple[Any, ...]:
    """The same bytes as three buffers of any kind."""
    first, second = sorted(rng.randrange(len(value) + 1) for _ in range(2))
    parts = value[:first], value[first:second], value[second:]
    return tuple(rng.choice([bytes, bytearray, memoryview])(part) for part in parts)


def cut_all(holder: MessageStruct, struct: Struct, rng: random.Random) -> int:
    """Put tuples of buffers into the fields of bytes that have no tag; return how many."""
    count = 0
    for field in struct.fields:
        value, inner = getattr(holder, field.python_name), field.type.inner_struct
        if inner is not None and value is not None:
            for each in value if isinstance(value, list) else [value]:
                count += cut_all(each, inner, rng)
        elif field.type.kind in ("bytes", "records") and value and field.tag is None:
            setattr(holder, field.python_name, cut(value, rng))
            count += 1
    return count


@pytest.mark.parametrize("engine", ENGINES)
def test_parts_are_the_bytes_of_a_message(engine: str) -> None:
    if engine == "native":
        engines.require_native()
    schemas = list(released().values())
    with engines.running(engine):
        for schema in quickly_drawn("parts", schemas, 12):
            cls = kproto.dialect("kafka").message(schema.name)
            for version in schema.valid_versions:
                rng = seeds.generator(f"parts:{schema.name}:{version}")
                message = to_instance(cls, random_tree(schema, version, rng, size=30), schema)
                data = message.encode(version)
                assert b"".join(message.encode_parts(version)) == data, (schema.name, version)
                if cut_all(message, schema.root, rng):
                    assert b"".join(message.encode_parts(version)) == data, (schema.name, version)
                    assert message.encode(version) == data, (schema.name, version)


def fetched(*values: Any) -> FetchResponse:
    rows = [PartitionData(partition_index=at, records=each) for at, each in enumerate(values)]
    return FetchResponse(responses=[FetchableTopicResponse(topic="foo", partitions=rows)])


@pytest.mark.parametrize("version", [11, 12])
def test_large_values_are_not_copied(version: int) -> None:
    first, view, last = b"a" * 5000, memoryview(bytearray(b"b" * 6000)), b"c" * 7000
    body = fetched(first, (view, last), None)
    parts = kproto.dialect().encode_response_parts(body, api_version=version, correlation_id=7)
    assert [each for each in parts if len(each) > 4096] == [first, view, last]
    assert any(each is first for each in parts)
    assert any(each is view for each in parts)
    plain = fetched(first, bytes(view) + last, None)
    frame = kproto.encode_response(plain, api_version=version, correlation_id=7)
    assert b"".join(parts) == frame


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ((b"a", "b"), "expected bytes, got str"),
        ((b"a", None), "expected bytes, got NoneType"),
        ([b"a"], "expected bytes, got list"),
        ("a", "expected bytes, got str"),
    ],
)
def test_what_is_no_buffer_is_refused(value: Any, problem: str) -> None:
    for encode in (Message.encode, Message.encode_parts):
        with pytest.raises(EncodeError, match=problem) as caught:
            encode(fetched(value), 12)
        assert caught.value.path == "responses[0].partitions[0].records"


def test_a_view_of_numbers_is_read_as_its_bytes() -> None:
    numbers = memoryview(b"\0\1\0\2").cast("H")
    expected = fetched(b"\0\1\0\2").encode(12)
    assert b"".join(fetched((numbers,)).encode_parts(12)) == expected
    assert b"".join(fetched(numbers).encode_parts(12)) == expected
