"""Fields changed by their path, tags nobody knows, and answers of another version."""

import base64
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kproto.annotate import PARTS, FrameField, response_fields
from kproto.codec.registry import schema_of
from kproto.errors import DecodeError
from mockbroker.apis.common.version_cast import recast
from mockbroker.faults import Fault
from mockbroker.faults.frame_edits import edit_fields
from mockbroker.serving.exchange import Close
from tests.mockbroker.faults.faulty import KAFKA, Faulty, written
from tests.support.full import quick
from tests.support.instances import to_instance
from tests.support.requests import request_of
from tests.support.strategies import message_trees

PAIRS = [(key, version) for key, api in KAFKA.apis.items() for version in api.valid_versions]
NEW: dict[str, Any] = {
    "bool": True, "int8": 5, "int16": 5, "uint16": 5, "int32": 5, "uint32": 5, "int64": 5,
    "float64": 1.5, "uuid": "AAAAAAAAAAAAAAAAAAAABQ", "string": "other", "bytes": "AAU=",
    "records": "AAU=", "[]int32": [1, 2], "[]string": ["a", "bc"],
}  # fmt: skip


def frames(data: Any, key: int, version: int) -> tuple[bytes, list[FrameField]]:
    cls = KAFKA.apis[key].response
    schema = schema_of(cls)
    body = to_instance(cls, data.draw(message_trees(schema, version)), schema)
    frame = KAFKA.encode_response(body, api_version=version, correlation_id=7)
    return frame, response_fields(KAFKA, frame, api_key=key, api_version=version)


def tagged(rows: list[FrameField]) -> list[range]:
    return [range(r.offset, r.offset + r.length) for r in rows if r.type == "tagged fields"]


def settable(rows: list[FrameField]) -> list[FrameField]:
    sections = tagged(rows)
    return [
        row
        for row in rows
        if row.type in NEW
        and row.path not in ("size", "correlation_id")
        and not any(row.offset in section for section in sections)
    ]


SHAKEN = settings(
    max_examples=quick(60, 15), deadline=None, suppress_health_check=list(HealthCheck)
)


@SHAKEN
@given(data=st.data(), pair=st.sampled_from(PAIRS))
def test_one_field_changes_and_nothing_else(data, pair):
    key, version = pair
    frame, rows = frames(data, key, version)
    found = settable(rows)
    assume(found)
    row = data.draw(st.sampled_from(found))
    fault = Fault(set={row.path: NEW[row.type]})
    changed, problems = edit_fields(KAFKA, frame, fault, api_key=key, version=version)
    assert problems == []
    after = response_fields(KAFKA, changed, api_key=key, api_version=version)
    inside = f"{row.path}["

    def leaves(every: list[FrameField]) -> list[tuple[str, Any]]:
        return [
            (each.path, each.value) for each in every
            if each.leaf and each.type not in PARTS and each.path not in (row.path, "size")
            and not each.path.startswith(inside)
        ]  # fmt: skip

    assert leaves(after) == leaves(rows)
    (now,) = [each.value for each in after if each.path == row.path]
    expected = NEW[row.type]
    if row.type in ("bytes", "records"):
        expected = base64.b64decode(expected)
    assert now == expected or str(now) == "00000000-0000-0000-0000-000000000005"


@SHAKEN
@given(data=st.data(), pair=st.sampled_from(PAIRS))
def test_null_is_null_or_refused_by_the_decoder_and_a_length_is_what_it_is_said_to_be(data, pair):
    key, version = pair
    frame, rows = frames(data, key, version)
    found = [r for r in settable(rows) if r.type in ("string", "bytes", "[]int32", "[]string")]
    assume(found)
    row = data.draw(st.sampled_from(found))
    fault = Fault(set={row.path: None})
    changed, problems = edit_fields(KAFKA, frame, fault, api_key=key, version=version)
    assert problems == []
    try:
        _, body = KAFKA.decode_response(changed, api_key=key, api_version=version)
    except DecodeError as error:
        assert error.path == row.path  # noqa: PT017  # either may be
    else:
        assert body is not None
    fault = Fault(set_length={row.path: 2**31 - 1})
    changed, problems = edit_fields(KAFKA, frame, fault, api_key=key, version=version)
    if row.type == "string" and version not in KAFKA.apis[key].response.FLEXIBLE_VERSIONS:
        return  # 16 bits: minus one
    with pytest.raises(DecodeError):
        KAFKA.decode_response(changed, api_key=key, api_version=version)


@SHAKEN
@given(data=st.data(), pair=st.sampled_from(PAIRS))
def test_any_answer_can_be_said_at_any_other_version(data, pair):
    key, version = pair
    cls = KAFKA.apis[key].response
    schema = schema_of(cls)
    body = to_instance(cls, data.draw(message_trees(schema, version)), schema)
    other = data.draw(st.sampled_from(list(cls.VALID_VERSIONS)))
    for each in (body, *_structs(body)):
        each.unknown_tags = {}
    recast(body, other)
    assert cls.decode(body.encode(other), other) is not None


