"""The client's side against frames written here by hand or by the codec."""

import struct
from typing import Any

import pytest

import kproto
from kproto.connection import (
    ClientConnection,
    ClientState,
    MalformedResponse,
    Negotiated,
    NegotiationFailed,
    NegotiationRetry,
    ResponseReceived,
    SaslTokenReceived,
)
from kproto.errors import (
    LocalProtocolError,
    RemoteProtocolError,
    UnknownNameError,
    UnsupportedVersionError,
)
from kproto.framing import encode_frame
from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kproto.messages.api_versions_response import ApiVersion
from kproto.schema.versions import Versions


def heartbeat(connection: ClientConnection, version: int = 4, context: object = None) -> bytes:
    body = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    return connection.send_request(body, version, context=context)


def heartbeat_answer(correlation_id: int, version: int = 4, code: int = 27) -> bytes:
    return kproto.encode_response(
        HeartbeatResponse(error_code=code), api_version=version, correlation_id=correlation_id
    )


def api_versions(error_code: int, rows: dict[int, tuple[int, int]]) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=error_code,
        api_keys=[
            ApiVersion(api_key=k, min_version=a, max_version=b) for k, (a, b) in rows.items()
        ],
    )


def events(connection: ClientConnection) -> list[Any]:
    return list(iter(connection.next_event, None))


def negotiated(rows: dict[int, tuple[int, int]], **options: Any) -> ClientConnection:
    connection = ClientConnection(**options)
    header, _ = kproto.decode_request(connection.begin_negotiation())
    connection.receive_data(
        kproto.encode_response(
            api_versions(0, rows),
            api_version=header.request_api_version,
            correlation_id=header.correlation_id,
        )
    )
    assert isinstance(events(connection)[0], Negotiated)
    return connection


# ---- requests and responses ------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 7, 1 << 20], ids=["byte by byte", "seven bytes", "whole"])
def test_pipelined_responses_three_ways(step: int) -> None:
    """However the stream is cut, each response meets its request; a trailing part waits."""
    connection = ClientConnection(client_id="me", first_correlation_id=40)
    sent = [heartbeat(connection, version, context=version) for version in (0, 3, 4)]
    for frame, correlation_id in zip(sent, (40, 41, 42), strict=True):
        header, body = kproto.decode_request(frame)
        assert (header.correlation_id, header.client_id) == (correlation_id, "me")
        assert isinstance(body, HeartbeatRequest)
        assert body.group_id == "g"
    assert len(connection.pending) == 3
    answers = [heartbeat_answer(40 + n, version, n) for n, version in enumerate((0, 3, 4))]
    stream = b"".join(answers[:2]) + answers[2][:-1]
    got: list[Any] = []
    for at in range(0, len(stream), step):
        connection.receive_data(stream[at : at + step])
        got += events(connection)
    assert [(e.request.context, e.body.error_code, e.frame) for e in got] == [
        (0, 0, answers[0]),
        (3, 1, answers[1]),
    ]
    connection.receive_data(answers[2][-1:])
    assert [e.body.error_code for e in events(connection)] == [2]
    assert not connection.pending


def test_correlation_ids_wrap_to_zero() -> None:
    connection = ClientConnection(first_correlation_id=2**31 - 1)
    for expected in (2**31 - 1, 0, 1):
        header, _ = kproto.decode_request(heartbeat(connection))
        assert header.correlation_id == expected


def test_produce_without_acks_awaits_no_response() -> None:
    connection = ClientConnection()
    connection.send_request(ProduceRequest(acks=0, timeout_ms=1, topic_data=[]), 9)
    assert not connection.pending
    heartbeat(connection)
    connection.receive_data(heartbeat_answer(1))
    assert [e.request.correlation_id for e in events(connection)] == [1]
    connection.send_request(ProduceRequest(acks=1, timeout_ms=1, topic_data=[]), 9)
    assert len(connection.pending) == 1


def test_controlled_shutdown_v0_has_no_client_id_in_its_header() -> None:
    connection = ClientConnection(client_id="unseen")
    frame = connection.send_request(ControlledShutdownRequest(broker_id=5), 0)
    assert frame == encode_frame(struct.pack(">hhii", 7, 0, 0, 5))
    answer = ControlledShutdownResponse(error_code=0)
    connection.receive_data(kproto.encode_response(answer, api_version=0, correlation_id=0))
    assert events(connection)[0].body == answer


