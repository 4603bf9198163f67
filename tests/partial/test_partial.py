"""What is told of a message that is cut: a beginning of the whole, all that is there, no more."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kproto
from kproto import reference
from kproto.annotate import PARTS, PartialFields, request_fields_partly, response_fields_partly
from kproto.codec.message import Message
from kproto.codec.registry import schema_of
from kproto.dialects import Dialect
from kproto.errors import DecodeError
from kproto.messages import HeartbeatRequest, SaslHandshakeResponse
from kproto.partial import PartialFrame, decode_partly, request_partly, response_partly
from kproto.reference.random_trees import random_tree
from kproto.schema.model import MessageSchema, python_name
from tests.support import seeds
from tests.support.full import drawn, quickly_drawn
from tests.support.instances import to_instance
from tests.support.roundtrip import cuts
from tests.support.schemas import of_dialect, released
from tests.support.strategies import messages_and_trees

SCHEMAS = [schema for schema in released().values() if schema.type in ("request", "response")]
KAFKA = kproto.dialect("kafka")
MISSING = object()
FRAME = bytes.fromhex(
    "0000002c002d0000000000020003616363000000ea600204666f6f020000000004000000040000000500000006000000"
)


def is_beginning(part: Any, whole: Any) -> bool:
    """Whether ``part`` is ``whole`` with its last things left out."""
    if part == whole:
        return True
    if isinstance(part, dict) and isinstance(whole, dict):
        if not set(part) <= set(whole):
            return False
        shorter = [key for key in part if part[key] != whole[key]]
        return len(shorter) <= 1 and all(is_beginning(part[key], whole[key]) for key in shorter)
    if isinstance(part, list) and isinstance(whole, list) and 0 < len(part) <= len(whole):
        last = len(part) - 1
        return part[:last] == whole[:last] and is_beginning(part[last], whole[last])
    return False


def at_path(value: Any, path: str) -> Any:
    """What JSON has at a path of Python's names."""
    for name, index in re.findall(r"([a-z_0-9]+)|\[(\d+)\]", path):
        if index:
            value = value[int(index)] if len(value) > int(index) else MISSING
        else:
            value = {python_name(key): item for key, item in value.items()}.get(name, MISSING)
        if value is MISSING:
            return MISSING
    return value


def check_cut(cls: type[Message], body: Message, data: bytes, version: int, cut: int) -> None:
    whole = body.to_json_value(version)
    with pytest.raises(DecodeError) as raised:
        cls.decode(data[:cut], version)
    plain = decode_partly(cls, data[:cut], version)
    assert str(plain.error) == str(raised.value)
    assert is_beginning(plain.value, whole)

    told = decode_partly(cls, data[:cut], version, size=len(data))
    assert is_beginning(told.value, whole)
    assert is_beginning(plain.value, told.value)
    assert plain.error is not None
    assert told.error is not None
    assert told.error.path.startswith(plain.error.path)
    assert told.error.offset >= plain.error.offset

    spans, error = reference.fields_partly(schema_of(cls), version, data[:cut], size=len(data))
    assert str(error) == str(told.error)
    ends = [0, *(span.offset + span.length for span in spans if span.leaf)]
    assert max(ends) == told.error.offset
    for span in spans:
        if span.leaf and span.type not in PARTS and span.type != "unknown tag":
            assert at_path(told.value, span.path) == at_path(whole, span.path), span.path


def bodies(codec: Dialect, schema: MessageSchema, every: bool) -> Iterator[tuple[int, Message]]:
    versions = schema.valid_versions
    for version in versions if every else {versions.lowest, versions.highest}:
        rng = seeds.generator(f"partial:{schema.name}:{version}")
        tree = random_tree(schema, version, rng, size=25)
        yield version, to_instance(codec.message(schema.name), tree, schema)


