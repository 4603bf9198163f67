"""OAUTHBEARER (RFC 7628, KIP-255): the client's messages, and the token in the first of them.

By default brokers accept tokens without a signature, for which ``oauthbearer_tables`` has the
rules. Such a token proves nothing about the client, because anyone can write one. With a
``TokenIssuer`` they accept its signed tokens instead (KIP-768).
"""

from __future__ import annotations

import json
import logging
import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any, Final

from mockbroker.errors import ClusterError, UnreadableError
from mockbroker.simulation.releases.rows import apply_first
from mockbroker.simulation.security.oauthbearer_rules import (
    TOKEN_ROWS,
    BearerToken,
    BearerValidator,
)
from mockbroker.simulation.security.sasl_errors import SaslRefusedError, invalid_credentials
from mockbroker.simulation.security.token_issuer import TokenIssuer

__all__ = ["OAUTHBEARER", "BearerExchange", "bearer_validator", "hide_bearer"]

OAUTHBEARER: Final = "OAUTHBEARER"

_log = logging.getLogger("mockbroker")

_INVALID: Final = '{"status":"invalid_token"}'
_AFTER_ERROR: Final = b"\x01"
"""What the client sends once it has received an error."""
# Texts, compiled at their first use: the first takes as long as reading a release's rows.
_FIRST: Final = (
    r"n,(?:a=(?P<authzid>(?:[^\0,=\x80-\U0010ffff]|=2C|=3D)+))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_CREDENTIALS: Final = r"(?a:(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*))"
_SECRET: Final = rb"(\x01auth=(?:\w+ +)?)[^\x01]*"
_URL_SAFE: Final = r"[A-Za-z0-9_-]*"


class BearerExchange:
    """The messages of one connection. ``now_ms`` is set before each of them, in milliseconds since
    the epoch. ``expires_ms`` is when the accepted token expires."""

    def __init__(self, validator: BearerValidator | TokenIssuer) -> None:
        self.now_ms = 0
        self.expires_ms: int | None = None
        self._validator = validator
        self._error: str | None = None

    def step(self, message: bytes) -> tuple[bytes, str | None]:
        """Answer a message: with the user, or with an error as JSON. Raises SaslRefusedError, and
        UnreadableError where Kafka's code fails."""
        if message == _AFTER_ERROR and self._error is not None:
            raise SaslRefusedError(self._error)
        self._error = None
        token_text, authorization_id = _parse_first(message)
        if isinstance(self._validator, TokenIssuer):
            user, expires_ms, self._error = self._signed(token_text, self._validator)
        else:
            user, expires_ms, self._error = self._unsecured(token_text, self._validator)
        if self._error is not None:
            return self._error.encode(), None
        if authorization_id not in ("", user):
            raise SaslRefusedError(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) "
                f"that is different from the token's principal name ({user})"
            )
        self.expires_ms = expires_ms
        return b"", user

    def _signed(self, text: str, issuer: TokenIssuer) -> tuple[str, int, str | None]:
        """The user, the time of expiry, and the error document."""
        token = issuer.checked(text, self.now_ms)
        if token.reason is not None or token.claims is None:
            return "", 0, _INVALID
        return token.claims["sub"], token.expires_ms, None

    def _unsecured(self, text: str, validator: BearerValidator) -> tuple[str, int, str | None]:
        token = _decode(text, self.now_ms, validator)
        apply_first(TOKEN_ROWS, token, token)
        if token.reason is None:
            return token.principal, token.expires_ms, None
        _log.warning("an OAUTHBEARER token is refused: %s", token.reason)
        if token.breaks:
            raise UnreadableError(f"the token is refused: {token.reason}")
        return "", 0, _error_document(token)


