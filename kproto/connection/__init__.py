"""Connections without I/O: bytes in, events out, for both sides.

``client`` sends requests and matches responses, ``server`` does the reverse, ``negotiation``
chooses versions, ``states`` defines what may happen when, and ``events`` defines what is reported.
Sockets belong to ``kproto.client`` and ``mockbroker``.

A client's first exchange::

    connection = ClientConnection(client_id="me")
    sock.sendall(connection.begin_negotiation())
    while True:
        connection.receive_data(sock.recv(65536))
        while (event := connection.next_event()) is not None:
            match event:
                case NegotiationRetry(data=data):
                    sock.sendall(data)
                case Negotiated():
                    sock.sendall(connection.send_request(MetadataRequest(topics=None)))
                case ResponseReceived(body=body):
                    print(body)
"""

from kproto.connection.client import ClientConnection
from kproto.connection.events import (
    ClientEvent,
    MalformedRequest,
    MalformedResponse,
    Negotiated,
    NegotiationFailed,
    NegotiationRetry,
    RequestReceived,
    ResponseReceived,
    SaslTokenReceived,
    SentRequest,
    ServerEvent,
    UnexpectedRequest,
    UnsupportedRequest,
)
from kproto.connection.negotiation import choose_version, refusal
from kproto.connection.server import Answerable, ServerConnection
from kproto.connection.states import ClientState, ServerState
from kproto.dialects import has_response

__all__ = [
    "Answerable",
    "ClientConnection",
    "ClientEvent",
    "ClientState",
    "MalformedRequest",
    "MalformedResponse",
    "Negotiated",
    "NegotiationFailed",
    "NegotiationRetry",
    "RequestReceived",
    "ResponseReceived",
    "SaslTokenReceived",
    "SentRequest",
    "ServerConnection",
    "ServerEvent",
    "ServerState",
    "UnexpectedRequest",
    "UnsupportedRequest",
    "choose_version",
    "has_response",
    "refusal",
]
