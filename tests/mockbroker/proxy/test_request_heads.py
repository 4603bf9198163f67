"""The beginning of requests: decoded once, compared afterwards."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.dialects import dialect
from kproto.errors import DecodeError
from mockbroker.proxy.request_heads import HeadReader, RequestHead
from tests.support.requests import request_of

KAFKA = dialect("kafka")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["produce", "heartbeat", "metadata"]),
            st.integers(0, 12),
            st.sampled_from([None, "", "a", "ab", "c" * 600]),
            st.sampled_from([-1, 0, 1]),
            st.sampled_from([None, "", "t", "tt"]),
            st.integers(-(2**31), 2**31 - 1),
        ),
        max_size=20,
    )
)
def test_what_was_seen_before_changes_nothing(asked):
    reader, data, expected = HeadReader(KAFKA), b"", []
    body: Any
    for kind, version, client_id, acks, transactional_id, correlation_id in asked:
        if kind == "produce":
            body = request_of(
                "Produce", acks=acks, transactional_id=transactional_id if version >= 3 else None
            )
        else:
            body = (
                request_of("Heartbeat")
                if kind == "heartbeat"
                else request_of("Metadata", topics=[])
            )
            version = min(version, 4)
        data += KAFKA.encode_request(
            body, api_version=version, correlation_id=correlation_id, client_id=client_id
        )
        expected.append(
            RequestHead(body.API_KEY, version, correlation_id, client_id,
                        kind != "produce" or acks != 0)
        )  # fmt: skip
    at = 0
    for head in expected:
        assert reader.read(data, at) == head
        at += 4 + int.from_bytes(data[at : at + 4], "big")


@pytest.mark.requirement("DP-PROXY-28")
def test_a_remembered_head_is_not_looked_for_behind_the_frame() -> None:
    """A short frame, followed by bytes that would continue a head seen before."""
    reader = HeadReader(KAFKA)
    whole = KAFKA.encode_request(
        request_of("Heartbeat"), api_version=0, correlation_id=1, client_id="client"
    )
    assert reader.read(whole, 0) == RequestHead(12, 0, 1, "client", expects_response=True)
    short = (8).to_bytes(4, "big") + whole[4:]
    head = reader.read(short, 0)
    assert head is not None
    assert head.client_id in (None, "client")
    for count in range(4, 12):
        assert reader.read(whole[:count], 0) is None
    with pytest.raises(DecodeError, match="no complete header"):
        reader.read((7).to_bytes(4, "big"), 0)