def _parse_first(message: bytes) -> tuple[str, str]:
    """Return the token and the authorization id, or raise as ``step``. Extensions need only be
    well-formed: Kafka's validator accepts all of them."""
    match = re.fullmatch(_FIRST, message.decode(errors="replace"))
    if match is None:
        raise invalid_credentials(OAUTHBEARER)
    pairs = dict(pair.split("=", 1) for pair in match["pairs"].split("\x01") if pair)
    credentials = re.fullmatch(_CREDENTIALS, pairs.get("auth", ""))
    if credentials is None:
        raise invalid_credentials(OAUTHBEARER)
    if credentials["scheme"].lower() != "bearer":
        # Kafka fails when it puts the scheme into the text of its error.
        raise UnreadableError("the scheme of authentication is not Bearer")
    return credentials["token"], match["authzid"] or ""


def _decode(text: str, now_ms: int, validator: BearerValidator) -> BearerToken:
    parts = tuple(text.split("."))
    header, claims = (_document(part) for part in (*parts, "", "")[:2])
    return BearerToken(text, parts, header, claims, now_ms, validator)


def _document(part: str) -> Mapping[str, Any] | None:
    """Decode the header or the claims; None if that is not possible. As Kafka does it, anything
    but an object has no members, and values other than numbers and lists become text."""
    if re.fullmatch(_URL_SAFE, part) is None:
        return None
    try:
        content = urlsafe_b64decode(part + "=" * (-len(part) % 4))
        text = content.decode(json.detect_encoding(content)).lstrip()
        decoded = json.JSONDecoder(parse_constant=_no_constant).raw_decode(text)[0] if text else {}
    except (ValueError, RecursionError):
        return None
    members = decoded.items() if isinstance(decoded, dict) else ()
    return {name: _converted(value) for name, value in members}


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _converted(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_text(each) for each in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return _as_text(value)


def _as_text(value: Any) -> str:
    """As Java would write it: half of a surrogate pair becomes a question mark."""
    if isinstance(value, dict | list):
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode(errors="replace").decode()


def _error_document(token: BearerToken) -> str:
    """The error in the form, and with the blanks, in which Kafka sends it."""
    if token.status != "insufficient_scope":
        return f'{{"status":"{token.status}"}}'
    scope = ", ".join(token.validator.required_scope)
    return f'{{"status":"{token.status}", "scope":"[{scope}]"}}'


def hide_bearer(message: bytes, hidden: bytes) -> bytes:
    """Return a client's message without its token: ``hidden`` takes the place of every ``auth``, or
    of a whole message of another form, in which a token can be anywhere."""
    if message == _AFTER_ERROR or not message:
        return message
    if re.fullmatch(_FIRST, message.decode(errors="replace")) is None:
        return hidden
    found, times = re.subn(_SECRET, lambda match: match[1] + hidden, message)
    return found if times else hidden


# ---- options -------------------------------------------------------------------------------------

_FORM: Final = "OAUTHBEARER[:OPTION=VALUE,...]"


def bearer_validator(text: str) -> BearerValidator:
    """Read ``principalClaimName=sub,scopeClaimName=scope,requiredScope=a b`` and
    ``allowableClockSkewMs=0``, each of which is optional. Raises ClusterError."""
    found: dict[str, str] = {}
    for option in text.split(",") if text else ():
        name, equals, value = option.partition("=")
        if name not in _OPTIONS or not equals or not value.strip():
            raise ClusterError(
                f"{option!r:.80} is not an option of {_FORM}; use OPTION=VALUE with one of "
                + ", ".join(_OPTIONS)
            )
        found[name] = value.strip()
    skew = found.get("allowableClockSkewMs", "0")
    if re.fullmatch(r"[0-9]{1,9}", skew) is None:
        raise ClusterError(f"allowableClockSkewMs={skew!r:.80} must be a number of milliseconds")
    return BearerValidator(
        found.get("principalClaimName", "sub"),
        found.get("scopeClaimName", "scope"),
        tuple(found.get("requiredScope", "").split()),
        int(skew),
    )


_OPTIONS: Final = ("principalClaimName", "scopeClaimName", "requiredScope", "allowableClockSkewMs")
