"""A conversation with one of everything that lines have to tell: refused, fallen back, without an
answer, with a password, cut short. A packet a millisecond."""

from __future__ import annotations

import kproto
from kproto.framing import encode_frame
from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    ProduceRequest,
    ReassignablePartition,
    ReassignableTopic,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tests.wiredump.talk import Piece
from wiredump.conversation import Conversation
from wiredump.model import Connection, Item, Place

KAFKA = kproto.dialect("kafka")
CLIENT, BROKER = "10.0.0.1:50000", "10.0.0.2:9092"
PASSWORD = b"hunter2-is-no-password"


def asked(body, version: int, number: int, client_id: str | None = "acc") -> Piece:
    frame = KAFKA.encode_request(
        body, api_version=version, correlation_id=number, client_id=client_id
    )
    return Piece(True, frame)


def answered(body, version: int, number: int) -> Piece:
    return Piece(False, KAFKA.encode_response(body, api_version=version, correlation_id=number))


def listen(pieces: list[Piece], *, from_start: bool = True) -> list[Item]:
    conversation = Conversation(Connection(0, CLIENT, BROKER, 0, from_start=from_start))
    items: list[Item] = []
    for number, piece in enumerate(pieces):
        now, place = number * 10**6, Place(0, 24 + 100 * number)
        if piece.raw:
            items += conversation.data(piece.forward, piece.raw, now, place)
        else:
            items += conversation.gap(piece.forward, piece.missing, "lost", now, place)
    return items + conversation.end("the capture ends")


def versions(version: int, number: int) -> Piece:
    body = ApiVersionsRequest(client_software_name="kafka-python", client_software_version="3.0.12")
    return asked(body, version, number)


FALLBACK = [versions(4, 1), answered(ApiVersionsResponse(error_code=35), 0, 1)]

HELLO = [versions(3, 2), answered(ApiVersionsResponse(), 3, 2)]

_CANCEL = AlterPartitionReassignmentsRequest(
    topics=[
        ReassignableTopic(
            name="foo",
            partitions=[
                ReassignablePartition(partition_index=0, replicas=None),
                ReassignablePartition(partition_index=1, replicas=[4, 5, 6]),
            ],
        )
    ]
)
_TOPIC = KAFKA.message("AlterPartitionReassignmentsResponse.ReassignableTopicResponse")
_PARTITION = KAFKA.message("AlterPartitionReassignmentsResponse.ReassignablePartitionResponse")
_REFUSED = AlterPartitionReassignmentsResponse(
    responses=[
        _TOPIC(
            name="foo",
            partitions=[
                _PARTITION(partition_index=0, error_code=85, error_message="None is in progress."),
                _PARTITION(partition_index=1, error_code=39, error_message=None),
            ],
        )
    ]
)
REFUSED = [asked(_CANCEL, 0, 5), answered(_REFUSED, 0, 5)]

PRODUCE = [asked(ProduceRequest(acks=0, timeout_ms=1, topic_data=[]), 7, 6)]

PLAIN = [
    asked(SaslAuthenticateRequest(auth_bytes=b"\0user\0" + PASSWORD), 2, 7),
    answered(SaslAuthenticateResponse(session_lifetime_ms=5), 2, 7),
]

BARE = [
    asked(SaslHandshakeRequest(mechanism="PLAIN"), 0, 8),
    answered(SaslHandshakeResponse(mechanisms=["PLAIN"]), 0, 8),
    Piece(True, encode_frame(b"\0user\0" + PASSWORD)),
    Piece(False, encode_frame(b"")),
]

_BROKERS = MetadataResponse(
    brokers=[MetadataResponseBroker(node_id=n, host=f"h{n}", port=9092) for n in range(9)]
)
_METADATA = answered(_BROKERS, 9, 9)

CUT = [
    asked(MetadataRequest(topics=None), 9, 9),
    Piece(False, _METADATA.raw[:40]),
    Piece(False, b"", len(_METADATA.raw) - 40),
]

UNANSWERED = [asked(MetadataRequest(topics=[]), 0, 10, "evil\x1b[31m\r\n")]
