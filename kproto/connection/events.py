"""The events of connections, as plain values. This module knows no bytes and no states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kproto.dialects import Api, Dialect
from kproto.errors import DecodeError
from kproto.schema.versions import Versions

__all__ = [
    "ClientEvent",
    "MalformedRequest",
    "MalformedResponse",
    "Negotiated",
    "NegotiationFailed",
    "NegotiationRetry",
    "RequestReceived",
    "ResponseReceived",
    "SaslTokenReceived",
    "SentRequest",
    "ServerEvent",
    "UnexpectedRequest",
    "UnsupportedRequest",
]


class SentRequest(msgspec.Struct, frozen=True, eq=False):
    """The request of a response. ``context`` is the caller's."""

    api: Api
    api_version: int
    correlation_id: int
    context: Any = None

    def __str__(self) -> str:
        return f"{self.api.name} v{self.api_version} #{self.correlation_id}"


class ResponseReceived(msgspec.Struct, frozen=True, eq=False):
    """The response to ``request``. ``frame`` is as on the socket, size included."""

    request: SentRequest
    header: Any
    body: Any
    frame: bytes


class MalformedResponse(msgspec.Struct, frozen=True, eq=False):
    """The body of the response to ``request`` does not match the schema. The connection can
    continue, since sizes and correlation ids are still consistent."""

    request: SentRequest
    error: DecodeError
    frame: bytes


class NegotiationRetry(msgspec.Struct, frozen=True, eq=False):
    """The peer refused our ApiVersions version. Send ``data``, which requests ``api_version``."""

    data: bytes
    api_version: int


class Negotiated(msgspec.Struct, frozen=True, eq=False):
    """The versions that the peer serves, by api key, and the whole ApiVersions response."""

    versions: Mapping[int, Versions]
    body: Any
    api_version: int


class NegotiationFailed(msgspec.Struct, frozen=True, eq=False):
    """The peer refused ApiVersions with an error that no other version avoids."""

    error_code: int
    body: Any
    api_version: int


class SaslTokenReceived(msgspec.Struct, frozen=True, eq=False):
    """A raw SASL token, as follows SaslHandshake v0, without its size."""

    token: bytes


class RequestReceived(msgspec.Struct, frozen=True, eq=False):
    """A request with a key and version we serve. ``frame`` includes its size.

    ``number`` orders the responses of one connection. ``expects_response`` is False only for
    Produce with acks=0. ``dialect`` is the one that decoded it, never ``auto``; the response is
    encoded in it.
    """

    number: int
    dialect: Dialect
    api: Api
    header: Any
    body: Any
    frame: bytes
    expects_response: bool = True


class UnsupportedRequest(msgspec.Struct, frozen=True, eq=False):
    """A request with a key or version we do not serve. Brokers respond to ApiVersions (see
    ``negotiation.refusal``) and close the connection on any other."""

    number: int
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    frame: bytes
    expects_response: bool = True


class UnexpectedRequest(msgspec.Struct, frozen=True, eq=False):
    """A request of any kind where SaslAuthenticate was due. Brokers respond with ILLEGAL_SASL_STATE
    (34) and close the connection; nothing more is read from it."""

    number: int
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    frame: bytes
    expects_response: bool = True


class MalformedRequest(msgspec.Struct, frozen=True, eq=False):
    """A frame that is not a request. Ids are None if it is too short to contain them. Brokers close
    the connection."""

    number: int
    api_key: int | None
    api_version: int | None
    correlation_id: int | None
    error: DecodeError
    frame: bytes
    expects_response: bool = True


ClientEvent = (
    ResponseReceived
    | MalformedResponse
    | NegotiationRetry
    | Negotiated
    | NegotiationFailed
    | SaslTokenReceived
)
"""What ``ClientConnection.next_event`` returns."""

ServerEvent = (
    RequestReceived | UnsupportedRequest | UnexpectedRequest | MalformedRequest | SaslTokenReceived
)
"""What ``ServerConnection.next_event`` returns."""
