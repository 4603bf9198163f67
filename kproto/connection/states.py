"""The states of a connection and what may happen in each.

Rule: the two tables below are the only places where one state follows from another. The connections
look inputs up and never compare states to find out what is legal. This module knows no codes, bytes
or correlation ids.

An input that a table does not list breaks a rule: it is a LocalProtocolError if the input is our
action, and a RemoteProtocolError if it is the peer's.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, Generic, TypeAlias, TypeVar

from kproto.errors import LocalProtocolError, RemoteProtocolError

__all__ = [
    "CLIENT_TRANSITIONS",
    "SERVER_TRANSITIONS",
    "ClientInput",
    "ClientState",
    "ServerInput",
    "ServerState",
    "StateMachine",
]


class _Name(Enum):
    """Members are looked up on every frame, and Enum's own hash is a slow Python function."""

    __hash__ = object.__hash__


class ClientState(_Name):
    """The value completes the sentence "cannot ... while ..."."""

    OPEN = "requests may be sent"
    NEGOTIATING = "the ApiVersions response is pending"
    HANDSHAKE_V0 = "the SaslHandshake v0 response is pending"
    HANDSHAKE_V1 = "the SaslHandshake response is pending"
    RAW_TOKENS = "SASL tokens are exchanged without Kafka headers"
    AUTHENTICATING = "SASL tokens are exchanged in SaslAuthenticate requests"
    CLOSED = "the connection is closed"


class ClientInput(_Name):
    """The value completes the sentence "cannot ..." for ours, "the peer may not ..." for theirs."""

    NEGOTIATE = "begin a negotiation"
    SEND_REQUEST = "send a request"
    SEND_HANDSHAKE_V0 = "send SaslHandshake v0"
    SEND_HANDSHAKE_V1 = "send SaslHandshake"
    SEND_AUTHENTICATE = "send SaslAuthenticate"
    SEND_TOKEN = "send a raw SASL token"
    COMPLETE_SASL = "complete the SASL exchange"
    CLOSE = "close"
    NEGOTIATION_ENDED = "end the negotiation"
    HANDSHAKE_ACCEPTED = "accept a SASL mechanism"
    HANDSHAKE_REFUSED = "refuse a SASL mechanism"


class ServerState(_Name):
    """What the server's side of a connection expects next."""

    OPEN = "requests are served"
    SASL_REQUIRED = "the client has not authenticated"
    HANDSHAKING = "a SaslHandshake has no response yet"
    REHANDSHAKING = "a SaslHandshake on an authenticated connection has no response yet"
    RAW_TOKENS = "a SASL token without a Kafka header is due"
    RAW_TOKEN_PENDING = "a SASL token has no response yet"
    AUTHENTICATING = "a SaslAuthenticate request is due"
    AUTHENTICATE_PENDING = "a SaslAuthenticate request has no response yet"
    OUT_OF_TURN = "a request during SASL has not been refused yet"
    CLOSED = "the connection is closed"


class ServerInput(_Name):
    RECEIVE_API_VERSIONS = "send ApiVersions"
    RECEIVE_HANDSHAKE = "send SaslHandshake"
    RECEIVE_AUTHENTICATE = "send SaslAuthenticate"
    RECEIVE_REQUEST = "send a request"
    RECEIVE_TOKEN = "send a raw SASL token"
    ACCEPT_V0 = "accept SaslHandshake v0"
    ACCEPT_V1 = "accept SaslHandshake"
    REFUSE = "refuse a SaslHandshake"
    ANSWER_AUTHENTICATE = "answer SaslAuthenticate"
    SEND_TOKEN = "send a raw SASL token"
    COMPLETE_SASL = "complete the SASL exchange"
    CLOSE = "close"


StateT = TypeVar("StateT", bound=Enum)
InputT = TypeVar("InputT", bound=Enum)

_C, _CI = ClientState, ClientInput
_S, _SI = ServerState, ServerInput

ClientTable: TypeAlias = Mapping[ClientState, Mapping[ClientInput, ClientState]]
ServerTable: TypeAlias = Mapping[ServerState, Mapping[ServerInput, ServerState]]

CLIENT_TRANSITIONS: Final[ClientTable] = MappingProxyType(
    {
        _C.OPEN: {
            _CI.NEGOTIATE: _C.NEGOTIATING,
            _CI.SEND_REQUEST: _C.OPEN,
            _CI.SEND_HANDSHAKE_V0: _C.HANDSHAKE_V0,
            _CI.SEND_HANDSHAKE_V1: _C.HANDSHAKE_V1,
            _CI.CLOSE: _C.CLOSED,
        },
        _C.NEGOTIATING: {_CI.NEGOTIATION_ENDED: _C.OPEN, _CI.CLOSE: _C.CLOSED},
        _C.HANDSHAKE_V0: {
            _CI.HANDSHAKE_ACCEPTED: _C.RAW_TOKENS,
            _CI.HANDSHAKE_REFUSED: _C.OPEN,
            _CI.CLOSE: _C.CLOSED,
        },
        _C.HANDSHAKE_V1: {
            _CI.HANDSHAKE_ACCEPTED: _C.AUTHENTICATING,
            _CI.HANDSHAKE_REFUSED: _C.OPEN,
            _CI.CLOSE: _C.CLOSED,
        },
        _C.RAW_TOKENS: {
            _CI.SEND_TOKEN: _C.RAW_TOKENS,
            _CI.COMPLETE_SASL: _C.OPEN,
            _CI.CLOSE: _C.CLOSED,
        },
        _C.AUTHENTICATING: {
            _CI.SEND_AUTHENTICATE: _C.AUTHENTICATING,
            _CI.COMPLETE_SASL: _C.OPEN,
            _CI.CLOSE: _C.CLOSED,
        },
        _C.CLOSED: {_CI.CLOSE: _C.CLOSED},
    }
)

