"""Requests as the journal may keep them: without passwords.

The journal has ``[hidden]`` in the place of PLAIN's password and of OAUTHBEARER's token, in frames
that decode like any other. SCRAM's tokens hold no password and are kept as they were.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kproto.connection import RequestReceived
from kproto.framing import encode_frame
from mockbroker.apis import Session
from mockbroker.security.sasl import redact

__all__ = ["REDACTED", "redacted_frame", "redacted_request", "redacted_token"]

SASL_AUTHENTICATE: Final = 36
ALTER_USER_SCRAM_CREDENTIALS: Final = 51
REDACTED: Final = frozenset({SASL_AUTHENTICATE, ALTER_USER_SCRAM_CREDENTIALS})
"""The API keys of requests that hold passwords."""

_HIDDEN: Final = b"[hidden]"


def redacted_request(session: Session, request: RequestReceived) -> bytes:
    """The frame of a request."""
    header = request.header
    if header.request_api_key == ALTER_USER_SCRAM_CREDENTIALS:
        return _without_salted_passwords(request)
    if header.request_api_key != SASL_AUTHENTICATE:
        return request.frame
    token = request.body.auth_bytes
    hidden = redact(token, _mechanism(session))
    if hidden == token:
        return request.frame
    return request.dialect.encode_request(
        msgspec.structs.replace(request.body, auth_bytes=hidden),
        api_version=header.request_api_version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
    )


def _without_salted_passwords(request: RequestReceived) -> bytes:
    """Whoever has a salted password can authenticate as the user."""
    upsertions = [
        msgspec.structs.replace(each, salted_password=_HIDDEN) for each in request.body.upsertions
    ]
    return request.dialect.encode_request(
        msgspec.structs.replace(request.body, upsertions=upsertions),
        api_version=request.header.request_api_version,
        correlation_id=request.header.correlation_id,
        client_id=request.header.client_id,
    )


def redacted_token(session: Session, token: bytes) -> bytes:
    """The frame of a raw token."""
    return encode_frame(redact(token, _mechanism(session)))


def redacted_frame(session: Session, api_key: int | None, frame: bytes) -> bytes:
    """A frame that could not be decoded. It is dropped if it may hold a token, because nobody can
    tell where in it a password stands: before the client has authenticated, any frame may."""
    pending = session.sasl is not None and session.sasl.user is None
    return b"" if pending or api_key in REDACTED else frame


def _mechanism(session: Session) -> str | None:
    return session.passed_mechanism if session.sasl is None else session.sasl.mechanism