@pytest.mark.parametrize("most", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_every_message_cut_anywhere_gives_its_beginning(most: int) -> None:
    drafts = [
        (kproto.dialect(name), schema)
        for name in ("kip-183", "kip-240", "kip-455-old", "kip-455-new", "kip-860")
        for schema in of_dialect(name).values()
    ]
    every = [(KAFKA, schema) for schema in SCHEMAS] + drafts
    few = quickly_drawn("cut", every, 80) if most == 3 else drawn("cut anywhere", every, few=60)
    for codec, schema in few:
        for version, body in bodies(codec, schema, every=most > 3):
            data = body.encode(version)
            for cut in cuts(len(data), most):
                check_cut(type(body), body, data, version, cut)


@given(messages_and_trees(SCHEMAS), st.data())
def test_any_cut_of_any_value(drawn, data):
    schema, version, tree = drawn
    body = to_instance(KAFKA.message(schema.name), tree, schema)
    raw = body.encode(version)
    if raw:
        cut = data.draw(st.integers(0, len(raw) - 1))
        check_cut(type(body), body, raw, version, cut)


def test_whole_and_too_long() -> None:
    body = HeartbeatRequest(group_id="g", member_id="m")
    data, value = body.encode(4), body.to_json_value(4)
    assert decode_partly(HeartbeatRequest, data, 4) == (value, None)
    part = decode_partly(HeartbeatRequest, data + b"\0\0", 4)
    assert part.value == value
    assert str(part.error) == "bytes left over after the message: 2 (at byte 10)"


def test_a_count_that_cannot_be_is_not_followed() -> None:
    """Unless the data is a beginning, and then no further than there are bytes."""
    data = b"\0\0\x7f\xff\xff\xff\0\1a\0\1"
    part = decode_partly(SaslHandshakeResponse, data, 1)
    assert part.value == {"errorCode": 0}
    assert "Tried to allocate a collection of size 2147483647" in str(part.error)
    told = decode_partly(SaslHandshakeResponse, data, 1, size=2**40)
    assert told.value == {"errorCode": 0, "mechanisms": ["a"]}
    assert str(told.error) == "mechanisms[1]: bytes needed: 1, left: 0 (at byte 9)"


def test_a_tagged_field_whose_size_is_wrong_is_left_out() -> None:
    """Read it was, but whether that is what was meant nobody knows."""
    cls = KAFKA.message("FetchRequest")
    data = cls(cluster_id="abc").encode(17)
    assert data.endswith(b"\x01\0\4\4abc")
    at = data.rindex(b"\x01\0\4\4abc") + 2
    whole = decode_partly(cls, data, 17)
    assert whole.value["clusterId"] == "abc"
    assert decode_partly(cls, data[:at] + b"\3" + data[at + 1 :], 17).value == {
        key: value for key, value in whole.value.items() if key != "clusterId"
    }


# ---- frames ----------------------------------------------------------------------------------


def tiled(fields: PartialFields, length: int) -> None:
    at = 0
    for row in fields.rows:
        if row.leaf:
            assert row.offset == at
            at += row.length
    assert at == fields.end
    assert (fields.end == length) == (fields.error is None)


def test_a_frame_cut_anywhere() -> None:
    whole = request_partly(KAFKA, FRAME)
    assert (whole.error, whole.header is None) == (None, False)
    assert whole.body is not None
    assert whole.body["topics"][0]["partitions"][0]["replicas"] == [4, 5, 6]
    before = PartialFrame({}, {}, None)
    for cut in range(len(FRAME)):
        part = request_partly(KAFKA, FRAME[:cut])
        fields = request_fields_partly(KAFKA, FRAME[:cut])
        tiled(fields, len(FRAME))
        assert str(part.error) == str(fields.error)
        for mine, earlier, all_of_it in zip(part[:2], before[:2], whole[:2], strict=True):
            assert is_beginning(mine or {}, all_of_it)
            assert is_beginning(earlier or {}, mine or {})
        before = part


@given(st.binary(max_size=60), st.sampled_from([3, 18, 45, 1]), st.integers(0, 20))
def test_no_bytes_raise(raw: bytes, api_key: int, version: int) -> None:
    for size in (b"", b"\0\0\0" + bytes([len(raw)]), b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"):
        frame = size + raw
        for given_ in (frame, frame[:4] + bytes([0, api_key, 0, version]) + raw):
            assert request_partly(KAFKA, given_).error is not None or len(given_) >= 14
            tiled_or_wrong(request_fields_partly(KAFKA, given_), given_)
        how = {"api_key": api_key, "api_version": version}
        response_partly(KAFKA, frame, **how)
        tiled_or_wrong(response_fields_partly(KAFKA, frame, **how), frame)


def tiled_or_wrong(fields: PartialFields, frame: bytes) -> None:
    leaves = [row for row in fields.rows if row.leaf]
    ends = [row.offset + row.length for row in leaves]
    assert [row.offset for row in leaves] == [0, *ends][:-1] or not leaves
    assert fields.error is not None or fields.end == len(frame)
    assert fields.end <= len(frame)


def test_a_size_is_judged_last() -> None:
    """The fields say more; where they are all there, the size is what is wrong."""
    longer = request_partly(KAFKA, FRAME + b"\0")
    assert longer.body == request_partly(KAFKA, FRAME).body
    assert str(longer.error) == "size: size is 44 bytes, but 45 follow (at byte 0)"
    unknown = request_partly(KAFKA, FRAME[:6] + b"\0\x63" + FRAME[8:])
    assert (unknown.header, unknown.body) == (None, None)
    assert "not 99" in str(unknown.error)
