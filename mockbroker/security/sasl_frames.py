"""SASL as it passes the dispatcher: who may ask what before authenticating, and what of it the
journal may keep. No sockets, no mechanisms.

A password is never written down: the journal has PLAIN's tokens with ``[hidden]`` in its place, in
frames that decode like any other. SCRAM's tokens hold none, and are kept as they were.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kproto.codec.message import Message
from kproto.connection import RequestReceived, ServerConnection, ServerState, UnexpectedRequest
from kproto.dialects import Dialect
from kproto.error_codes import ErrorCode
from kproto.framing import encode_frame
from mockbroker.apis import Session
from mockbroker.apis.api_versions import API_VERSIONS
from mockbroker.apis.refusals import error_response
from mockbroker.security.sasl import redacted

__all__ = [
    "asks_too_often",
    "begin_session",
    "finish",
    "illegal_state",
    "journalled_frame",
    "journalled_token",
    "outlived",
    "unread_frame",
]

_SASL_HANDSHAKE: Final = 17
_SASL_AUTHENTICATE: Final = 36


def journalled_frame(session: Session, request: RequestReceived) -> bytes:
    """The request as the journal may keep it."""
    header = request.header
    if header.request_api_key != _SASL_AUTHENTICATE:
        return request.frame
    token = request.body.auth_bytes
    hidden = redacted(token, _mechanism(session))
    if hidden == token:
        return request.frame
    return request.dialect.encode_request(
        msgspec.structs.replace(request.body, auth_bytes=hidden),
        api_version=header.request_api_version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
    )


def journalled_token(session: Session, token: bytes) -> bytes:
    """A raw token's frame as the journal may keep it."""
    return encode_frame(redacted(token, _mechanism(session)))


def unread_frame(session: Session, api_key: int | None, frame: bytes) -> bytes:
    """One that nobody could make sense of. While somebody has yet to authenticate it may be a
    token, and there is no telling where in it a password stands."""
    pending = session.sasl is not None and session.sasl.user is None
    return b"" if pending or api_key == _SASL_AUTHENTICATE else frame


def _mechanism(session: Session) -> str | None:
    return None if session.sasl is None else session.sasl.mechanism


def asks_too_often(session: Session, request: RequestReceived) -> bool:
    """Before authentication brokers tell their versions once, and close on whom asks again."""
    sasl = session.sasl
    if sasl is None or sasl.user is not None or request.header.request_api_key != API_VERSIONS:
        return False
    again, sasl.versions_asked = sasl.versions_asked, True
    return again


def finish(connection: ServerConnection, session: Session) -> bool:
    """Open the connection once its user has authenticated; whether that was just now."""
    sasl = session.sasl
    if sasl is None or sasl.user is None or connection.state not in _AUTHENTICATING:
        return False
    connection.complete_sasl()
    return True


def begin_session(session: Session, lifetime_ms: int, now_ms: int) -> None:
    """Somebody has authenticated, for so long; 0 is for ever."""
    if session.sasl is not None:
        session.sasl.ends_ms = now_ms + lifetime_ms if lifetime_ms else None


def outlived(session: Session, request: RequestReceived, now_ms: int) -> bool:
    """Whether it comes when the session is over, and is not what begins another (KIP-368)."""
    if session.sasl is None or request.header.request_api_key == _SASL_HANDSHAKE:
        return False
    return session.sasl.outlived(now_ms)


def illegal_state(codec: Dialect, event: UnexpectedRequest) -> Message | None:
    """What a request that came amid SASL hears; None where its version has no place for it."""
    api = codec.apis.get(event.api_key)
    if api is None or event.api_version not in api.valid_versions:
        return None
    return error_response(api.response, event.api_version, ErrorCode.ILLEGAL_SASL_STATE)


_AUTHENTICATING: Final = (ServerState.AUTHENTICATING, ServerState.RAW_TOKENS)
