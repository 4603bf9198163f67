"""The client's side of a connection: requests out, responses in. No I/O.

This module knows correlation ids, the order of responses, which requests have none, negotiation,
and the two ways of sending SASL tokens. ``states`` defines what may happen when, and
``negotiation`` which version to use. The caller's mechanism makes the tokens.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from struct import Struct
from types import MappingProxyType
from typing import Any, Final

from kproto.connection import negotiation
from kproto.connection.events import (
    ClientEvent,
    MalformedResponse,
    Negotiated,
    NegotiationFailed,
    NegotiationRetry,
    ResponseReceived,
    SaslTokenReceived,
    SentRequest,
)
from kproto.connection.states import CLIENT_TRANSITIONS, ClientInput, ClientState, StateMachine
from kproto.dialects import Api, AutoDialect, Dialect, dialect, has_response
from kproto.error_codes import ErrorCode
from kproto.errors import DecodeError, LocalProtocolError, RemoteProtocolError, UnknownNameError
from kproto.framing import DEFAULT_MAX_SIZE, SIZE_LENGTH, FrameSplitter, encode_frame
from kproto.schema.versions import Versions

__all__ = ["ClientConnection"]

_SASL_HANDSHAKE: Final = 17
_SASL_AUTHENTICATE: Final = 36
_MAX_CORRELATION_ID: Final = 2**31 - 1
_INPUTS: Final = {_SASL_AUTHENTICATE: ClientInput.SEND_AUTHENTICATE}
_read_int32: Final = Struct(">i").unpack_from


class ClientConnection:
    """Feed it bytes from the socket, write what it returns, and fetch its events.

    ``codec`` is the dialect (``kafka`` if None). ``client_id`` is in every request header; the
    software name and version are in ApiVersions v3 and up (KIP-511).

    After a RemoteProtocolError the connection stays closed and each ``next_event`` raises that
    error again.
    """

    def __init__(
        self,
        *,
        codec: Dialect | None = None,
        client_id: str | None = "kproto",
        software_name: str = "kproto",
        software_version: str = "0",
        max_size: int = DEFAULT_MAX_SIZE,
        first_correlation_id: int = 0,
    ) -> None:
        self.dialect = codec if codec is not None else dialect("kafka")
        self.client_id = client_id
        self.software_name = software_name
        self.software_version = software_version
        self._machine = StateMachine(CLIENT_TRANSITIONS, ClientState.OPEN)
        self._splitter = FrameSplitter(max_size, keep_size=True)
        self._pending: deque[SentRequest] = deque()
        self._correlation_id = first_correlation_id
        self._versions: Mapping[int, Versions] | None = None
        self._attempt = 0
        self._eof = False
        self._failure: str | None = None

    # ---- what may be asked at any time -------------------------------------------------------

    @property
    def state(self) -> ClientState:
        """What this connection may do next."""
        return self._machine.state

    @property
    def pending(self) -> tuple[SentRequest, ...]:
        """The requests without a response so far, oldest first."""
        return tuple(self._pending)

    @property
    def buffered(self) -> int:
        """The number of bytes of an incomplete frame."""
        return self._splitter.buffered

    @property
    def peer_versions(self) -> Mapping[int, Versions] | None:
        """The versions that the peer serves, by api key; None before a negotiation."""
        return self._versions

    def version_for(self, api_key: int, allowed: Versions | None = None) -> int:
        """Return the highest version of ``api_key`` that both sides have, within ``allowed`` if
        given.

        Raises UnsupportedVersionError if there is none, and LocalProtocolError before a
        negotiation.
        """
        api = self._api(api_key)
        if self._versions is None:
            raise LocalProtocolError(
                f"no version of {api.name} is negotiated: negotiate first, or pass a version"
            )
        return negotiation.choose_version(api, self._versions, allowed)

    # ---- sending ------------------------------------------------------------------------------

    def send_request(
        self, body: Any, api_version: int | None = None, *, context: Any = None
    ) -> bytes:
        """Return the frame of a request. ``api_version`` None is the highest common one.

        ``context`` is returned with the response. If this raises, nothing changes:
        UnsupportedVersionError or EncodeError from the codec, LocalProtocolError if the
        connection's state does not allow it.
        """
        api = self._api_of(body)
        if api_version is None:
            api_version = self.version_for(api.api_key)
        return self._send(_input_for(api.api_key, api_version), api, api_version, body, context)

    def begin_negotiation(self, max_version: int | None = None) -> bytes:
        """Return an ApiVersions request at ``max_version``, or at the highest version we have.

        Until ``Negotiated`` or ``NegotiationFailed`` is reported, only the data of
        ``NegotiationRetry`` may be sent.
        """
        api = self._api(negotiation.API_VERSIONS_KEY)
        version = api.valid_versions.highest if max_version is None else max_version
        data = self._send(ClientInput.NEGOTIATE, api, version, self._api_versions_body(), None)
        self._attempt = 1
        return data

    def send_sasl_token(self, token: bytes) -> bytes:
        """Return the frame of a raw token. Only allowed after the broker accepted SaslHandshake
        v0."""
        self._machine.advance(ClientInput.SEND_TOKEN)
        return encode_frame(token)

    def complete_sasl(self) -> None:
        """Finish authentication: requests may be sent."""
        if self._pending:
            raise LocalProtocolError(
                f"cannot complete SASL while {self._pending[0]} has no response"
            )
        self._machine.advance(ClientInput.COMPLETE_SASL)

    def close(self) -> None:
        """Close: nothing more is sent or reported. ``pending`` keeps the requests without a
        response."""
        self._machine.advance(ClientInput.CLOSE)

    def _send(self, action: ClientInput, api: Api, version: int, body: Any, context: Any) -> bytes:
        following = self._machine.after(action)
        data = self._encode(api, version, body, context)
        self._machine.state = following
        return data

    def _encode(self, api: Api, version: int, body: Any, context: Any) -> bytes:
        sent = SentRequest(api, version, self._correlation_id, context)
        data = self.dialect.encode_request(
            body, api_version=version, correlation_id=sent.correlation_id, client_id=self.client_id
        )
        # From here on the request counts as sent.
        self._correlation_id = (
            0 if sent.correlation_id == _MAX_CORRELATION_ID else sent.correlation_id + 1
        )
        if has_response(api.api_key, body):
            self._pending.append(sent)
        return data

    def _api(self, api_key: int) -> Api:
        api = self.dialect.apis.get(api_key)
        if api is None:
            raise UnknownNameError(f"dialect {self.dialect.name} has no api key {api_key}")
        return api

    def _api_of(self, body: Any) -> Api:
        if getattr(body, "MESSAGE_TYPE", None) != "request" or body.API_KEY is None:
            raise LocalProtocolError(f"{type(body).__name__} is not a request")
        api = self._api(body.API_KEY)
        if not isinstance(body, api.request) and not isinstance(self.dialect, AutoDialect):
            raise LocalProtocolError(
                f"this {type(body).__name__} does not belong to the connection's dialect "
                f"{self.dialect.name}"
            )
        return api

    def _api_versions_body(self) -> Any:
        request: Any = self.dialect.message("ApiVersionsRequest")
        return request(
            client_software_name=self.software_name, client_software_version=self.software_version
        )

    # ---- receiving ----------------------------------------------------------------------------

    def receive_data(self, data: bytes) -> None:
        """Add bytes from the socket; never raises. Call ``next_event`` afterwards."""
        self._splitter.feed(data)

    def receive_eof(self) -> None:
        """Signal that the peer will send no more. ``next_event`` raises if it stopped inside a
        frame."""
        self._eof = True

    def next_event(self) -> ClientEvent | None:
        """Return the next event, or None until more bytes arrive.

        Raises RemoteProtocolError if the peer broke a rule, after every event before it.
        """
        if self._failure is not None:
            raise RemoteProtocolError(self._failure)
        if self._machine.state is ClientState.CLOSED:
            return None
        try:
            frame = self._splitter.next_frame()
            if frame is None:
                self._check_eof()
                return None
            if self._machine.state is ClientState.RAW_TOKENS:
                return SaslTokenReceived(frame[SIZE_LENGTH:])
            return self._read_response(frame)
        except RemoteProtocolError as error:
            self._failure = str(error)
            self._machine.advance(ClientInput.CLOSE)
            raise

    def _check_eof(self) -> None:
        if not self._eof:
            return
        if self._splitter.buffered:
            raise RemoteProtocolError(
                f"the peer closed inside a frame, {self._splitter.buffered} bytes into it"
            )
        self._machine.advance(ClientInput.CLOSE)

    def _read_response(self, frame: bytes) -> ClientEvent:
        sent = self._match(frame)
        if self._machine.state is ClientState.NEGOTIATING and not self._pending:
            return self._read_negotiation(sent, frame)
        try:
            header, body = self._decode(sent, frame)
        except DecodeError as error:
            self._end_handshake(sent, accepted=False)
            return MalformedResponse(sent, error, frame)
        self._end_handshake(sent, accepted=getattr(body, "error_code", None) == 0)
        return ResponseReceived(sent, header, body, frame)

    def _match(self, frame: bytes) -> SentRequest:
        """Return the request of this response, which must be the oldest, or the peer broke the
        order."""
        if len(frame) < SIZE_LENGTH + 4:
            raise RemoteProtocolError(
                f"a response of {len(frame) - SIZE_LENGTH} bytes has no correlation id"
            )
        (correlation_id,) = _read_int32(frame, SIZE_LENGTH)
        if not self._pending:
            raise RemoteProtocolError(
                f"a response with correlation id {correlation_id} matches no request"
            )
        sent = self._pending[0]
        if sent.correlation_id != correlation_id:
            raise RemoteProtocolError(
                f"a response with correlation id {correlation_id} arrived where the response to "
                f"{sent} was due"
            )
        return self._pending.popleft()

    def _decode(self, sent: SentRequest, frame: bytes) -> tuple[Any, Any]:
        if sent.api.api_key == negotiation.API_VERSIONS_KEY:
            return negotiation.read_reply(self.dialect, frame, sent.api_version)[:2]
        return self.dialect.decode_response(
            frame, api_key=sent.api.api_key, api_version=sent.api_version
        )

    def _end_handshake(self, sent: SentRequest, *, accepted: bool) -> None:
        """The handshake is always the last request sent, so its response is the last pending
        one."""
        if sent.api.api_key == _SASL_HANDSHAKE:
            self._machine.advance(
                ClientInput.HANDSHAKE_ACCEPTED if accepted else ClientInput.HANDSHAKE_REFUSED
            )

    def _read_negotiation(self, sent: SentRequest, frame: bytes) -> ClientEvent:
        try:
            body = negotiation.read_reply(self.dialect, frame, sent.api_version).body
        except DecodeError as error:
            if sent.api_version == 0 or not negotiation.is_refusal(frame):
                raise RemoteProtocolError(
                    f"the response to {sent} cannot be read: {error}"
                ) from error
            # A peer that refuses with a body of no version's layout (such as librdkafka's mock
            # cluster) has still sent all that version 0 needs.
            return self._retry(sent, 0)
        if body.error_code == ErrorCode.UNSUPPORTED_VERSION:
            rows = negotiation.advertised(body)
            version = negotiation.next_attempt(sent.api_version, self._attempt, rows)
            if version is not None:
                return self._retry(sent, version)
        self._machine.advance(ClientInput.NEGOTIATION_ENDED)
        if body.error_code != ErrorCode.NONE:
            return NegotiationFailed(body.error_code, body, sent.api_version)
        self._versions = MappingProxyType(negotiation.advertised(body))
        return Negotiated(self._versions, body, sent.api_version)

    def _retry(self, refused: SentRequest, version: int) -> NegotiationRetry:
        self._attempt += 1
        data = self._encode(refused.api, version, self._api_versions_body(), None)
        return NegotiationRetry(data, version)


def _input_for(api_key: int, version: int) -> ClientInput:
    if api_key == _SASL_HANDSHAKE:
        return ClientInput.SEND_HANDSHAKE_V1 if version else ClientInput.SEND_HANDSHAKE_V0
    return _INPUTS.get(api_key, ClientInput.SEND_REQUEST)
