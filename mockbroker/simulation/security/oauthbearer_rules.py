"""Which tokens OAUTHBEARER accepts, as rows in the order in which Kafka's validator checks.

The rules are those of ``OAuthBearerUnsecuredValidatorCallbackHandler``, which brokers have by
default: it takes JSON Web Tokens without a signature.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from mockbroker.simulation.releases.rows import Row, with_arguments

__all__ = [
    "LIFETIME_ROWS",
    "TOKEN_ROWS",
    "BearerToken",
    "BearerValidator",
    "SessionLifetime",
    "is_blank",
]

_LONGEST_MS: Final = (2**63 - 1) // 1_000_000
"""The most milliseconds whose nanoseconds fit into 64 bits."""


class BearerValidator(msgspec.Struct, frozen=True):
    """The options of Kafka's validator, without their prefix ``unsecuredValidator``."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    clock_skew_ms: int = 0


class BearerToken(msgspec.Struct):
    """A token while it is checked. ``header`` and ``claims`` are None if they cannot be decoded.

    ``reason`` is why it is refused, ``status`` the one that the client receives. ``breaks``: the
    broker fails and closes the connection.
    """

    text: str
    parts: tuple[str, ...]
    header: Mapping[str, Any] | None
    claims: Mapping[str, Any] | None
    now_ms: int
    validator: BearerValidator = msgspec.field(default_factory=BearerValidator)
    reason: str | None = None
    status: str = "invalid_token"
    breaks: bool = False

    def claim(self, name: str) -> Any:
        return None if self.claims is None else self.claims.get(name)

    @property
    def principal(self) -> Any:
        return self.claim(self.validator.principal_claim)

    @property
    def scope(self) -> frozenset[str]:
        value = self.claim(self.validator.scope_claim)
        values = [value] if isinstance(value, str) else value or ()
        return frozenset(_trimmed(each) for each in values if not is_blank(each))

    @property
    def expires_ms(self) -> int:
        return _rounded(self.claim("exp"))


@with_arguments
def refuse_token(subject: BearerToken, reason: str, status: str = "invalid_token") -> None:
    """Refuse the token. The client receives ``status``, not ``reason``."""
    subject.reason, subject.status = reason, status


@with_arguments
def break_connection(subject: BearerToken, reason: str) -> None:
    """Kafka's code raises an exception of its own, which ends the connection without an answer."""
    subject.reason, subject.breaks = reason, True


_JAVA_BLANKS: Final = "".join(map(chr, range(0x21)))


def _trimmed(text: str) -> str:
    return text.strip(_JAVA_BLANKS)


def is_blank(text: str) -> bool:
    """As Java's ``trim`` has it: whatever is not above a space is blank."""
    return not _trimmed(text)