@pytest.mark.parametrize("correlation_id", [1, -1, 7])
def test_a_response_out_of_order_closes(correlation_id: int) -> None:
    connection = ClientConnection()
    heartbeat(connection), heartbeat(connection)
    connection.receive_data(heartbeat_answer(correlation_id))
    for _ in range(2):
        with pytest.raises(
            RemoteProtocolError, match=f"correlation id {correlation_id} arrived where"
        ):
            connection.next_event()
    assert connection.state is ClientState.CLOSED
    assert len(connection.pending) == 2
    with pytest.raises(LocalProtocolError, match="while the connection is closed"):
        heartbeat(connection)


def test_a_response_to_nothing_and_one_without_an_id() -> None:
    connection = ClientConnection()
    connection.receive_data(heartbeat_answer(3))
    with pytest.raises(RemoteProtocolError, match="correlation id 3 matches no request"):
        connection.next_event()
    connection = ClientConnection()
    heartbeat(connection)
    connection.receive_data(encode_frame(b"abc"))
    with pytest.raises(RemoteProtocolError, match="a response of 3 bytes has no correlation id"):
        connection.next_event()


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b + b"\0", lambda b: b[:5]])
def test_a_malformed_body_is_that_requests_alone(damage: Any) -> None:
    connection = ClientConnection()
    heartbeat(connection, context="first"), heartbeat(connection, context="second")
    bad = encode_frame(damage(heartbeat_answer(0)[4:]))
    connection.receive_data(bad + heartbeat_answer(1))
    first, second = events(connection)
    assert isinstance(first, MalformedResponse)
    assert (first.request.context, first.frame) == ("first", bad)
    assert isinstance(second, ResponseReceived)
    assert second.request.context == "second"


def test_good_responses_come_before_a_bad_size() -> None:
    connection = ClientConnection()
    heartbeat(connection)
    connection.receive_data(heartbeat_answer(0) + struct.pack(">i", -1))
    assert isinstance(connection.next_event(), ResponseReceived)
    with pytest.raises(RemoteProtocolError, match="frame size -1 is negative"):
        connection.next_event()


def test_the_end_of_the_stream() -> None:
    connection = ClientConnection()
    heartbeat(connection)
    connection.receive_data(heartbeat_answer(0) + b"\0\0")
    connection.receive_eof()
    assert isinstance(connection.next_event(), ResponseReceived)
    with pytest.raises(RemoteProtocolError, match="closed inside a frame, 2 bytes into it"):
        connection.next_event()
    clean = ClientConnection()
    clean.receive_eof()
    assert clean.next_event() is None
    assert clean.state is ClientState.CLOSED


def test_a_request_that_cannot_be_encoded_changes_nothing() -> None:
    connection = ClientConnection()
    with pytest.raises(UnsupportedVersionError):
        connection.send_request(SaslHandshakeRequest(mechanism="PLAIN"), 99)
    guarded = AlterPartitionReassignmentsRequest(allow_replication_factor_change=False)
    with pytest.raises(UnsupportedVersionError, match="allowReplicationFactorChange at version 0"):
        connection.send_request(guarded, 0)
    assert not connection.pending
    assert connection.state is ClientState.OPEN
    assert kproto.decode_request(heartbeat(connection))[0].correlation_id == 0


def test_what_is_no_request_of_this_dialect_is_refused() -> None:
    connection = ClientConnection()
    with pytest.raises(LocalProtocolError, match="MetadataResponse is not a request"):
        connection.send_request(MetadataResponse(), 4)
    draft: Any = kproto.dialect("kip-455-new").message("AlterPartitionReassignmentsRequest")
    with pytest.raises(LocalProtocolError, match="connection's dialect kafka"):
        connection.send_request(draft(), 0)
    with pytest.raises(UnknownNameError, match="dialect kafka has no api key 32240"):
        connection.version_for(32240)


# ---- negotiation -----------------------------------------------------------------------------


def test_negotiation_picks_the_highest_common_version() -> None:
    connection = negotiated({18: (0, 4), 3: (0, 9), 45: (0, 0), 12: (4, 99)})
    assert connection.peer_versions == {
        18: Versions(0, 4),
        3: Versions(0, 9),
        45: Versions(0, 0),
        12: Versions(4, 99),
    }
    assert connection.version_for(3) == 9
    assert connection.version_for(3, Versions(0, 5)) == 5
    assert connection.version_for(12) == HeartbeatRequest.VALID_VERSIONS.highest
    header, _ = kproto.decode_request(connection.send_request(MetadataRequest(topics=None)))
    assert (header.request_api_key, header.request_api_version) == (3, 9)


