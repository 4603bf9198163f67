"""Signed tokens: which of them brokers accept, and which grants the token endpoint refuses.

``SIGNED_ROWS`` has the checks of Kafka's ``BrokerJwtValidator`` (KIP-768) that a token of this
issuer, or a changed one, can fail: Kafka tells the client ``invalid_token`` for each.
``GRANT_ROWS`` has the errors of the client-credentials grant (RFC 6749, 4.4 and 5.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hmac import compare_digest
from typing import Any, Final

import msgspec

from mockbroker.simulation.releases.rows import Row, with_arguments

__all__ = ["GRANT_ROWS", "SIGNED_ROWS", "Grant", "OAuthClient", "SignedToken", "SignedValidator"]


class SignedValidator(msgspec.Struct, frozen=True):
    """Kafka's ``sasl.oauthbearer.*`` configs of the broker. ``verified`` returns the claims of a
    token if the issuer has signed it, else None."""

    verified: Callable[[str], Mapping[str, Any] | None]
    expected_audience: tuple[str, ...] = ()
    expected_issuer: str | None = None
    clock_skew_ms: int = 30_000
    token_lifetime_ms: int = 3_600_000


class SignedToken(msgspec.Struct):
    """A token while it is checked. ``reason`` is why it is refused."""

    text: str
    claims: Mapping[str, Any] | None
    now_ms: int
    validator: SignedValidator
    reason: str | None = None

    @property
    def sections(self) -> list[str]:
        return [each for each in self.text.split(".") if each]

    @property
    def expires_ms(self) -> int:
        return 0 if self.claims is None else int(self.claims["exp"]) * 1000

    @property
    def audience(self) -> frozenset[str]:
        return frozenset(() if self.claims is None else self.claims.get("aud", ()))

    @property
    def issuer(self) -> str:
        return "" if self.claims is None else str(self.claims["iss"])


@with_arguments
def refuse_signed_token(subject: SignedToken, reason: str) -> None:
    """Refuse the token; only the log has the reason."""
    subject.reason = reason


def _other_audience(token: SignedToken) -> bool:
    expected = token.validator.expected_audience
    return bool(expected) and token.audience.isdisjoint(expected)


SIGNED_ROWS: Final[Sequence[Row[SignedToken, SignedToken]]] = (
    Row(
        "OAUTH-12",
        lambda token: len(token.sections) != 3,
        (refuse_signed_token("it does not have three sections"),),
    ),
    Row(
        "OAUTH-12",
        lambda token: token.claims is None,
        (refuse_signed_token("it has no signature of the token endpoint"),),
    ),
    Row(
        "OAUTH-13",
        lambda token: token.now_ms - token.validator.clock_skew_ms >= token.expires_ms,
        (refuse_signed_token("it has expired"),),
    ),
    Row("OAUTH-14", _other_audience, (refuse_signed_token("it is for another audience"),)),
    Row(
        "OAUTH-14",
        lambda token: bool(token.audience) and not token.validator.expected_audience,
        (refuse_signed_token("it has an audience, and none is expected"),),
        until=(4, 4),
    ),
    Row(
        "OAUTH-14",
        lambda token: token.validator.expected_issuer not in (None, token.issuer),
        (refuse_signed_token("it is of another issuer"),),
    ),
)


class OAuthClient(msgspec.Struct, frozen=True):
    """Who may ask for tokens, and for which scopes."""

    client_id: str
    secret: str
    scopes: tuple[str, ...] = ()


class Grant(msgspec.Struct):
    """A request of the token endpoint while it is checked. ``client`` is the one that it names,
    None if there is no such client; ``secret`` is what it sent."""

    form: Mapping[str, str]
    client: OAuthClient | None
    secret: str
    error: str | None = None
    status: int = 400

    @property
    def scopes(self) -> tuple[str, ...]:
        """The requested scopes, or all of the client's."""
        assert self.client is not None
        return tuple(self.form.get("scope", "").split()) or self.client.scopes

    @property
    def authenticated(self) -> bool:
        return self.client is not None and compare_digest(
            self.client.secret.encode(), self.secret.encode()
        )


@with_arguments
def refuse_grant(subject: Grant, error: str, status: int = 400) -> None:
    """Answer with an error of RFC 6749."""
    subject.error, subject.status = error, status


GRANT_ROWS: Final[Sequence[Row[Grant, Grant]]] = (
    Row(
        "OAUTH-15", lambda grant: "grant_type" not in grant.form, (refuse_grant("invalid_request"),)
    ),
    Row("OAUTH-15", lambda grant: not grant.authenticated, (refuse_grant("invalid_client", 401),)),
    Row(
        "OAUTH-15",
        lambda grant: grant.form["grant_type"] != "client_credentials",
        (refuse_grant("unsupported_grant_type"),),
    ),
    Row(
        "OAUTH-15",
        lambda grant: not set(grant.scopes) <= set(grant.client.scopes if grant.client else ()),
        (refuse_grant("invalid_scope"),),
    ),
)