def _rounded(seconds: float) -> int:
    """Seconds as milliseconds that fit into 64 bits."""
    highest = 2**63 - 1
    if abs(seconds) >= highest / 1000:
        return highest if seconds > 0 else -highest
    return math.floor(seconds * 1000.0 + 0.5)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _wrong_type(token: BearerToken, name: str, fits: Callable[[Any], bool]) -> bool:
    value = token.claim(name)
    return value is not None and not fits(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_scope(value: Any) -> bool:
    return isinstance(value, str | list)


def _issued_later(token: BearerToken) -> bool:
    issued = token.claim("iat")
    latest = token.now_ms + token.validator.clock_skew_ms
    return issued is not None and bool(1000 * issued > latest)


def _expired(token: BearerToken) -> bool:
    return bool(token.now_ms - token.validator.clock_skew_ms >= 1000 * token.claim("exp"))


def _expires_first(token: BearerToken) -> bool:
    issued = token.claim("iat")
    return issued is not None and bool(token.claim("exp") <= issued)


TOKEN_ROWS: Final[Sequence[Row[BearerToken, BearerToken]]] = (
    Row("OAUTH-03", lambda token: ".." in token.text, (refuse_token("it contains '..'"),)),
    Row(
        "OAUTH-03",
        lambda token: len(token.parts) != 3,
        (refuse_token("it does not have three parts, separated by dots"),),
    ),
    Row(
        "OAUTH-03",
        lambda token: token.header is None or token.claims is None,
        (refuse_token("its header or claims are not JSON in Base64 for URLs"),),
    ),
    Row(
        "OAUTH-04",
        lambda token: token.header is not None and "alg" not in token.header,
        (break_connection("its header names no algorithm"),),
    ),
    Row(
        "OAUTH-04",
        lambda token: token.header is not None and token.header["alg"] != "none",
        (refuse_token("its algorithm is not 'none'"),),
    ),
    Row("OAUTH-04", lambda token: bool(token.parts[2]), (refuse_token("it has a signature"),)),
    Row(
        "OAUTH-05",
        lambda token: _wrong_type(token, token.validator.scope_claim, _is_scope),
        (refuse_token("its scope is neither text nor a list"),),
    ),
    Row(
        "OAUTH-05",
        lambda token: not _is_number(token.claim("exp")),
        (refuse_token("it has no time of expiry (exp) that is a number"),),
    ),
    Row(
        "OAUTH-05",
        lambda token: not _is_text(token.principal) or is_blank(token.principal),
        (refuse_token("it has no text that names the principal"),),
    ),
    Row(
        "OAUTH-05",
        lambda token: _wrong_type(token, "iat", _is_number),
        (refuse_token("its time of issue (iat) is not a number"),),
    ),
    Row("OAUTH-06", _issued_later, (refuse_token("it was issued later than now"),)),
    Row("OAUTH-06", _expired, (refuse_token("it has expired"),)),
    Row("OAUTH-06", _expires_first, (refuse_token("it expired before it was issued"),)),
    Row(
        "OAUTH-07",
        lambda token: not token.scope.issuperset(token.validator.required_scope),
        (refuse_token("it lacks a required scope", "insufficient_scope"),),
    ),
)


class SessionLifetime(msgspec.Struct):
    """How long a session lasts. ``credential_ms`` is what remains of the credential, None if it
    does not expire, and ``most_ms`` the config ``connections.max.reauth.ms``, 0 or None if unset.

    ``sent_ms`` is what the client receives; ``ends`` says whether the session ends.
    """

    credential_ms: int | None
    most_ms: int | None
    sent_ms: int = 0
    ends: bool = False
    breaks: bool = False


@with_arguments
def end_session_after(subject: SessionLifetime, after_ms: Callable[[SessionLifetime], int]) -> None:
    """The session ends after that time, which is not negative."""
    subject.sent_ms, subject.ends = max(after_ms(subject), 0), True


def overflow_lifetime(subject: SessionLifetime) -> None:
    """The nanoseconds of the end do not fit into 64 bits: Kafka raises an exception."""
    subject.breaks = True


def _of_credential(lifetime: SessionLifetime) -> int:
    assert lifetime.credential_ms is not None
    return lifetime.credential_ms


def _of_config(lifetime: SessionLifetime) -> int:
    return lifetime.most_ms or 0


SessionRow: TypeAlias = Row[SessionLifetime, SessionLifetime]

LIFETIME_ROWS: Final[Sequence[SessionRow]] = (
    Row(
        "OAUTH-09",
        lambda lifetime: (lifetime.credential_ms or 0) > _LONGEST_MS and not lifetime.most_ms,
        (overflow_lifetime,),
        since=(4, 2),
    ),
    Row(
        "OAUTH-09",
        lambda lifetime: lifetime.credential_ms is not None and bool(lifetime.most_ms),
        (end_session_after(lambda lifetime: min(_of_credential(lifetime), _of_config(lifetime))),),
    ),
    Row(
        "OAUTH-09",
        lambda lifetime: lifetime.credential_ms is not None,
        (end_session_after(_of_credential),),
        since=(3, 3),
    ),
    Row("OAUTH-09", lambda lifetime: bool(lifetime.most_ms), (end_session_after(_of_config),)),
)
