"""The broker's side against frames written here by hand or by the codec."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kproto
from kproto.connection import (
    MalformedRequest,
    RequestReceived,
    SaslTokenReceived,
    ServerConnection,
    ServerState,
    UnexpectedRequest,
    UnsupportedRequest,
    refusal,
)
from kproto.errors import KprotoError, LocalProtocolError, RemoteProtocolError
from kproto.framing import FrameSplitter, encode_frame
from kproto.messages import (
    ApiVersionsRequest,
    ControlledShutdownRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    ProduceRequest,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kproto.schema.versions import Versions


def heartbeat(correlation_id: int, version: int = 4) -> bytes:
    return kproto.encode_request(
        HeartbeatRequest(group_id="g", generation_id=1, member_id="m"),
        api_version=version,
        correlation_id=correlation_id,
        client_id="me",
    )


def request(body: Any, version: int, correlation_id: int = 0) -> bytes:
    return kproto.encode_request(
        body, api_version=version, correlation_id=correlation_id, client_id="me"
    )


def events(connection: ServerConnection) -> list[Any]:
    return list(iter(connection.next_event, None))


def fed(connection: ServerConnection, *frames: bytes) -> list[Any]:
    connection.receive_data(b"".join(frames))
    return events(connection)


def codes(data: bytes) -> list[tuple[int, int]]:
    """Correlation id and error code of each Heartbeat v4 response in ``data``."""
    splitter = FrameSplitter(keep_size=True)
    splitter.feed(data)
    found = []
    for frame in splitter.frames():
        header, body = kproto.decode_response(frame, api_key=12, api_version=4)
        assert isinstance(body, HeartbeatResponse)
        found.append((header.correlation_id, body.error_code))
    return found


# ---- requests --------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 7, 1 << 20], ids=["byte by byte", "seven bytes", "whole"])
def test_pipelined_requests_three_ways(step: int) -> None:
    frames = [heartbeat(7, 0), heartbeat(7, 3), heartbeat(9, 4)]
    stream = b"".join(frames) + heartbeat(10)[:-1]
    connection = ServerConnection()
    got: list[Any] = []
    for at in range(0, len(stream), step):
        got += fed(connection, stream[at : at + step])
    assert [type(event) for event in got] == [RequestReceived] * 3
    assert [event.frame for event in got] == frames
    assert [event.header.correlation_id for event in got] == [7, 7, 9]
    assert {event.api.name for event in got} == {"HEARTBEAT"}
    assert {event.header.client_id for event in got} == {"me"}
    assert len(fed(connection, heartbeat(10)[-1:])) == 1


@given(data=st.data(), count=st.integers(1, 8))
def test_responses_leave_in_the_order_of_their_requests(data: st.DataObject, count: int) -> None:
    """Whatever order they are answered in, and with equal correlation ids; dropped ones hold
    nothing up."""
    ids = data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    connection = ServerConnection()
    requests = fed(connection, *map(heartbeat, ids))
    dropped = data.draw(st.sets(st.integers(0, count - 1)))
    in_parts = data.draw(st.sets(st.integers(0, count - 1)))
    written = b""
    for done, at in enumerate(data.draw(st.permutations(range(count)))):
        assert connection.unanswered == count - done
        if at in dropped:
            written += connection.drop_response(requests[at])
        elif at in in_parts:
            body = HeartbeatResponse(error_code=at)
            written += b"".join(connection.send_response_parts(requests[at], body))
        else:
            written += connection.send_response(requests[at], HeartbeatResponse(error_code=at))
    assert codes(written) == [(ids[at], at) for at in range(count) if at not in dropped]
    assert connection.unanswered == 0


def test_produce_without_acks_takes_no_place_among_the_responses() -> None:
    connection = ServerConnection()
    silent = request(ProduceRequest(acks=0, timeout_ms=1, topic_data=[]), 9)
    loud = request(ProduceRequest(acks=-1, timeout_ms=1, topic_data=[]), 9, 1)
    first, second, third = fed(connection, silent, heartbeat(2), loud)
    assert [event.expects_response for event in (first, second, third)] == [False, True, True]
    with pytest.raises(LocalProtocolError, match="acks=0 has no response"):
        connection.send_bytes(first, b"x")
    assert codes(connection.send_response(second, HeartbeatResponse())) == [(2, 0)]


def test_an_answer_is_given_once_and_to_a_request() -> None:
    connection = ServerConnection()
    first, second = fed(connection, heartbeat(0), heartbeat(1))
    assert connection.send_response(second, HeartbeatResponse()) == b""
    with pytest.raises(LocalProtocolError, match="request number 2 already has a response"):
        connection.send_response(second, HeartbeatResponse())
    assert len(codes(connection.send_response(first, HeartbeatResponse()))) == 2
    for event in (first, second):
        with pytest.raises(
            LocalProtocolError, match=f"number {event.number} already has a response"
        ):
            connection.send_bytes(event, b"")
    connection.close()
    with pytest.raises(LocalProtocolError, match="while the connection is closed"):
        connection.send_response(first, HeartbeatResponse())


def test_a_response_that_cannot_be_encoded_changes_nothing() -> None:
    connection = ServerConnection()
    (event,) = fed(connection, heartbeat(5))
    with pytest.raises(KprotoError):
        connection.send_response(event, HeartbeatResponse(error_code=1 << 20))
    assert codes(connection.send_response(event, HeartbeatResponse(error_code=3))) == [(5, 3)]


def test_an_answer_in_parts_is_given_once_and_accepts_a_handshake() -> None:
    connection = ServerConnection(sasl_required=True)
    (handshake,) = fed(connection, request(SaslHandshakeRequest(mechanism="PLAIN"), 1))
    body = SaslHandshakeResponse(mechanisms=["PLAIN"])
    assert b"".join(connection.send_response_parts(handshake, body))
    assert connection.state is ServerState.AUTHENTICATING
    with pytest.raises(LocalProtocolError, match="already has a response"):
        connection.send_response_parts(handshake, body)


def test_damaged_bytes_keep_their_place() -> None:
    connection = ServerConnection()
    first, second = fed(connection, heartbeat(0), heartbeat(1))
    assert connection.send_response(second, HeartbeatResponse()) == b""
    data = connection.send_bytes(first, b"\0\0")
    assert data[:2] == b"\0\0"
    assert codes(data[2:]) == [(1, 0)]


def test_controlled_shutdown_v0_is_read_without_a_client_id() -> None:
    connection = ServerConnection()
    (event,) = fed(connection, encode_frame(struct.pack(">hhii", 7, 0, 11, 5)))
    assert (event.header.correlation_id, event.body) == (11, ControlledShutdownRequest(broker_id=5))


# ---- what is not served ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api_key", "version"),
    [(12, 99), (12, -1), (999, 0), (-1, 0), (18, 6), (12, 3)],
    ids=["version", "negative version", "key", "negative key", "ApiVersions", "narrowed"],
)
def test_unsupported_requests(api_key: int, version: int) -> None:
    served = {18: Versions(0, 3), 12: Versions(0, 2)}
    connection = ServerConnection(served=served)
    body = struct.pack(">hhih", api_key, version, 77, 2) + b"me" + b"whatever follows"
    (event,) = fed(connection, encode_frame(body))
    assert isinstance(event, UnsupportedRequest)
    assert (event.api_key, event.api_version, event.correlation_id) == (api_key, version, 77)
    assert event.client_id == "me"
    assert event.frame == encode_frame(body)
    assert len(fed(connection, heartbeat(0, 2))) == 1


@pytest.mark.parametrize("tail", [b"", b"\0", b"\xff\xff", b"\0\x09short"])
def test_a_client_id_that_is_none(tail: bytes) -> None:
    (event,) = fed(ServerConnection(), encode_frame(struct.pack(">hhi", 999, 0, 1) + tail))
    assert (event.correlation_id, event.client_id) == (1, None)


@pytest.mark.parametrize(
    ("served", "rows"), [(Versions(0, 3), "00000001001200000003"), (None, "00000000")]
)
def test_refusing_an_api_versions_version(served: Versions | None, rows: str) -> None:
    """Error 35 in a version 0 body: one row for key 18 since Kafka 2.4, none before."""
    connection = ServerConnection(served={18: Versions(0, 3)})
    (event,) = fed(connection, request(ApiVersionsRequest(), 4, 9))
    data = connection.send_response(event, refusal(connection.dialect, served), api_version=0)
    assert data == encode_frame(bytes.fromhex("000000090023" + rows))
    assert connection.state is ServerState.OPEN


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b + b"\0", lambda b: b[:9]])
def test_malformed_requests_keep_the_framing(damage: Any) -> None:
    bad = encode_frame(damage(heartbeat(5)[4:]))
    connection = ServerConnection()
    event, after = fed(connection, bad, heartbeat(6))
    assert isinstance(event, MalformedRequest)
    assert (event.api_key, event.api_version, event.correlation_id, event.frame) == (12, 4, 5, bad)
    assert isinstance(after, RequestReceived)
    assert codes(connection.drop_response(event)) == []
    assert codes(connection.send_response(after, HeartbeatResponse())) == [(6, 0)]


@pytest.mark.parametrize("size", range(8))
def test_frames_too_short_for_a_header(size: int) -> None:
    connection = ServerConnection()
    (event,) = fed(connection, encode_frame(b"\0" * size))
    assert isinstance(event, MalformedRequest)
    assert (event.api_key, event.correlation_id) == (None, None)
    with pytest.raises(LocalProtocolError, match="only be answered with bytes"):
        connection.send_response(event, HeartbeatResponse())


def test_good_requests_come_before_a_bad_size() -> None:
    connection = ServerConnection(max_size=1000)
    connection.receive_data(heartbeat(0) + struct.pack(">i", 1001))
    assert isinstance(connection.next_event(), RequestReceived)
    for _ in range(2):
        with pytest.raises(RemoteProtocolError, match="frame size 1001 is more than the 1000"):
            connection.next_event()
    assert connection.state is ServerState.CLOSED


def test_the_end_of_the_stream() -> None:
    connection = ServerConnection()
    connection.receive_data(heartbeat(0) + b"\0")
    connection.receive_eof()
    assert isinstance(connection.next_event(), RequestReceived)
    with pytest.raises(RemoteProtocolError, match="closed inside a frame, 1 bytes into it"):
        connection.next_event()


@given(noise=st.binary(max_size=200), sasl=st.booleans())
def test_noise_raises_nothing_but_the_peers_fault(noise: bytes, sasl: bool) -> None:
    connection = ServerConnection(sasl_required=sasl)
    connection.receive_data(encode_frame(noise) + noise)
    connection.receive_eof()
    try:
        while (event := connection.next_event()) is not None:
            assert not isinstance(event, SaslTokenReceived)
            connection.drop_response(event) if event.expects_response else None
    except RemoteProtocolError:
        assert connection.state is ServerState.CLOSED


# ---- dialects --------------------------------------------------------------------------------


def test_auto_answers_each_request_in_its_own_dialect() -> None:
    connection = ServerConnection(codec=kproto.dialect("auto"))
    draft = kproto.dialect("kip-455-new")
    shipped = kproto.dialect("kafka")
    name = "AlterPartitionReassignmentsRequest"
    frames = []
    for at, codec in enumerate((draft, shipped)):
        body: Any = codec.message(name)
        frames.append(
            codec.encode_request(body(), api_version=0, correlation_id=at, client_id="me")
        )
    first, second = fed(connection, *frames)
    assert [event.dialect.name for event in (first, second)] == ["kip-455-new", "kafka"]
    for codec, event in ((draft, first), (shipped, second)):
        answer: Any = codec.message("AlterPartitionReassignmentsResponse")
        data = connection.send_response(event, answer(throttle_time_ms=6))
        _, read = codec.decode_response(data, api_key=45, api_version=0)
        assert read == answer(throttle_time_ms=6)


# ---- SASL ------------------------------------------------------------------------------------

PLAIN = SaslHandshakeRequest(mechanism="PLAIN")
ACCEPTED = SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"])
REFUSED = SaslHandshakeResponse(error_code=33, mechanisms=["PLAIN"])


def test_nothing_but_api_versions_and_sasl_before_authentication() -> None:
    connection = ServerConnection(sasl_required=True)
    (event,) = fed(connection, request(ApiVersionsRequest(), 0))
    assert isinstance(event, RequestReceived)
    connection.receive_data(heartbeat(1))
    with pytest.raises(RemoteProtocolError, match="while the client has not authenticated"):
        connection.next_event()
    assert connection.state is ServerState.CLOSED


def test_sasl_v0_raw_tokens() -> None:
    """Everything is sent at once, and still nothing is read before its meaning is settled."""
    connection = ServerConnection(sasl_required=True)
    (event,) = fed(
        connection, request(PLAIN, 0), encode_frame(b"one"), encode_frame(b"two"), heartbeat(1)
    )
    assert connection.paused
    connection.send_response(event, ACCEPTED)
    for expected in (b"one", b"two"):
        (token,) = events(connection)
        assert token.token == expected
        assert connection.paused
        assert connection.send_sasl_token(expected.upper()) == encode_frame(expected.upper())
    connection.complete_sasl()
    (event,) = events(connection)
    assert isinstance(event, RequestReceived)
    assert event.api.api_key == 12


def test_sasl_v1_framed_tokens() -> None:
    connection = ServerConnection(sasl_required=True)
    token = request(SaslAuthenticateRequest(auth_bytes=b"token"), 2, 1)
    (event,) = fed(connection, request(PLAIN, 1), token, token, heartbeat(2))
    connection.send_response(event, ACCEPTED)
    for _ in range(2):
        (event,) = events(connection)
        assert event.body.auth_bytes == b"token"
        assert connection.paused
        with pytest.raises(LocalProtocolError, match="cannot complete the SASL exchange"):
            connection.complete_sasl()
        connection.send_response(event, SaslAuthenticateResponse(auth_bytes=b"more"))
    connection.complete_sasl()
    assert events(connection)[0].api.api_key == 12


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize(
    ("api_key", "version", "frame"),
    [(12, 4, heartbeat(1)), (18, 0, request(ApiVersionsRequest(), 0, 1)),
     (17, 1, request(PLAIN, 1, 1))],
)  # fmt: skip
def test_a_request_in_the_middle_of_sasl_is_answered_and_the_last(
    required: bool, api_key: int, version: int, frame: bytes
) -> None:
    connection = ServerConnection(sasl_required=required)
    (event,) = fed(connection, request(PLAIN, 1), frame, heartbeat(2))
    connection.send_response(event, ACCEPTED)
    (event,) = events(connection)
    assert isinstance(event, UnexpectedRequest)
    assert (event.api_key, event.api_version, event.frame) == (api_key, version, frame)
    assert connection.send_bytes(event, b"no") == b"no"
    # Whatever it was answered, neither it nor what follows is served.
    assert connection.paused
    assert events(connection) == []
    with pytest.raises(LocalProtocolError):
        connection.complete_sasl()
    connection.close()


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("by_bytes", [True, False])
def test_a_refused_mechanism_leaves_the_connection_as_it_was(version, required, by_bytes):
    connection = ServerConnection(sasl_required=required)
    before = connection.state
    (event,) = fed(connection, request(PLAIN, version))
    if by_bytes:
        connection.send_bytes(event, b"rubbish")
    else:
        connection.send_response(event, REFUSED)
    assert connection.state is before


def test_reauthentication_on_an_open_connection() -> None:
    connection = ServerConnection()
    (event,) = fed(connection, request(PLAIN, 1))
    connection.send_response(event, ACCEPTED)
    assert connection.state is ServerState.AUTHENTICATING
    connection.complete_sasl()
    assert len(fed(connection, heartbeat(1))) == 1
