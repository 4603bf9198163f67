"""The broker's side of a connection: requests in, responses out in order. No I/O.

This module distinguishes requests we serve from others and from invalid frames. It knows the order
of responses, which requests have none, and the two ways of sending SASL tokens. ``states`` defines
what may happen when. The caller decides how to respond and whether to close: a mock may deviate
from brokers deliberately. Each event's docstring says what brokers do.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Any, Final

from kproto.codec.message import Buffer, Message
from kproto.connection.events import (
    MalformedRequest,
    RequestReceived,
    SaslTokenReceived,
    ServerEvent,
    UnexpectedRequest,
    UnsupportedRequest,
)
from kproto.connection.states import SERVER_TRANSITIONS, ServerInput, ServerState, StateMachine
from kproto.dialects import AutoDialect, Dialect, dialect, has_response
from kproto.errors import (
    DecodeError,
    LocalProtocolError,
    RemoteProtocolError,
    UnsupportedVersionError,
)
from kproto.framing import DEFAULT_MAX_SIZE, SIZE_LENGTH, FrameSplitter, encode_frame
from kproto.schema.versions import Versions

__all__ = ["Answerable", "ServerConnection"]

Answerable = RequestReceived | UnsupportedRequest | UnexpectedRequest | MalformedRequest
"""The events that allow a response."""

_INPUTS: Final[dict[int, ServerInput]] = {
    17: ServerInput.RECEIVE_HANDSHAKE,
    18: ServerInput.RECEIVE_API_VERSIONS,
    36: ServerInput.RECEIVE_AUTHENTICATE,
}
_SASL_HANDSHAKE: Final = 17

_PREFIX: Final = Struct(">hhi")
_CLIENT_ID_AT: Final = SIZE_LENGTH + _PREFIX.size
_read_int16: Final = Struct(">h").unpack_from

# During these, the meaning of the next frame depends on our response, so none is read.
_PAUSED: Final = frozenset(
    {
        ServerState.HANDSHAKING,
        ServerState.REHANDSHAKING,
        ServerState.RAW_TOKEN_PENDING,
        ServerState.AUTHENTICATE_PENDING,
        ServerState.OUT_OF_TURN,
        ServerState.CLOSED,
    }
)


class ServerConnection:
    """Feed it bytes from the socket, fetch its events, respond to them, and write what it returns.

    ``served`` is the version range of each api key (all that ``codec`` has if None; keys and
    versions that the codec lacks are unsupported in any case). ``sasl_required`` refuses everything
    except ApiVersions and SASL until ``complete_sasl``. ``max_size`` bounds a frame, and
    ``max_size_before_sasl`` a frame before that (Kafka's ``sasl.server.max.receive.size``).

    Every event with ``expects_response`` needs a ``send_response``, ``send_response_parts``,
    ``send_bytes`` or ``drop_response``, or the connection must be closed, since later responses
    wait for it. After a RemoteProtocolError the connection is closed; each ``next_event`` raises it
    again.
    """

    def __init__(
        self,
        *,
        codec: Dialect | None = None,
        served: Mapping[int, Versions] | None = None,
        sasl_required: bool = False,
        max_size: int = DEFAULT_MAX_SIZE,
        max_size_before_sasl: int = DEFAULT_MAX_SIZE,
    ) -> None:
        self.dialect = codec if codec is not None else dialect("kafka")
        self._served = served
        start = ServerState.SASL_REQUIRED if sasl_required else ServerState.OPEN
        self._machine = StateMachine(SERVER_TRANSITIONS, start)
        self._max_size = max_size
        first = min(max_size, max_size_before_sasl) if sasl_required else max_size
        self._splitter = FrameSplitter(first, keep_size=True)
        self._received = 0
        self._sent = 0
        self._waiting: dict[int, bytes] = {}
        self._eof = False
        self._failure: str | None = None

    # ---- what may be asked at any time -------------------------------------------------------

    @property
    def state(self) -> ServerState:
        """What this connection expects next."""
        return self._machine.state

    @property
    def paused(self) -> bool:
        """Whether events stop until a response is given, which is a good time to stop reading."""
        return self._machine.state in _PAUSED

    @property
    def buffered(self) -> int:
        """The number of bytes received that no event covers yet."""
        return self._splitter.buffered

    @property
    def idle(self) -> bool:
        """Whether a frame that begins now would be the next event and its response the next to be
        sent: no bytes are buffered, no response is due, and no SASL exchange is in progress. A
        caller that knows the response to a frame by its bytes may then send it directly."""
        return (
            self._machine.state is ServerState.OPEN
            and not self._splitter.buffered
            and self._received == self._sent
            and not self._eof
        )

    @property
    def unanswered(self) -> int:
        """The number of events that still need a response."""
        return self._received - self._sent - len(self._waiting)

    # ---- receiving ----------------------------------------------------------------------------

    def receive_data(self, data: bytes) -> None:
        """Add bytes from the socket; never raises. Call ``next_event`` afterwards."""
        self._splitter.feed(data)

    def receive_eof(self) -> None:
        """Signal that the peer will send no more. ``next_event`` raises if it stopped inside a
        frame."""
        self._eof = True

    def next_event(self) -> ServerEvent | None:
        """Return the next event, or None until more bytes arrive or a SASL step has its response.

        Raises RemoteProtocolError if the peer broke a rule (a bad size, a request before
        authentication, an end inside a frame), after every event before it.
        """
        if self._failure is not None:
            raise RemoteProtocolError(self._failure)
        if self._machine.state in _PAUSED:
            return None
        try:
            frame = self._splitter.next_frame()
            if frame is None:
                if self._eof:
                    self._check_whole_frames()
                return None
            if self._machine.state is ServerState.RAW_TOKENS:
                self._machine.advance(ServerInput.RECEIVE_TOKEN)
                return SaslTokenReceived(frame[SIZE_LENGTH:])
            return self._read_request(frame)
        except RemoteProtocolError as error:
            self._failure = str(error)
            self._machine.advance(ServerInput.CLOSE)
            raise

    def _check_whole_frames(self) -> None:
        if self._splitter.buffered:
            raise RemoteProtocolError(
                f"the peer closed inside a frame, {self._splitter.buffered} bytes into it"
            )

    def _read_request(self, frame: bytes) -> ServerEvent:
        if len(frame) < _CLIENT_ID_AT:
            problem = f"a request of {len(frame) - SIZE_LENGTH} bytes has no complete header"
            error = DecodeError(problem, offset=len(frame), path="header")
            return MalformedRequest(self._number(), None, None, None, error, frame)
        api_key, api_version, correlation_id = _PREFIX.unpack_from(frame, SIZE_LENGTH)
        following = self._machine.after(_INPUTS.get(api_key, ServerInput.RECEIVE_REQUEST))
        if following is ServerState.OUT_OF_TURN:
            self._machine.state = following
            return UnexpectedRequest(
                self._number(), api_key, api_version, correlation_id, _client_id(frame), frame
            )
        if self._served is not None:
            served = self._served.get(api_key, Versions.NONE)
            if not served.lowest <= api_version <= served.highest:
                return self._unsupported(api_key, api_version, correlation_id, frame)
        codec = self.dialect
        try:
            if isinstance(codec, AutoDialect):
                codec, header, body = codec.identify_request(frame)
            else:
                header, body = codec.decode_request(frame)
        except UnsupportedVersionError:
            return self._unsupported(api_key, api_version, correlation_id, frame)
        except DecodeError as error:
            return MalformedRequest(
                self._number(), api_key, api_version, correlation_id, error, frame
            )
        self._machine.state = following
        api = codec.apis[api_key]
        if has_response(api_key, body):
            return RequestReceived(self._number(), codec, api, header, body, frame)
        return RequestReceived(-1, codec, api, header, body, frame, expects_response=False)

    def _unsupported(
        self, api_key: int, api_version: int, correlation_id: int, frame: bytes
    ) -> UnsupportedRequest:
        return UnsupportedRequest(
            self._number(), api_key, api_version, correlation_id, _client_id(frame), frame
        )

    def _number(self) -> int:
        self._received += 1
        return self._received

    # ---- sending ------------------------------------------------------------------------------

    def send_response(
        self, request: Answerable, body: Any, *, api_version: int | None = None
    ) -> bytes:
        """Return what may be written now: the response to ``request`` and those that waited for it,
        or nothing while an earlier request has no response.

        ``api_version`` None is the request's own; pass 0 for an ApiVersions refusal. A body without
        an error accepts a SaslHandshake. If this raises, nothing changes: UnsupportedVersionError
        or EncodeError from the codec, LocalProtocolError for a second response or for a request
        that expects none.
        """
        self._check_answer(request)
        if isinstance(request, RequestReceived):
            codec, header = request.dialect, request.header
            version, correlation_id = header.request_api_version, header.correlation_id
        else:
            codec = self.dialect
            version, correlation_id = _version_and_correlation_id(request)
        data = codec.encode_response(
            body,
            api_version=version if api_version is None else api_version,
            correlation_id=correlation_id,
        )
        if isinstance(request, RequestReceived) and request.api.api_key in _INPUTS:
            self._answer_sasl(request, accepted=getattr(body, "error_code", None) == 0)
        return self._in_order(request.number, data)

    def send_response_parts(
        self, request: RequestReceived, body: Message, *, api_version: int | None = None
    ) -> list[Buffer]:
        """As ``send_response``, with buffers to write one after another. Large values of bytes,
        such as records, are not copied (``Message.encode_parts``)."""
        self._check_answer(request)
        header = request.header
        parts = request.dialect.encode_response_parts(
            body,
            api_version=header.request_api_version if api_version is None else api_version,
            correlation_id=header.correlation_id,
        )
        if request.api.api_key in _INPUTS:
            self._answer_sasl(request, accepted=getattr(body, "error_code", None) == 0)
        if self._waiting or request.number != self._sent + 1:
            return [self._in_order(request.number, b"".join(parts))]
        self._sent = request.number
        return parts

    def send_bytes(self, request: Answerable, data: bytes) -> bytes:
        """As ``send_response``, with arbitrary bytes as response: a frame encoded earlier, or a
        damaged one. They do not accept a SaslHandshake."""
        self._check_answer(request)
        if isinstance(request, RequestReceived):
            self._answer_sasl(request, accepted=False)
        return self._in_order(request.number, data)

    def drop_response(self, request: Answerable) -> bytes:
        """Never respond to ``request``, which no broker does. Returns the responses that waited for
        it."""
        return self.send_bytes(request, b"")

    def send_sasl_token(self, token: bytes) -> bytes:
        """Return the frame that responds to a raw token."""
        self._machine.advance(ServerInput.SEND_TOKEN)
        return encode_frame(token)

    def complete_sasl(self) -> None:
        """Finish authentication, after the response to the last token: requests are served."""
        self._machine.advance(ServerInput.COMPLETE_SASL)
        self._splitter.max_size = self._max_size

    def close(self) -> None:
        """Close: nothing more is reported or sent."""
        self._machine.advance(ServerInput.CLOSE)
        self._waiting.clear()

    def _check_answer(self, request: Answerable) -> None:
        if self._machine.state is ServerState.CLOSED:
            raise LocalProtocolError(f"cannot send a response while {self.state.value}")
        if not request.expects_response:
            raise LocalProtocolError("Produce with acks=0 has no response")
        if not self._sent < request.number <= self._received or request.number in self._waiting:
            raise LocalProtocolError(f"request number {request.number} already has a response")

    def _answer_sasl(self, request: RequestReceived, *, accepted: bool) -> None:
        if request.api.api_key == _SASL_HANDSHAKE:
            version = request.header.request_api_version
            accept = ServerInput.ACCEPT_V1 if version else ServerInput.ACCEPT_V0
            self._machine.advance(accept if accepted else ServerInput.REFUSE)
        elif self._machine.state is ServerState.AUTHENTICATE_PENDING and (
            _INPUTS.get(request.api.api_key) is ServerInput.RECEIVE_AUTHENTICATE
        ):
            self._machine.advance(ServerInput.ANSWER_AUTHENTICATE)

    def _in_order(self, number: int, data: bytes) -> bytes:
        waiting = self._waiting
        if number != self._sent + 1:
            waiting[number] = data
            return b""
        self._sent = number
        if not waiting:
            return data
        parts = [data]
        while (following := waiting.pop(self._sent + 1, None)) is not None:
            self._sent += 1
            parts.append(following)
        return b"".join(parts)


def _version_and_correlation_id(
    request: UnsupportedRequest | UnexpectedRequest | MalformedRequest,
) -> tuple[int, int]:
    if request.api_version is None or request.correlation_id is None:
        raise LocalProtocolError(
            "a frame without a complete header can only be answered with bytes"
        )
    return request.api_version, request.correlation_id


def _client_id(frame: bytes) -> str | None:
    """Return the client id of a request whose header version is unknown: v1 and v2 have it in the
    same place. None if the bytes there are not plausible."""
    if len(frame) < _CLIENT_ID_AT + 2:
        return None
    (length,) = _read_int16(frame, _CLIENT_ID_AT)
    at = _CLIENT_ID_AT + 2
    if length < 0 or at + length > len(frame):
        return None
    return frame[at : at + length].decode(errors="replace")
