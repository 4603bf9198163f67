"""Whatever either side sends, a passage raises nothing but the errors of the peer."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.errors import DecodeError, RemoteProtocolError
from kproto.framing import encode_frame
from kproto.messages.api_versions_response import ApiVersionsResponse
from kproto.messages.fetch_response import FetchResponse
from kproto.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from kproto.messages.sasl_handshake_response import SaslHandshakeResponse
from tests.mockbroker.proxy.test_passage import KAFKA, Line, produce
from tests.support.requests import request_of


def _seeds() -> tuple[list[bytes], list[bytes]]:
    asked = [
        (request_of("ApiVersions"), 3),
        (request_of("Metadata", topics=None), 12),
        (request_of("Fetch"), 17),
        (request_of("SaslHandshake", mechanism="PLAIN"), 0),
        (produce(0), 9),
        (produce(-1), 11),
    ]
    broker = MetadataResponseBroker(node_id=1, host="h", port=1)
    answered = [(ApiVersionsResponse(), 3), (MetadataResponse(brokers=[broker]), 12),
                (FetchResponse(), 17), (SaslHandshakeResponse(), 0)]  # fmt: skip
    requests = [
        KAFKA.encode_request(body, api_version=version, correlation_id=1, client_id="c")
        for body, version in asked
    ]
    responses = [
        KAFKA.encode_response(body, api_version=version, correlation_id=1)
        for body, version in answered
    ]
    return requests, responses


REQUESTS, RESPONSES = _seeds()


@st.composite
def damaged(draw: st.DrawFn, frames: list[bytes]) -> bytes:
    """A frame with a byte changed, cut short, or none at all."""
    frame = bytearray(draw(st.sampled_from(frames)))
    kind = draw(st.integers(0, 4))
    if kind == 1:
        frame[draw(st.integers(4, len(frame) - 1))] = draw(st.integers(0, 255))
    elif kind == 2:
        frame = bytearray(encode_frame(bytes(frame[4 : draw(st.integers(4, len(frame)))])))
    elif kind == 3:
        frame = bytearray(encode_frame(draw(st.binary(max_size=60))))
    elif kind == 4:
        frame = bytearray(draw(st.binary(max_size=20)))
    return bytes(frame)


TRAFFIC = st.lists(
    st.one_of(
        st.tuples(st.just("client"), damaged(REQUESTS)),
        st.tuples(st.just("upstream"), damaged(RESPONSES)),
    ),
    max_size=12,
)


@pytest.mark.requirement("DP-PROXY-35")
@given(TRAFFIC, st.sampled_from(["frames", "headers", "events"]), st.integers(1, 50))
def test_nothing_else_is_raised(traffic, detail, chunk):
    line = Line(detail)
    with contextlib.suppress(RemoteProtocolError, DecodeError):
        for side, data in traffic:
            send = line.client if side == "client" else line.upstream
            for at in range(0, len(data), chunk):
                send(data[at : at + chunk])
    # What is held is no more than what came.
    assert line.passage.buffered <= sum(len(data) for _, data in traffic)
