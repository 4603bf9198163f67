"""Frames as the journal may keep them: without passwords.

The journal has ``[hidden]`` in the place of PLAIN's password, of OAUTHBEARER's token, of salted
passwords and of the HMAC of delegation tokens, which is their password, in frames that decode like
any other. SCRAM's tokens hold no password and are kept as they were.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kproto.connection import RequestReceived
from kproto.dialects import Dialect
from kproto.errors import KprotoError
from kproto.framing import encode_frame
from mockbroker.apis import Session
from mockbroker.simulation.security.sasl import redact

__all__ = ["REDACTED", "redacted_frame", "redacted_request", "redacted_response", "redacted_token"]

SASL_AUTHENTICATE: Final = 36
ALTER_USER_SCRAM_CREDENTIALS: Final = 51
_RENEW_OR_EXPIRE: Final = frozenset({39, 40})
REDACTED: Final = frozenset({SASL_AUTHENTICATE, ALTER_USER_SCRAM_CREDENTIALS, *_RENEW_OR_EXPIRE})
"""The API keys of requests that hold passwords."""
REDACTED_RESPONSES: Final = frozenset({38, 41})
"""The API keys of responses that hold passwords."""

_HIDDEN: Final = b"[hidden]"


def redacted_request(session: Session, request: RequestReceived) -> bytes:
    """The frame of a request."""
    header = request.header
    if header.request_api_key == ALTER_USER_SCRAM_CREDENTIALS:
        return _without_salted_passwords(request)
    if header.request_api_key in _RENEW_OR_EXPIRE:
        return _encoded(request, msgspec.structs.replace(request.body, hmac=_HIDDEN))
    if header.request_api_key != SASL_AUTHENTICATE:
        return request.frame
    token = request.body.auth_bytes
    hidden = redact(token, _mechanism(session))
    if hidden == token:
        return request.frame
    return _encoded(request, msgspec.structs.replace(request.body, auth_bytes=hidden))


def _without_salted_passwords(request: RequestReceived) -> bytes:
    """A salted password is enough to authenticate as the user."""
    upsertions = [
        msgspec.structs.replace(each, salted_password=_HIDDEN) for each in request.body.upsertions
    ]
    return _encoded(request, msgspec.structs.replace(request.body, upsertions=upsertions))


def redacted_response(codec: Dialect, api_key: int, version: int, frame: bytes) -> bytes:
    """The frame of a response; an empty one if it cannot be decoded and may hold a password."""
    if api_key not in REDACTED_RESPONSES or not frame:
        return frame
    try:
        header, body = codec.decode_response(frame, api_key=api_key, api_version=version)
    except KprotoError:
        return b""
    any_body: Any = body
    for each in (any_body, *getattr(any_body, "tokens", ())):
        if getattr(each, "hmac", b""):
            each.hmac = _HIDDEN
    return codec.encode_response(body, api_version=version, correlation_id=header.correlation_id)


def _encoded(request: RequestReceived, body: Any) -> bytes:
    return request.dialect.encode_request(
        body,
        api_version=request.header.request_api_version,
        correlation_id=request.header.correlation_id,
        client_id=request.header.client_id,
    )


def redacted_token(session: Session, token: bytes) -> bytes:
    """The frame of a raw token."""
    return encode_frame(redact(token, _mechanism(session)))


def redacted_frame(session: Session, api_key: int | None, frame: bytes) -> bytes:
    """A frame that could not be decoded. It is dropped if it may hold a token, because the
    place of a password in it is unknown: before the client has authenticated, any frame may."""
    pending = session.sasl is not None and session.sasl.user is None
    return b"" if pending or api_key in REDACTED else frame


def _mechanism(session: Session) -> str | None:
    return session.passed_mechanism if session.sasl is None else session.sasl.mechanism
