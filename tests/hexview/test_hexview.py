"""Bytes for eyes: every byte in one line, arrays folded, nothing unprintable."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kproto
from kproto.annotate import request_fields_partly, response_fields_partly
from kproto.codec.registry import schema_of
from kproto.hexview import Redaction, hex_lines
from kproto.messages import AlterPartitionReassignmentsRequest, MetadataRequest
from kproto.reference.random_trees import random_tree
from tests.support import seeds
from tests.support.instances import to_instance

KAFKA = kproto.dialect("kafka")
FRAME = bytes.fromhex(
    "0000002c002d0000000000020003616363000000ea600204666f6f020000000004000000040000000500000006000000"
)


def view(frame: bytes, **how) -> list[str]:
    return [line.plain for line in hex_lines(frame, request_fields_partly(KAFKA, frame), **how)]


def test_a_frame_to_the_letter() -> None:
    assert view(FRAME) == [
        "     0  00 00 00 2c                          size int32 44",
        "     4  00 2d                                request_api_key int16 45",
        "     6  00 00                                request_api_version int16 0",
        "     8  00 00 00 02                          correlation_id int32 2",
        '    12  00 03 61 63 63                       client_id string "acc"',
        "    17  00                                   header (tag count) 0",
        "    18  00 00 ea 60                          timeout_ms int32 60000",
        "    22  02                                   topics (count) 1",
        '    23  04 66 6f 6f                          topics[0].name string "foo"',
        "    27  02                                   topics[0].partitions (count) 1",
        "    28  00 00 00 00                          topics[0].partitions[0].partition_index "
        "int32 0",
        "    32  04 00 00 00 04 00 00 00 05 00 00 00… topics[0].partitions[0].replicas []int32 "
        "[4, 5, 6]",
        "    45  00                                   topics[0].partitions[0] (tag count) 0",
        "    46  00                                   topics[0] (tag count) 0",
        "    47  00                                   body (tag count) 0",
    ]


def test_a_frame_that_is_cut_or_wrong() -> None:
    assert view(FRAME[:35])[-3:] == [
        "    32  04                                   topics[0].partitions[0].replicas (count) 3",
        "    33  00 00                                (not decoded) 2 bytes",
        "!! topics[0].partitions[0].replicas[0]: bytes needed: 4, left: 2 (at byte 33)",
    ]
    assert view(FRAME[:4] + b"\0\x7f" + FRAME[6:])[1:] == [
        "     4  00 7f 00 00 00 00 00 02 00 03 61 63… (not decoded) 44 bytes",
        "!! request_api_key: dialect kafka has no api key 127 (at byte 4)",
    ]
    assert view(b"\0") == [
        "     0  00                                   (not decoded) 1 byte",
        "!! size: ends before the size (at byte 0)",
    ]


def test_long_arrays_are_folded_and_unfolded() -> None:
    names = [KAFKA.message("MetadataRequest.MetadataRequestTopic")(name=f"t{n}") for n in range(20)]
    frame = KAFKA.encode_request(MetadataRequest(topics=names), api_version=9, correlation_id=1)
    lines = view(frame)
    shown = [line.split()[-1] for line in lines if ".name" in line]
    assert shown == ['"t0"', '"t1"', '"t2"', '"t3"', '"t19"']
    (fold,) = [line for line in lines if "[…]" in line]
    assert fold.endswith("topics[…] 69 bytes")
    assert len([line for line in view(frame, unfold=True) if ".name" in line]) == 20


def covered(lines: list[str]) -> dict[int, int]:
    """Offset -> how many bytes its line shows."""
    found = {}
    for line in lines:
        match = re.match(r" *(\d+)  ((?:[0-9a-f]{2}(?: |$))+)", line)
        if match:
            found[int(match[1])] = len(match[2].split())
    return found


@pytest.mark.parametrize("key", [0, 1, 3, 18, 43, 45, 68])
@given(st.data())
def test_unfolded_every_byte_is_shown_once(key: int, data: st.DataObject) -> None:
    api = KAFKA.apis[key]
    version = data.draw(st.sampled_from(list(api.response.VALID_VERSIONS)))
    schema = schema_of(api.response)
    rng = seeds.generator(f"hexview:{key}:{version}:{data.draw(st.integers(0, 9))}")
    body = to_instance(api.response, random_tree(schema, version, rng, size=20), schema)
    frame = KAFKA.encode_response(body, api_version=version, correlation_id=1)
    frame = frame[: data.draw(st.integers(0, len(frame)))]
    fields = response_fields_partly(KAFKA, frame, api_key=key, api_version=version)
    lines = [line.plain for line in hex_lines(frame, fields, unfold=True)]
    assert all(line.isprintable() for line in lines)
    at = 0
    for offset, size in sorted(covered(lines).items()):
        assert offset == at
        at += size
    assert at == len(frame)
    folded = [line.plain for line in hex_lines(frame, fields)]
    assert len(folded) <= len(lines)
    assert all(line.isprintable() for line in folded)


def test_what_is_hidden_is_masked() -> None:
    path = "topics[0].name"
    for unfold in (True, False):
        lines = view(FRAME, hidden=Redaction({path}), unfold=unfold)
        assert f"    23  xx xx xx xx                          {path} string [redacted]" in lines
        assert "foo" not in "".join(lines)
        cut = view(FRAME[:25], hidden=Redaction((), True), unfold=unfold)
        assert "    23  xx xx                                (not decoded) 2 bytes" in cut


def test_errors_have_names_and_long_values_an_end() -> None:
    body = AlterPartitionReassignmentsRequest(topics=[])
    frame = KAFKA.encode_request(body, api_version=0, correlation_id=1, client_id="x" * 90)
    (line,) = [line for line in view(frame) if "client_id" in line]
    assert line.endswith("xxx…")
    answer = KAFKA.apis[12].response(error_code=16)
    frame = KAFKA.encode_response(answer, api_version=0, correlation_id=1)
    fields = response_fields_partly(KAFKA, frame, api_key=12, api_version=0)
    assert [line.plain for line in hex_lines(frame, fields)][-1].endswith(
        "error_code int16 16 NOT_COORDINATOR"
    )