def _structs(value: Any) -> list[Any]:
    found = []
    for name in value.__struct_fields__:
        held = getattr(value, name)
        for each in held if isinstance(held, list) else [held]:
            if hasattr(each, "unknown_tags"):
                found += [each, *_structs(each)]
    return found


METADATA = request_of("Metadata", topics=None)


def test_several_paths_and_every_element():
    asked = Faulty(
        Fault(
            set={"topics[*].partitions[0].leader_id": 9, "controller_id": 77},
            set_bytes={"topics[0].error_code": "0005"},
        )
    )
    answer: Any = asked.answer(METADATA, 9)
    assert [[p.leader_id for p in t.partitions][:1] for t in answer.topics] == [[9], [9]]
    assert (answer.controller_id, answer.topics[0].error_code) == (77, 5)


def test_what_cannot_be_done_is_in_the_note_and_the_rest_is_done():
    asked = Faulty(
        Fault(
            name="much",
            set={"controller_id": 77, "nowhere": 1, "throttle_time_ms": "x", "topics": [{}]},
            set_length={"controller_id": 3},
            unknown_tags=["header", "body"],
            as_version=99,
            throttle=5,
        )
    )
    answer: Any = asked.answer(METADATA, 8)
    assert (answer.controller_id, answer.throttle_time_ms) == (77, 5)
    (entry,) = asked.journal.select(event="fault: much", direction="event")
    for said in (
        "no nowhere", "cannot hold 'x'", "use reply", "controller_id: a field of type int32",
        "the header of version 8 has no tags", "no place for tags in body",
        "version 99 does not exist",
    ):  # fmt: skip
        assert said in entry.note


def test_array_length_of_two_to_the_31_minus_one():
    asked = Faulty(Fault(set_length={"topics": 2**31 - 1}))
    with pytest.raises(DecodeError, match="topics: "):
        asked.answer(METADATA, 9)
    with pytest.raises(DecodeError, match="topics: "):
        asked.answer(METADATA, 1)


def test_unknown_tags_in_header_body_and_elements():
    fault = Fault(unknown_tags=["header", "body", "elements"], unknown_tag_data="cafe")
    plan = Faulty(fault).plan(METADATA, 12)
    assert not isinstance(plan, bytes | Close)
    header, body = KAFKA.decode_response(written(plan), api_key=3, api_version=12)
    every = [header, body, *_structs(body)]
    assert len(every) > 8
    assert {tuple(each.unknown_tags.items()) for each in every} == {((9999, b"\xca\xfe"),)}


def test_an_answer_of_another_version():
    plan = Faulty(Fault(as_version=1)).plan(METADATA, 12)
    assert not isinstance(plan, bytes | Close)
    _, body = KAFKA.decode_response(written(plan), api_key=3, api_version=1)
    assert [each.name for each in body.topics] == ["foo", "bar"]


def test_a_throttle_time_where_there_is_none():
    asked = Faulty(Fault(name="slow", api=3, throttle=5))
    answer: Any = asked.answer(METADATA, 1)
    assert answer.throttle_time_ms == 0
    assert "no throttle time" in asked.journal.select(event="fault: slow")[0].note


def test_a_reply_that_is_none_of_this_version_ends_the_connection():
    asked = Faulty(Fault(name="bad", api=46, reply={"errorCode": "x"}))
    assert asked.answer(request_of("ListPartitionReassignments"), 0) is None
    assert "errorCode" in asked.journal.select(event="fault: bad")[0].note


def sent(fault: Fault) -> bytes:
    """To a request whose answer is the same from every cluster."""
    return written(Faulty(fault).plan(request_of("ListPartitionReassignments", topics=None), 0))


def test_bytes_by_their_offset():
    """Replaced, inserted and taken out, all by the offsets of the answer as it was; the size is
    right again, unless the rule says otherwise."""
    plain = sent(Fault(correlation_off_by=0))
    end = len(plain)
    changes = {"9+4": "0000002a", "13+0": "cafe", f"{end - 1}+1": ""}
    changed = sent(Fault(replace_bytes=changes))
    assert changed[4:] == plain[4:9] + b"\0\0\0*" + b"\xca\xfe" + plain[13:-1]
    assert int.from_bytes(changed[:4], "big") == len(changed) - 4
    lying = sent(Fault(replace_bytes=changes, length=-1))
    assert lying == b"\xff" * 4 + changed[4:]


def test_bytes_beyond_the_answer_are_told_and_nothing_is_replaced():
    plain = sent(Fault(correlation_off_by=0))
    asked = Faulty(Fault(name="far", replace_bytes={"9+4": "", f"{len(plain) - 1}+2": "00"}))
    assert written(asked.plan(request_of("ListPartitionReassignments", topics=None), 0)) == plain
    (entry,) = asked.journal.select(event="fault: far", direction="event")
    assert f"exceed the response of {len(plain)} bytes; nothing was replaced" in entry.note