@pytest.mark.parametrize(
    ("rows", "allowed", "text"),
    [
        ({18: (0, 3)}, None, "The node does not support ALTER_PARTITION_REASSIGNMENTS"),
        (
            {45: (0, 0)},
            Versions(1, 1),
            "The node does not support ALTER_PARTITION_REASSIGNMENTS with version in range [1,1]. "
            "The supported range is [0,0].",
        ),
        (
            {45: (7, 9)},
            None,
            "The node does not support ALTER_PARTITION_REASSIGNMENTS with version in range [0,1]. "
            "The supported range is [7,9].",
        ),
    ],
)
def test_no_common_version_in_the_words_of_kafkas_clients(rows, allowed, text):
    connection = negotiated(rows)
    with pytest.raises(UnsupportedVersionError) as caught:
        connection.version_for(45, allowed)
    assert str(caught.value) == text


def test_a_version_is_needed_before_negotiation() -> None:
    connection = ClientConnection()
    with pytest.raises(LocalProtocolError, match="no version of METADATA is negotiated"):
        connection.send_request(MetadataRequest())
    connection.begin_negotiation()
    with pytest.raises(LocalProtocolError, match="while the ApiVersions response is pending"):
        connection.send_request(MetadataRequest(), 4)


def test_the_first_request_names_the_software() -> None:
    connection = ClientConnection(software_name="acc", software_version="1.2")
    header, body = kproto.decode_request(connection.begin_negotiation())
    assert header.request_api_version == ApiVersionsRequest.VALID_VERSIONS.highest
    assert isinstance(body, ApiVersionsRequest)
    assert (body.client_software_name, body.client_software_version) == ("acc", "1.2")


@pytest.mark.parametrize(
    ("refusals", "asked"),
    [
        pytest.param([{18: (0, 2)}], [4, 2], id="a broker from 2.4 on names its range"),
        pytest.param([{}], [4, 0], id="an older broker sends no row"),
        pytest.param([{18: (0, 4)}], [4, 0], id="the refused version named again"),
        pytest.param([{18: (5, 9)}], [4, 0], id="a range above ours"),
        pytest.param([{18: (0, -1)}], [4, 0], id="a negative version"),
        pytest.param([{18: (0, 2)}, {18: (0, 1)}], [4, 2, 0], id="named, and refused"),
    ],
)
def test_fallback(refusals: list[dict[int, tuple[int, int]]], asked: list[int]) -> None:
    """Error 35 comes in a body of version 0, whatever version was asked."""
    connection = ClientConnection()
    frame = connection.begin_negotiation(4)
    versions = []
    for rows in refusals:
        header, _ = kproto.decode_request(frame)
        versions.append(header.request_api_version)
        connection.receive_data(
            kproto.encode_response(
                api_versions(35, rows), api_version=0, correlation_id=header.correlation_id
            )
        )
        (retry,) = events(connection)
        assert isinstance(retry, NegotiationRetry)
        frame = retry.data
    header, _ = kproto.decode_request(frame)
    versions.append(header.request_api_version)
    connection.receive_data(
        kproto.encode_response(
            api_versions(0, {3: (0, 1)}),
            api_version=header.request_api_version,
            correlation_id=header.correlation_id,
        )
    )
    (done,) = events(connection)
    assert isinstance(done, Negotiated)
    assert done.api_version == asked[-1]
    assert versions == asked
    assert connection.version_for(3) == 1


def test_a_peer_that_refuses_everything_costs_three_requests() -> None:
    connection = ClientConnection()
    frame: bytes | None = connection.begin_negotiation(4)
    asked = 0
    while frame is not None:
        asked += 1
        header, _ = kproto.decode_request(frame)
        version = header.request_api_version
        refusal = api_versions(35, {18: (0, max(version - 1, 0))})
        connection.receive_data(
            kproto.encode_response(refusal, api_version=0, correlation_id=header.correlation_id)
        )
        (event,) = events(connection)
        frame = event.data if isinstance(event, NegotiationRetry) else None
    assert isinstance(event, NegotiationFailed)
    assert (event.error_code, event.api_version, asked) == (35, 0, 3)
    assert connection.state is ClientState.OPEN


@pytest.mark.parametrize("version", [0, 2, 3, 4])
def test_other_errors_end_the_negotiation(version: int) -> None:
    connection = ClientConnection()
    connection.begin_negotiation(version)
    answer = kproto.encode_response(api_versions(42, {}), api_version=version, correlation_id=0)
    connection.receive_data(answer)
    (event,) = events(connection)
    assert isinstance(event, NegotiationFailed)
    assert event.error_code == 42
    assert connection.peer_versions is None


