"""The places of selected fields: a slice of the frame is what the column of that field has."""

import math
import random
import struct
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kproto
from kproto import reference
from kproto.codec import registry
from kproto.codegen.plan import FORMATS
from kproto.columns import Field, select
from kproto.columns.layout import lay_out
from kproto.columns.places import PlaceFinder, place_finder
from kproto.errors import SelectionError, UnknownNameError, UnsupportedVersionError
from kproto.messages import (
    FetchableTopicResponse,
    FetchResponse,
    HeartbeatRequest,
    MetadataResponse,
    RequestHeader,
)
from kproto.messages.fetch_response import PartitionData
from tests.columns.exploded import lines, some_of
from tests.native.burn import damage
from tests.native.test_memory import LOOPS, least_growth
from tests.support import engines
from tests.support.schemas import released
from tests.support.strategies import messages_and_trees

pytestmark = pytest.mark.usefixtures("native_engine")

RELEASED = [s for s in released().values() if lines(s)]
HEADER = RequestHeader(
    request_api_key=3, request_api_version=9, correlation_id=7, client_id="clïent"
).encode(2)
BEFORE = b"size"


@pytest.fixture(scope="module")
def native_engine() -> Any:
    engines.require_native()
    with engines.running("native"):
        yield


def made(message: Any, version: int, paths: list[str]) -> PlaceFinder:
    finder = place_finder((RequestHeader, 2), message, version, paths)
    assert finder is not None
    return finder


def value_at(field: Field, frame: bytes, at: int, size: int) -> Any:
    data = frame[at : at + size]
    assert len(data) == size
    if field.kind in FORMATS:
        return struct.unpack(f">{FORMATS[field.kind]}", data)[0]
    return data.decode() if field.kind == "string" else data


def agrees(found: Any, expected: Any) -> bool:
    if isinstance(expected, float) and math.isnan(expected):
        return math.isnan(found)
    if isinstance(expected, uuid.UUID):
        return bool(found == expected.bytes)
    return bool(found == expected)


def default_of(message: Any, version: int, path: str) -> Any:
    (leaf,) = lay_out(registry.plan_of(message, version), {"x": path}).levels[-1].leaves
    return leaf.fields[-1].default


@given(messages_and_trees(RELEASED), st.randoms(use_true_random=False), st.data())
def test_any_fields_of_any_message(drawn, rng, data):
    """Values are those of ``select``; what that refuses has no places."""
    schema, version, tree = drawn
    message = kproto.dialect("kafka").message(schema.name)
    chosen = select(message, version, some_of(schema, rng))
    fields = [field for field in chosen.fields if field.kind != "array"]
    if not fields:
        return
    body = reference.encode(schema, version, tree)
    if data.draw(st.booleans()):
        body = damage(body, data.draw(st.randoms()))
    paths = [field.path for field in fields]
    table = select(message, version, paths).read([body], errors="collect")
    frame = BEFORE + HEADER + body
    found = made(message, version, paths).find(frame, len(BEFORE))
    if table.errors:
        assert found is None or found[1] != len(frame)
        return
    assert found is not None
    rows, end = found
    assert end == len(frame)
    columns = table.to_pydict()
    assert len(rows) == table.rows
    for number, row in enumerate(rows):
        for field, (at, size) in zip(fields, row, strict=True):
            expected = columns[field.path][number]
            if size >= 0:
                assert agrees(value_at(field, frame, at, size), expected)
            elif expected is not None:
                assert expected == default_of(message, version, field.path)


def test_a_field_above_the_rows_repeats():
    body = bytes.fromhex(
        "00000000 01 01 00000000"  # throttle, no brokers, no cluster id, controller
        "03 0000 02 61 00 03"  # two topics; error, "a", not internal, two partitions
        "0000 00000005 00000000 00000000 01 01 01 00"
        "0000 00000006 00000000 00000000 01 01 01 00"
        "80000000 00"
        "0000 02 62 00 01 80000000 00"  # "b" has no partition
        "80000000 00"
    )
    frame = HEADER + body
    finder = made(MetadataResponse, 9, ["topics.partitions.partition_index", "topics.name"])
    found = finder.find(frame, 0)
    assert found is not None
    rows, end = found
    assert end == len(frame)
    assert [(frame[at : at + 4], frame[on : on + size]) for (at, _), (on, size) in rows] == [
        (b"\0\0\0\5", b"a"),
        (b"\0\0\0\6", b"a"),
    ]


def test_bytes_that_do_not_match_have_no_places():
    body = HeartbeatRequest(group_id="g", generation_id=1, member_id="m").encode(4)
    finder = made(HeartbeatRequest, 4, ["group_id"])
    frame = HEADER + body
    assert finder.find(frame, 0) == ([((len(HEADER) + 1, 1),)], len(frame))
    assert finder.find(frame + b"more", 0) == ([((len(HEADER) + 1, 1),)], len(frame))
    for end in range(len(frame)):
        assert finder.find(frame[:end], 0) is None
    for offset in (-1, len(frame), len(frame) + 1):
        assert finder.find(frame, offset) is None


def test_what_has_no_place_is_refused():
    header = RequestHeader, 2
    with pytest.raises(SelectionError, match="is an array"):
        place_finder(header, MetadataResponse, 9, ["topics.partitions.replica_nodes"])
    with pytest.raises(UnknownNameError):
        place_finder(header, MetadataResponse, 9, ["topics.nothing"])
    with pytest.raises(UnsupportedVersionError):
        place_finder((RequestHeader, 99), MetadataResponse, 9, ["topics.name"])
    with engines.running("pure"):
        assert place_finder(header, MetadataResponse, 9, ["topics.name"]) is None
    selection: Any = select(MetadataResponse, 9, ["topics.partitions.replica_nodes"])._compiled
    with pytest.raises(ValueError, match="no place"):
        selection.locate(b"", 0, None)
    selection = select(MetadataResponse, 9, ["topics.name"])._compiled
    for wrong in ((), (b"", 0), ("", 0, None), (b"", 0, 1), (b"", "", None)):
        with pytest.raises(TypeError):
            selection.locate(*wrong)


@pytest.mark.counts_memory
def test_nothing_is_left_behind():
    rng = random.Random(1)
    topic = FetchableTopicResponse(
        topic="t", partitions=[PartitionData(partition_index=at) for at in range(20)]
    )
    frame = HEADER + FetchResponse(responses=[topic] * 3).encode(12)
    frames = [frame, *(damage(frame, rng) for _ in range(20))]
    paths = ["responses.topic", "responses.partitions.partition_index"]
    finder = made(FetchResponse, 12, paths)

    def once() -> None:
        for each in frames:
            finder.locate(each, 0, finder.header)

    assert least_growth(once) < LOOPS
