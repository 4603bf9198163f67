"""Entries decoded on reading, and the one-line rendering."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kproto
from kproto.errors import DecodeError, UnknownNameError
from kproto.framing import encode_frame
from kproto.journal import ClientSoftware, Entry, describe
from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    ApiVersionsResponse,
    HeartbeatResponse,
    ReassignablePartition,
    ReassignableTopic,
)

ALTER = AlterPartitionReassignmentsRequest(
    topics=[
        ReassignableTopic(
            name="foo", partitions=[ReassignablePartition(partition_index=0, replicas=[4, 5])]
        )
    ]
)
ALTER_FRAME = kproto.encode_request(ALTER, api_version=0, correlation_id=5, client_id="acc")


def entry(direction: Any = "request", **fields: Any) -> Entry:
    return Entry(1, 12_345_000_000, 2, 3, direction, **fields)


def test_a_request_is_decoded_when_it_is_read() -> None:
    decoded = entry(api_key=45, api_version=0, raw=ALTER_FRAME).decode()
    assert decoded.error is None
    assert (decoded.body, decoded.header.client_id, decoded.version) == (ALTER, "acc", 0)


@pytest.mark.requirement("C-10")
def test_a_draft_is_decoded_by_its_dialect() -> None:
    draft = kproto.dialect("kip-455-new")
    message: Any = draft.message("AlterPartitionReassignmentsRequest")
    raw = draft.encode_request(message(timeout_ms=9), api_version=0, correlation_id=1)
    fields = {"api_key": 45, "api_version": 0, "raw": raw}
    assert entry(**fields, dialect="kip-455-new").decode().body == message(timeout_ms=9)
    assert entry(**fields, dialect="of-a-user").decode(draft).body == message(timeout_ms=9)
    assert isinstance(entry(**fields).decode().error, DecodeError)
    assert isinstance(entry(**fields, dialect="of-a-user").decode().error, UnknownNameError)


@pytest.mark.parametrize("version", [0, 4])
def test_an_api_versions_refusal_is_in_version_0(version: int) -> None:
    refusal = ApiVersionsResponse(error_code=35)
    raw = kproto.encode_response(refusal, api_version=0, correlation_id=1)
    decoded = entry("response", api_key=18, api_version=version, raw=raw).decode()
    assert (decoded.body, decoded.version, decoded.error) == (refusal, 0, None)


def test_events_have_nothing_to_decode() -> None:
    assert entry("event", event="connected").decode() == (None, None, None, None)


@given(
    raw=st.binary(max_size=60) | st.binary(max_size=60).map(encode_frame),
    direction=st.sampled_from(["request", "response", "event"]),
    api_key=st.sampled_from([0, 3, 12, 18, 45, 999]),
    api_version=st.integers(-1, 20),
    dialect=st.sampled_from(["kafka", "auto", "kip-240", "of-a-user"]),
)
@pytest.mark.requirement("C-10")
def test_rubbish_comes_back_as_an_error(raw, direction, api_key, api_version, dialect):
    some = entry(direction, api_key=api_key, api_version=api_version, raw=raw, dialect=dialect)
    decoded = some.decode()
    assert (decoded.body is None) == (decoded.error is not None or not raw)
    assert describe(some).isprintable()


JSON = (
    '{"timeoutMs":60000,"topics":[{"name":"foo","partitions":[{"partitionIndex":0,'
    '"replicas":[4,5]}]}]}'
)


@pytest.mark.parametrize(
    ("some", "line"),
    [
        (
            entry(
                api_key=45,
                api_version=0,
                correlation_id=5,
                client_id="acc",
                client_software=ClientSoftware("kafka-python", "3.0.12"),
                raw=ALTER_FRAME,
            ),
            "12.345 broker 2 <- kafka-python 3.0.12  AlterPartitionReassignments v0 #5 " + JSON,
        ),
        (
            entry("event", peer="127.0.0.1:4", event="disconnected", note="by the peer"),
            "12.345 broker 2 -- 127.0.0.1:4  [disconnected] by the peer",
        ),
        (
            entry(
                api_key=999, api_version=7, correlation_id=1, client_id="me", event="unsupported"
            ),
            "12.345 broker 2 <- me  api 999 v7 #1 [unsupported]",
        ),
        (
            entry(event="sasl-token", client_id="me", raw=encode_frame(b"secret")),
            "12.345 broker 2 <- me  [sasl-token] 10 bytes",
        ),
    ],
    ids=["request", "event", "unknown key", "token"],
)
def test_describe(some: Entry, line: str) -> None:
    assert describe(some) == line


def test_describe_shows_why_a_body_cannot_be_decoded() -> None:
    some = entry("response", api_key=12, api_version=4, correlation_id=1, raw=encode_frame(b""))
    error = some.decode().error
    assert isinstance(error, DecodeError)
    assert describe(some) == f"12.345 broker 2 -> ?  Heartbeat v4 #1 !! {error}"


def test_describe_counts_from_a_start_and_cuts_the_body() -> None:
    raw = kproto.encode_response(HeartbeatResponse(), api_version=4, correlation_id=1)
    some = entry("response", api_key=12, api_version=4, correlation_id=1, raw=raw, peer="p")
    whole = describe(some, since_ns=12_000_000_000, width=None)
    assert whole == '0.345 broker 2 -> p  Heartbeat v4 #1 {"throttleTimeMs":0,"errorCode":0}'
    assert describe(some, width=12).endswith('#1 {"throttleT…')


def test_describe_lets_no_control_characters_through() -> None:
    some = entry("event", peer="\x1b[31mred\n", event="connected")
    assert describe(some) == "12.345 broker 2 -- \\x1b[31mred\\n  [connected]"
