"""Frames decoded alone: the texts of the tables, and no bytes that raise."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import kproto
from kproto.messages import ApiVersionsResponse, SaslAuthenticateRequest
from tests.captures.reading import read
from wiredump.frame_texts import FrameText, request_text, response_text
from wiredump.rows.exchanges import rows_of

KAFKA = kproto.dialect("kafka")


def test_texts_are_those_of_the_tables() -> None:
    """All frames of a capture: header, body and problem of ``bodies``, and who of ``requests``."""
    for exchange in read("kafka-4.4.0-admin").exchanges:
        rows = rows_of(exchange)
        bodies = {row[1]: row for table, row in rows if table == "bodies"}
        (request,) = (row for table, row in rows if table == "requests")
        if exchange.request is not None and not exchange.request.sasl:
            found = request_text(exchange.request.raw, KAFKA)
            _, _, _, key, message, version, correlation_id, *texts = bodies["request"]
            assert found[:4] == (key, request[8], version, correlation_id)
            assert (found.client_id, found.message) == (exchange.client_id, message)
            assert [found.header, found.body, found.problem] == texts
        if exchange.response is not None and not exchange.response.sasl:
            found = response_text(
                exchange.response.raw, exchange.api_key, exchange.api_version, KAFKA
            )
            _, _, _, key, message, version, correlation_id, *texts = bodies["response"]
            assert found[:4] == (key, request[8], version, correlation_id)
            assert [found.header, found.body, found.problem] == texts
            assert found.errors == request[22]


def test_a_refused_version_is_read_as_version_0() -> None:
    refused = ApiVersionsResponse(error_code=35)
    frame = kproto.encode_response(refused, api_version=0, correlation_id=5)
    found = response_text(frame, 18, 4, KAFKA)
    assert (found.api_version, found.errors) == (0, ["UNSUPPORTED_VERSION"])
    assert (found.correlation_id, found.problem) == (5, None)


def test_secrets_stay_out() -> None:
    body = SaslAuthenticateRequest(auth_bytes=b"\0user\0secret")
    frame = kproto.encode_request(body, api_version=2, correlation_id=1, client_id="c")
    assert "c2VjcmV0" not in str(request_text(frame, KAFKA).body)


@given(st.binary(max_size=80), st.integers(-(2**15), 2**15 - 1), st.integers(-(2**15), 2**15 - 1))
def test_no_bytes_raise(frame: bytes, key: int, version: int) -> None:
    for found in (
        request_text(frame, KAFKA),
        response_text(frame, key, version, KAFKA),
        response_text(frame, None, None, KAFKA),
    ):
        assert isinstance(found, FrameText)
        assert found.body is not None or found.problem