SERVER_TRANSITIONS: Final[ServerTable] = MappingProxyType(
    {
        _S.OPEN: {
            _SI.RECEIVE_API_VERSIONS: _S.OPEN,
            # Re-authentication (KIP-368), or a client that takes this for a SASL listener.
            _SI.RECEIVE_HANDSHAKE: _S.REHANDSHAKING,
            _SI.RECEIVE_AUTHENTICATE: _S.OPEN,
            _SI.RECEIVE_REQUEST: _S.OPEN,
            _SI.CLOSE: _S.CLOSED,
        },
        _S.SASL_REQUIRED: {
            _SI.RECEIVE_API_VERSIONS: _S.SASL_REQUIRED,
            _SI.RECEIVE_HANDSHAKE: _S.HANDSHAKING,
            _SI.CLOSE: _S.CLOSED,
        },
        _S.HANDSHAKING: {
            _SI.ACCEPT_V0: _S.RAW_TOKENS,
            _SI.ACCEPT_V1: _S.AUTHENTICATING,
            _SI.REFUSE: _S.SASL_REQUIRED,
            _SI.CLOSE: _S.CLOSED,
        },
        _S.REHANDSHAKING: {
            _SI.ACCEPT_V0: _S.RAW_TOKENS,
            _SI.ACCEPT_V1: _S.AUTHENTICATING,
            _SI.REFUSE: _S.OPEN,
            _SI.CLOSE: _S.CLOSED,
        },
        _S.RAW_TOKENS: {
            _SI.RECEIVE_TOKEN: _S.RAW_TOKEN_PENDING,
            _SI.COMPLETE_SASL: _S.OPEN,
            _SI.CLOSE: _S.CLOSED,
        },
        _S.RAW_TOKEN_PENDING: {
            _SI.SEND_TOKEN: _S.RAW_TOKENS,
            # Some mechanisms end without a last token from the server.
            _SI.COMPLETE_SASL: _S.OPEN,
            _SI.CLOSE: _S.CLOSED,
        },
        _S.AUTHENTICATING: {
            _SI.RECEIVE_AUTHENTICATE: _S.AUTHENTICATE_PENDING,
            _SI.RECEIVE_API_VERSIONS: _S.OUT_OF_TURN,
            _SI.RECEIVE_HANDSHAKE: _S.OUT_OF_TURN,
            _SI.RECEIVE_REQUEST: _S.OUT_OF_TURN,
            _SI.COMPLETE_SASL: _S.OPEN,
            _SI.CLOSE: _S.CLOSED,
        },
        # Nothing is served in it, whatever the response.
        _S.OUT_OF_TURN: {_SI.CLOSE: _S.CLOSED},
        _S.AUTHENTICATE_PENDING: {_SI.ANSWER_AUTHENTICATE: _S.AUTHENTICATING, _SI.CLOSE: _S.CLOSED},
        _S.CLOSED: {_SI.CLOSE: _S.CLOSED},
    }
)

_THEIRS: Final[frozenset[Enum]] = frozenset(
    {
        _CI.NEGOTIATION_ENDED,
        _CI.HANDSHAKE_ACCEPTED,
        _CI.HANDSHAKE_REFUSED,
        _SI.RECEIVE_API_VERSIONS,
        _SI.RECEIVE_HANDSHAKE,
        _SI.RECEIVE_AUTHENTICATE,
        _SI.RECEIVE_REQUEST,
        _SI.RECEIVE_TOKEN,
    }
)


class StateMachine(Generic[StateT, InputT]):
    """A state and its table."""

    __slots__ = ("_table", "state")

    def __init__(self, table: Mapping[StateT, Mapping[InputT, StateT]], start: StateT) -> None:
        self._table = table
        self.state = start

    def after(self, happened: InputT) -> StateT:
        """Return the state that ``happened`` leads to. Raises the error of the side that broke the
        rule if there is none."""
        following = self._table[self.state].get(happened)
        if following is not None:
            return following
        if happened in _THEIRS:
            raise RemoteProtocolError(f"the peer may not {happened.value} while {self.state.value}")
        raise LocalProtocolError(f"cannot {happened.value} while {self.state.value}")

    def advance(self, happened: InputT) -> None:
        self.state = self.after(happened)
