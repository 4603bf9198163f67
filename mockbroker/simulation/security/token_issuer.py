"""An OAuth token endpoint for tests: client credentials for a signed token, and the keys to check
it. No sockets: ``mockbroker.control.oauth_routes`` serves it.

Tokens are JSON Web Tokens with RS256, by PyJWT (extra ``oauth``). The key is drawn anew for each
cluster. Times are those of the cluster's clock.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from kproto.errors import MissingExtraError
from mockbroker.errors import ClusterError
from mockbroker.simulation.releases.release import NEWEST, Release
from mockbroker.simulation.releases.rows import apply_first, rows_of_release
from mockbroker.simulation.security.signed_token_rules import (
    GRANT_ROWS,
    SIGNED_ROWS,
    Grant,
    OAuthClient,
    SignedToken,
    SignedValidator,
)

__all__ = ["ISSUER", "TokenIssuer"]

ISSUER: Final = "mockbroker"
"""The claim ``iss`` of every token."""
_ALGORITHM: Final = "RS256"
_KEY_ID: Final = "mockbroker-1"
_KEY_BITS: Final = 2048

_log = logging.getLogger("mockbroker")


class TokenIssuer:
    """Gives tokens to ``clients``, texts of the form ``ID:SECRET[:SCOPE ...]``, and checks them by
    ``options``: ``expectedAudience=a b``, ``expectedIssuer``, ``clockSkewSeconds`` and
    ``tokenLifetimeSeconds``. Raises ClusterError for anything else, and MissingExtraError without
    PyJWT."""

    def __init__(
        self, clients: Iterable[str], options: str = "", release: Release = NEWEST
    ) -> None:
        _jwt()
        release.follow(self._use_release)
        found = [_client(text) for text in clients]
        self._clients = {each.client_id: each for each in found}
        self.validator = self._validator(options)

    def _use_release(self, release: Release) -> None:
        self._rows = rows_of_release(SIGNED_ROWS, release)

    def _validator(self, text: str) -> SignedValidator:
        found: dict[str, str] = {}
        for option in text.split(",") if text else ():
            name, equals, value = option.partition("=")
            if name not in _OPTIONS or not equals or not value.strip():
                raise ClusterError(
                    f"{option!r:.80} is not an option for signed tokens; use OPTION=VALUE with "
                    "one of " + ", ".join(_OPTIONS)
                )
            found[name] = value.strip()
        return SignedValidator(
            self._verified,
            tuple(found.get("expectedAudience", "").split()),
            found.get("expectedIssuer"),
            1000 * _seconds(found, "clockSkewSeconds", "30"),
            1000 * _seconds(found, "tokenLifetimeSeconds", "3600"),
        )

    # ---- the endpoint --------------------------------------------------------------------------

    def grant(
        self, form: Mapping[str, str], client_id: str, secret: str, now_ms: int
    ) -> tuple[int, dict[str, Any]]:
        """Answer a client's request of the token endpoint: status and document."""
        grant = Grant(form, self._clients.get(client_id), secret)
        apply_first(GRANT_ROWS, grant, grant)
        if grant.error is not None:
            return grant.status, {"error": grant.error}
        return 200, {
            "access_token": self.token(client_id, now_ms, grant.scopes, form.get("audience", "")),
            "token_type": "Bearer",
            "expires_in": self.validator.token_lifetime_ms // 1000,
            "scope": " ".join(grant.scopes),
        }

    def token(
        self, subject: str, now_ms: int, scopes: Iterable[str] = (), audience: str = ""
    ) -> str:
        """Sign a token. Without an audience it is for what the broker expects."""
        claims = {
            "iss": ISSUER,
            "sub": subject,
            "iat": now_ms // 1000,
            "exp": (now_ms + self.validator.token_lifetime_ms) // 1000,
            "scope": list(scopes),
        }
        chosen = audience.split() or list(self.validator.expected_audience)
        if chosen:
            claims["aud"] = chosen
        signed: str = _jwt().encode(claims, self._key, _ALGORITHM, headers={"kid": _KEY_ID})
        return signed

    def keys(self) -> dict[str, Any]:
        """The JSON Web Key Set."""
        from jwt.algorithms import RSAAlgorithm

        public = json.loads(RSAAlgorithm.to_jwk(self._key.public_key()))
        return {"keys": [{**public, "kid": _KEY_ID, "use": "sig", "alg": _ALGORITHM}]}

    @cached_property
    def _key(self) -> Any:
        from cryptography.hazmat.primitives.asymmetric import rsa

        return rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)

    # ---- the broker ----------------------------------------------------------------------------

    def checked(self, text: str, now_ms: int) -> SignedToken:
        """Check a token as a broker does; ``reason`` is None if it is accepted."""
        token = SignedToken(text, self._verified(text), now_ms, self.validator)
        apply_first(self._rows, token, token)
        if token.reason is not None:
            _log.warning("an OAUTHBEARER token is refused: %s", token.reason)
        return token

    def _verified(self, text: str) -> Mapping[str, Any] | None:
        jwt = _jwt()
        times = {"verify_exp": False, "verify_iat": False, "verify_nbf": False}
        options = {**times, "verify_aud": False, "verify_iss": False}
        try:
            claims: Mapping[str, Any] = jwt.decode(
                text, self._key.public_key(), algorithms=[_ALGORITHM], options=options
            )
        except jwt.InvalidTokenError:
            return None
        return claims


def _jwt() -> Any:
    try:
        import jwt
    except ImportError:
        raise MissingExtraError("signed tokens need PyJWT", extra="oauth") from None
    return jwt


def _client(text: str) -> OAuthClient:
    match = re.fullmatch(r"(?P<id>[^:\s]+):(?P<secret>[^:]+)(?::(?P<scopes>.+))?", text)
    if match is None:
        raise ClusterError("an OAuth client is ID:SECRET or ID:SECRET:SCOPE ...")
    return OAuthClient(match["id"], match["secret"], tuple((match["scopes"] or "").split()))


def _seconds(found: Mapping[str, str], name: str, default: str) -> int:
    text = found.get(name, default)
    if re.fullmatch(r"[0-9]{1,9}", text) is None:
        raise ClusterError(f"{name}={text!r:.80} must be a number of seconds")
    return int(text)


_OPTIONS: Final = ("expectedAudience", "expectedIssuer", "clockSkewSeconds", "tokenLifetimeSeconds")