def test_a_refusal_in_the_version_asked_for_is_understood_too() -> None:
    connection = ClientConnection()
    connection.begin_negotiation(3)
    answer = api_versions(35, {18: (0, 2)})
    connection.receive_data(kproto.encode_response(answer, api_version=3, correlation_id=0))
    (event,) = events(connection)
    assert isinstance(event, NegotiationRetry)
    assert event.api_version == 2


# The third is what librdkafka 2.16's mock cluster answers to version 4.
@pytest.mark.parametrize("rest", ["0023", "00230000", "00230100120000000200000000"])
def test_a_refusal_in_no_version_at_all_leads_to_version_0(rest: str) -> None:
    connection = ClientConnection()
    connection.begin_negotiation(4)
    answer = encode_frame(struct.pack(">i", 0) + bytes.fromhex(rest))
    connection.receive_data(answer)
    (event,) = events(connection)
    assert isinstance(event, NegotiationRetry)
    assert event.api_version == 0
    connection.receive_data(answer[:7] + b"\x01" + answer[8:])
    with pytest.raises(RemoteProtocolError, match=r"^the response to API_VERSIONS v0 #1 cannot"):
        connection.next_event()


@pytest.mark.parametrize("rest", [b"", b"\0", b"\0\x2a", b"\0\x2a\0\0", b"\0\0\xff"])
def test_an_unreadable_api_versions_response_is_the_peers_fault(rest: bytes) -> None:
    connection = ClientConnection()
    connection.begin_negotiation(4)
    connection.receive_data(encode_frame(struct.pack(">i", 0) + rest))
    with pytest.raises(
        RemoteProtocolError, match=r"^the response to API_VERSIONS v4 #0 cannot be read"
    ):
        connection.next_event()


def test_api_versions_as_an_ordinary_request_falls_back_when_read() -> None:
    connection = ClientConnection()
    connection.send_request(ApiVersionsRequest(), 4)
    refusal = api_versions(35, {18: (0, 3)})
    connection.receive_data(kproto.encode_response(refusal, api_version=0, correlation_id=0))
    (event,) = events(connection)
    assert (event.body.error_code, event.body.api_keys[0].max_version) == (35, 3)


# ---- SASL ------------------------------------------------------------------------------------


def handshake(connection: ClientConnection, version: int, code: int) -> None:
    connection.send_request(SaslHandshakeRequest(mechanism="PLAIN"), version)
    with pytest.raises(LocalProtocolError):
        heartbeat(connection)
    answer = SaslHandshakeResponse(error_code=code, mechanisms=["PLAIN"])
    connection.receive_data(kproto.encode_response(answer, api_version=version, correlation_id=0))
    (event,) = events(connection)
    assert event.body.mechanisms == ["PLAIN"]


def test_sasl_v0_tokens_have_no_kafka_header() -> None:
    connection = ClientConnection()
    handshake(connection, 0, 0)
    assert connection.send_sasl_token(b"\0me\0secret") == b"\0\0\0\x0a\0me\0secret"
    with pytest.raises(LocalProtocolError, match="without Kafka headers"):
        heartbeat(connection)
    connection.receive_data(b"\0\0\0\0")
    assert [e.token for e in events(connection) if isinstance(e, SaslTokenReceived)] == [b""]
    connection.complete_sasl()
    heartbeat(connection)
    connection.receive_data(heartbeat_answer(1))
    assert isinstance(connection.next_event(), ResponseReceived)


def test_sasl_v1_tokens_travel_in_sasl_authenticate() -> None:
    connection = ClientConnection()
    handshake(connection, 1, 0)
    with pytest.raises(LocalProtocolError, match="cannot send a raw SASL token"):
        connection.send_sasl_token(b"")
    with pytest.raises(LocalProtocolError, match="in SaslAuthenticate requests"):
        heartbeat(connection)
    connection.send_request(SaslAuthenticateRequest(auth_bytes=b"token"), 2)
    with pytest.raises(LocalProtocolError, match="SASL_AUTHENTICATE v2 #1 has no response"):
        connection.complete_sasl()
    answer = SaslAuthenticateResponse(error_code=0, auth_bytes=b"done")
    connection.receive_data(kproto.encode_response(answer, api_version=2, correlation_id=1))
    assert connection.next_event().body.auth_bytes == b"done"  # type: ignore[union-attr]
    connection.complete_sasl()
    heartbeat(connection)


@pytest.mark.parametrize("version", [0, 1])
def test_a_refused_mechanism_leaves_the_connection_as_it_was(version: int) -> None:
    connection = ClientConnection()
    handshake(connection, version, 33)
    assert connection.state is ClientState.OPEN
    heartbeat(connection)
