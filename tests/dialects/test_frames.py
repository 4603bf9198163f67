"""Whole frames in and out, and whose they are."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kproto
from kproto.errors import (
    DecodeError,
    EncodeError,
    SchemaError,
    UnknownNameError,
    UnsupportedFrameError,
    UnsupportedVersionError,
)
from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ApiVersionsResponse,
    ControlledShutdownRequest,
    HeartbeatRequest,
    ReassignablePartition,
    ReassignableTopic,
    RequestHeader,
)

ALTER = AlterPartitionReassignmentsRequest(
    topics=[
        ReassignableTopic(
            name="foo", partitions=[ReassignablePartition(partition_index=0, replicas=[4, 5, 6])]
        )
    ]
)

# Written by hand from KIP-482 and the schemas of 45 v0: size, header v2, compact lengths.
ALTER_FRAME = bytes.fromhex(
    "0000002c" "002d0000" "00000002" "0003616363" "00"
    "0000ea60" "02" "04666f6f" "02" "00000000" "04" "000000040000000500000006" "00" "00" "00"
)  # fmt: skip


def test_a_frame_by_hand() -> None:
    frame = kproto.encode_request(ALTER, api_version=0, correlation_id=2, client_id="acc")
    assert frame == ALTER_FRAME
    header, body = kproto.decode_request(frame)
    assert body == ALTER
    assert header == RequestHeader(
        request_api_key=45, request_api_version=0, correlation_id=2, client_id="acc"
    )
    assert kproto.decode_request(memoryview(b"x" + frame)[1:]) == (header, body)


@pytest.mark.requirement("C-06")
def test_header_versions() -> None:
    """C-06: v0 for the first ControlledShutdown, v2 with a client id that is not compact, and
    response header v0 for ApiVersions whatever the version."""
    shutdown = ControlledShutdownRequest(broker_id=3)
    frame = kproto.encode_request(shutdown, api_version=0, correlation_id=9, client_id="ignored")
    assert frame.hex() == "0000000c000700000000000900000003"
    assert kproto.decode_request(frame)[1] == shutdown
    for client_id, written in ((None, "ffff"), ("", "0000")):
        frame = kproto.encode_request(ALTER, api_version=0, correlation_id=2, client_id=client_id)
        assert frame[12:14].hex() == written
        assert kproto.decode_request(frame)[0].client_id == client_id
    versions = kproto.encode_response(ApiVersionsResponse(), api_version=3, correlation_id=7)
    assert versions[4:10].hex() == "000000070000"  # the error code follows: no tag section
    alter = AlterPartitionReassignmentsResponse()
    assert kproto.encode_response(alter, api_version=0, correlation_id=7)[4:9].hex() == "0000000700"


@pytest.mark.requirement("C-06")
def test_unknown_tags_survive_in_header_and_body() -> None:
    body = HeartbeatRequest(group_id="g", unknown_tags={77: b"later"})
    frame = kproto.encode_request(
        body, api_version=4, correlation_id=1, unknown_tags={5: b"h", 6: b""}
    )
    header, again = kproto.decode_request(frame)
    assert header.unknown_tags == {5: b"h", 6: b""}
    assert again == body


@pytest.mark.parametrize(
    ("frame", "offset", "path"),
    [
        (b"", 0, "size"),
        (ALTER_FRAME[:20], 0, "size"),
        (ALTER_FRAME + b"\0", 0, "size"),
        (bytes.fromhex("00000002002d"), 4, "request_api_key"),
        (bytes.fromhex("0000000403e70000"), 4, "request_api_key"),
        (bytes.fromhex("00000004002d0063"), 6, "request_api_version"),
        (bytes.fromhex("00000004002d0000"), 8, "correlation_id"),
    ],
)
def test_frames_that_are_not(frame: bytes, offset: int, path: str) -> None:
    with pytest.raises(DecodeError) as caught:
        kproto.decode_request(frame)
    assert (caught.value.offset, caught.value.path) == (offset, path)


def test_an_unknown_key_or_version_is_also_an_unsupported_version() -> None:
    with pytest.raises(UnsupportedVersionError) as caught:
        kproto.decode_request(bytes.fromhex("0000000403e70000"))
    assert isinstance(caught.value, UnsupportedFrameError)
    with pytest.raises(UnsupportedVersionError):
        kproto.decode_response(bytes(8), api_key=45, api_version=99)


def offset_of_error(name: str, frame: bytes) -> int:
    """Where decoding failed, or the end of the frame if it did not. Nothing else may be raised."""
    try:
        kproto.dialect(name).decode_request(frame)
    except DecodeError as error:
        return error.offset
    return len(frame)


@given(st.binary(max_size=80), st.sampled_from(["kafka", "kip-455-new", "kip-240", "auto"]))
@pytest.mark.requirement("C-09")
def test_any_bytes_decode_or_raise_decode_error(payload: bytes, name: str) -> None:
    frame = len(payload).to_bytes(4, "big") + payload
    assert 0 <= offset_of_error(name, frame) <= len(frame)


@given(st.data())
@pytest.mark.requirement("C-09")
def test_damaged_frames_decode_or_raise_decode_error(data: st.DataObject) -> None:
    damaged = bytearray(ALTER_FRAME)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(4, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    assert 4 <= offset_of_error("auto", bytes(damaged)) <= len(damaged)


def test_only_bodies_of_the_right_direction_are_framed() -> None:
    with pytest.raises(EncodeError):
        kproto.encode_response(ALTER, api_version=0, correlation_id=1)
    with pytest.raises(EncodeError):
        kproto.encode_request(RequestHeader(), api_version=1, correlation_id=1)
    with pytest.raises(UnsupportedVersionError):
        kproto.encode_request(ALTER, api_version=2, correlation_id=1)


# -- drafts -----------------------------------------------------------------------------------


@pytest.mark.requirement("A-02", "K455-12")
def test_drafts_and_shipped_share_a_key_and_differ_on_the_wire() -> None:
    """A-02: the dialect, not the version, selects the codec."""
    draft = kproto.dialect("kip-455-new")
    cls = draft.message("AlterPartitionReassignmentsRequest")
    frame = draft.encode_request(cls(topics=None), api_version=0, correlation_id=1, client_id="c")
    assert frame.hex() == "00000013002d0000000000010001630000ea60ffffffff"
    assert draft.decode_request(frame)[1].topics is None
    with pytest.raises(DecodeError):
        kproto.decode_request(frame)
    with pytest.raises(DecodeError):
        draft.decode_request(ALTER_FRAME)


@pytest.mark.requirement("A-02")
def test_auto_tells_dialects_apart() -> None:
    auto = kproto.dialect("auto")
    draft, old = kproto.dialect("kip-455-new"), kproto.dialect("kip-240")
    cases = {
        "kafka": ALTER_FRAME,
        "kip-455-new": draft.encode_request(
            draft.message("ListPartitionReassignmentsRequest")(topics=None),
            api_version=0, correlation_id=1, client_id="c",
        ),
        "kip-240": old.encode_request(
            old.message("ListReassignmentsRequest")(), api_version=0, correlation_id=1
        ),
    }  # fmt: skip
    for name, frame in cases.items():
        found, header, body = auto.identify_request(frame)  # type: ignore[attr-defined]
        assert found.name == name
        assert auto.decode_request(frame) == (header, body)
    with pytest.raises(DecodeError):
        auto.decode_request(ALTER_FRAME[:-1] + b"\x01")


@pytest.mark.requirement("A-01", "A-22")
def test_names() -> None:
    draft = kproto.dialect("kip-455-old")
    assert draft.apis[45].name == "ALTER_PARTITION_ASSIGNMENTS"
    assert draft.message("LeaderAndIsrRequest.LeaderAndIsrPartitionState")().target_replicas is None
    assert draft.message("MetadataRequest") is kproto.dialect("kafka").message("MetadataRequest")
    with pytest.raises(UnknownNameError, match="did you mean MetadataRequest"):
        draft.message("MetadataReqest")
    with pytest.raises(UnknownNameError, match="has no struct"):
        draft.message("MetadataRequest.Nothing")
    with pytest.raises(UnknownNameError, match="the dialects are kafka"):
        kproto.dialect("kip-999")
    assert kproto.dialect("kip-240").apis[32240].name == "LIST_REASSIGNMENTS"
    with pytest.raises(KeyError):
        kproto.dialect("kafka").apis[32240]


GREETING = """{
  "apiKey": 901, "type": "%s", "name": "Greeting%s", "validVersions": "0-1",
  "flexibleVersions": "1+", "fields": [
    { "name": "Text", "type": "string", "versions": "0+", "nullableVersions": "1+" },
    { "name": "Loud", "type": "bool", "versions": "1+", "default": "true" },
    { "name": "Rows", "type": "[]Row", "versions": "0+", "fields": [
      { "name": "Id", "type": "uuid", "versions": "0+" },
      { "name": "Scores", "type": "[]int32", "versions": "0+" } ] } ] }"""


@pytest.mark.requirement("C-02")
def test_a_never_seen_schema(tmp_path: Path) -> None:
    """C-02: a draft of one's own takes the very same path, file to frame and back."""
    for direction in ("Request", "Response"):
        text = GREETING % (direction.lower(), direction)
        (tmp_path / f"Greeting{direction}.json").write_text(text)
    own = kproto.load_dialect(tmp_path)
    request = own.message("GreetingRequest")
    row = own.message("GreetingRequest.Row")
    for version in (0, 1):
        body = request(text="hi", rows=[row(scores=[1, 2])] * 5)
        frame = own.encode_request(body, api_version=version, correlation_id=4)
        assert own.decode_request(frame)[1] == body
        assert request.from_json(body.to_json(version), version) == body
    with pytest.raises(UnsupportedVersionError):
        request(loud=False).encode(0)
    with pytest.raises(UnsupportedFrameError):
        kproto.decode_request(frame)
    assert own.decode_request(ALTER_FRAME)[1] == ALTER


def test_a_damaged_schema_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "Bad.json").write_text('{\n"apiKey": 901,\n"type": "reqest", "name": "Bad"}')
    with pytest.raises(SchemaError, match=r"Bad\.json:3"):
        kproto.load_dialect(tmp_path)
