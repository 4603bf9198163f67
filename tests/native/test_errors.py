"""The table of decode errors, row by row, on each engine; and what only examples can pin."""

import itertools
import uuid
from typing import Any

import pytest

from kproto.codec import registry
from kproto.codec.classes import make_message_class
from kproto.errors import DecodeError, EncodeError
from kproto.messages import ConsumerGroupMemberMetadataValue, HeartbeatRequest
from kproto.schema.load import parse_message
from tests.reference.test_errors import ROWS, SCHEMA
from tests.support import engines

SAMPLE = make_message_class(SCHEMA)


@pytest.mark.parametrize("engine", engines.BUILT)
@pytest.mark.parametrize(("version", "body", "offset", "path", "text"), ROWS)
@pytest.mark.requirement("C-09")
def test_decode_errors(engine, version, body, offset, path, text):
    data = bytes.fromhex(body)
    with engines.running(engine):
        for call in (SAMPLE.decode, SAMPLE.validate):
            with pytest.raises(DecodeError) as refused:
                call(data, version)
            error = refused.value
            assert (error.offset, error.path, error.problem) == (offset, path, text)


EDGES = bytes.fromhex("00 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 ec ed ee ef f0 f1 f3 f4 f5 ff")


@pytest.mark.slow
def test_utf_8_is_what_python_says_it_is() -> None:
    """Every sequence of up to four bytes from the edges of the ranges that UTF-8 knows."""
    plan: Any = registry.compiled_plan(HeartbeatRequest, 4)
    rest = b"\0\0\0\1\1\1\0"
    accepted = 0
    for size in range(1, 5):
        for pieces in itertools.product(EDGES, repeat=size):
            text = bytes(pieces)
            try:
                text.decode()
            except UnicodeDecodeError:
                expected = False
            else:
                expected = True
            body = bytes((size + 2,)) + text + b"z" + rest
            assert plan.takes(body) == (expected, expected), text.hex()
            accepted += expected
    assert accepted > 300


def test_the_longest_string() -> None:
    """An int16 bounds it, whatever its length is written as; the ends of what a varint may be."""
    plan: Any = registry.compiled_plan(HeartbeatRequest, 4)
    rest = b"\0\0\0\1\1\1\0"
    assert plan.takes(b"\x80\x80\x02" + b"x" * 32767 + rest) == (True, True)
    assert plan.takes(b"\x81\x80\x02" + b"x" * 32768 + rest) == (False, False)
    for one in (b"\x01", b"\x81\x00", b"\x81\x80\x80\x80\x00"):
        assert plan.takes(one + rest) == (True, True)
    for other in (b"\x81\x80\x80\x80\x10", b"\x81\x80\x80\x80\x80\x00", b"\x81\x80\x80\x80\x70"):
        assert plan.takes(other + rest) == (False, False)


def test_tags_are_written_in_order() -> None:
    """Known and unknown ones merged, whichever order the dict has."""
    cls = SAMPLE
    tags = {9: b"nine", 2: b"two", 0: b"", 300: b"x" * 200}
    message: Any = cls(note="n", extra=5, last=cls.STRUCTS["Last"](at=7), unknown_tags=tags)
    body = message.encode(2)
    assert body == registry.generated_encoder(cls, 2)(message)
    assert list(cls.decode(body, 2).unknown_tags) == [0, 2, 9, 300]
    many = cls(unknown_tags=dict.fromkeys(range(40, 4, -1), b""))
    assert list(cls.decode(many.encode(2), 2).unknown_tags) == list(range(5, 41))
    long: Any = cls(note="y" * 20000, unknown_tags={2: b"z"})
    assert cls.decode(long.encode(2), 2) == long
    for tag in (1, 3, 4):
        with pytest.raises(EncodeError, match=f"Attempted to use tag {tag} as an undefined tag"):
            cls(unknown_tags={tag: b""}).encode(2)


def test_what_is_at_its_default() -> None:
    """A field is left out only where Python's == says that it has its default."""
    cls = make_message_class(
        parse_message(
            '{"type": "data", "name": "Marked", "validVersions": "0", "flexibleVersions": "0+",'
            ' "fields": [{"name": "Inner", "type": "Inner", "versions": "0+", "taggedVersions":'
            ' "0+", "tag": 0, "fields": [{"name": "Ids", "type": "[]int32", "versions": "0+"},'
            ' {"name": "Id", "type": "uuid", "versions": "0+"}, {"name": "Rate", "type":'
            ' "float64", "versions": "0+"}, {"name": "On", "type": "bool", "versions": "0+"}]},'
            ' {"name": "Ids", "type": "[]int32", "versions": "0+", "taggedVersions": "0+",'
            ' "tag": 1}]}'
        )
    )
    inner = cls.STRUCTS["Inner"]
    pure = registry.generated_encoder(cls, 0)
    cases = {
        b"\0": [cls(), cls(ids=()), cls(inner=inner(rate=-0.0)), cls(inner=inner(on=0))],
        None: [
            cls(inner=inner(ids=())),  # () is not [] to ==, inside a struct
            cls(inner=inner(ids=[1])),
            cls(inner=inner(id=uuid.UUID(int=1))),
            cls(inner=inner(rate=float("nan"))),
            cls(inner=inner(unknown_tags={1: b""})),
            cls(ids=[0]),
        ],
    }
    for body, messages in cases.items():
        for message in messages:
            written = message.encode(0)
            assert written == pure(message)
            assert (written == b"\0") == (body == b"\0"), message


def test_null_and_empty_structs_in_tags() -> None:
    cls = ConsumerGroupMemberMetadataValue
    for message in (cls(), cls(classic_member_metadata=None)):
        body = message.encode(0)
        assert body == registry.generated_encoder(cls, 0)(message)
        assert cls.decode(body, 0) == message


def test_plans_that_would_read_amiss_are_refused() -> None:
    from kproto.native import _engine, describe

    (row,) = describe.describe(
        registry.plan_of(HeartbeatRequest, 4), {"HeartbeatRequest": HeartbeatRequest}
    )
    cls, flexible, foreign, inline, tagged, absent = row

    def plan(*fields: Any, kind: Any = cls, known: Any = tagged, ends: bool = flexible) -> None:
        _engine.Plan(((kind, ends, foreign, fields or inline, known, absent),), len, len)

    plan()

    class Plain:
        __slots__ = ("_unknown_tags", *cls.__struct_fields__)

    first, array = inline[0], _engine.KINDS.index("array")
    with pytest.raises(ValueError, match=r"not a msgspec\.Struct"):
        plan(kind=Plain)
    with pytest.raises(ValueError, match="elements smaller than they are"):
        plan((first[0], array, _engine.KINDS.index("int64"), 0, 7, -1, 0, 1, None), *inline[1:])
    with pytest.raises(ValueError, match="two fields have one name"):
        plan(first, *inline)
    with pytest.raises(ValueError, match="a struct that does not come before it"):
        plan((first[0], _engine.KINDS.index("struct"), 0, 0, 1, 0, 0, 2, None), *inline[1:])
    with pytest.raises(ValueError, match="tagged fields out of place"):
        plan(*inline[:-1], known=(inline[-1],))
    with pytest.raises(ValueError, match="a default that may change"):
        plan((*first[:-1], []), *inline[1:])
    with pytest.raises(ValueError, match="a field of an unknown kind"):
        plan((first[0], 13, *first[2:]), *inline[1:])
    flag = (*inline[-1][:3], inline[-1][3] | _engine.TAGGED, *inline[-1][4:])
    with pytest.raises(ValueError, match="tagged fields at a version without them"):
        plan(*inline[:-1], known=(flag,), ends=False)
