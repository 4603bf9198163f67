"""What the connections report. Plain values: this file knows no bytes and no states."""

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
    """A request a response belongs to; ``context`` is what the caller gave along with it."""

    api: Api
    api_version: int
    correlation_id: int
    context: Any = None

    def __str__(self) -> str:
        return f"{self.api.name} v{self.api_version} #{self.correlation_id}"


class ResponseReceived(msgspec.Struct, frozen=True, eq=False):
    """The answer to ``request``. ``frame`` is what the socket carried, size included."""

    request: SentRequest
    header: Any
    body: Any
    frame: bytes


class MalformedResponse(msgspec.Struct, frozen=True, eq=False):
    """The answer to ``request`` came, and its body does not follow the schema. The connection can
    go on: sizes and correlation ids still agree."""

    request: SentRequest
    error: DecodeError
    frame: bytes


class NegotiationRetry(msgspec.Struct, frozen=True, eq=False):
    """The peer refused our ApiVersions version; send ``data``, which asks at ``api_version``."""

    data: bytes
    api_version: int


class Negotiated(msgspec.Struct, frozen=True, eq=False):
    """The versions the peer serves, by api key, and the whole ApiVersions response."""

    versions: Mapping[int, Versions]
    body: Any
    api_version: int


class NegotiationFailed(msgspec.Struct, frozen=True, eq=False):
    """ApiVersions was answered with an error no other version helps against."""

    error_code: int
    body: Any
    api_version: int


class SaslTokenReceived(msgspec.Struct, frozen=True, eq=False):
    """A raw SASL token, as follows SaslHandshake v0. Its size is not included."""

    token: bytes


class RequestReceived(msgspec.Struct, frozen=True, eq=False):
    """A request of a key and version we serve. ``frame`` includes its size.

    ``number`` orders the answers of one connection; ``expects_response`` is False for Produce with
    acks=0 alone. ``dialect`` is the one that read it, never ``auto``; the answer goes out in it.
    """

    number: int
    dialect: Dialect
    api: Api
    header: Any
    body: Any
    frame: bytes
    expects_response: bool = True


class UnsupportedRequest(msgspec.Struct, frozen=True, eq=False):
    """A request of a key or version we do not serve. Brokers answer ApiVersions (see
    ``negotiation.refusal``) and close the connection on any other."""

    number: int
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    frame: bytes
    expects_response: bool = True


class UnexpectedRequest(msgspec.Struct, frozen=True, eq=False):
    """A request of any kind where SaslAuthenticate was due. Brokers answer ILLEGAL_SASL_STATE(34)
    and close the connection; nothing else will be read from it."""

    number: int
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    frame: bytes
    expects_response: bool = True


class MalformedRequest(msgspec.Struct, frozen=True, eq=False):
    """A frame that is no request; ids are None where it is too short to hold them. Brokers close
    the connection on it."""

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
ServerEvent = (
    RequestReceived | UnsupportedRequest | UnexpectedRequest | MalformedRequest | SaslTokenReceived
)
