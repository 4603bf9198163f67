"""What requests about delegation tokens are refused, as rows in the order in which Kafka checks.

Of a KRaft cluster the broker that receives a request checks the connection, the owner and the
renewers; everything else is up to the controller. A ZooKeeper broker checks everything itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.releases.rows import Refusable, Row, always, refuse, with_arguments

__all__ = [
    "CREATE_ROWS",
    "DESCRIBE_ROWS",
    "EXPIRE_ROWS",
    "NO_TIME",
    "RENEW_ROWS",
    "VISIBILITY_ROWS",
    "TokenRequest",
    "TokenSeen",
]

NO_TIME: Final = -1
"""The time in the response of a broker that refuses a request."""
_FIRST_LEVEL: Final = 14
"""The level of 3.6-IV2, the first metadata.version with records of tokens."""
_REMOVED_WHEN_EXPIRED: Final = (3, 5)
"""Since this release an expired token can be removed."""
_OWNERS_SINCE: Final = (3, 3)
"""The release of KIP-373."""


class TokenRequest(Refusable, msgspec.Struct):
    """A request about a token while it is checked; ``code`` and ``time_ms`` are the answer.

    ``allowed``: the connection may be used for such requests. ``enabled``: the brokers have a
    secret key. ``kraft``: the controller is one of KRaft, whose metadata.version is ``level``.
    ``authorized``: the caller may create tokens of this owner. ``only_users``: every renewer is a
    user. ``found``: the token exists; ``may_renew``: the caller is its owner or a renewer;
    ``max_ms`` and ``expires_ms`` are its times. ``period_ms`` is what the client asks for, and
    ``default_ms`` the time after which tokens expire.
    """

    now_ms: int
    allowed: bool
    enabled: bool
    kraft: bool
    level: int
    authorized: bool = True
    only_users: bool = True
    found: bool = False
    may_renew: bool = False
    max_ms: int = 0
    expires_ms: int = 0
    period_ms: int = 0
    default_ms: int = 0
    code: ErrorCode = ErrorCode.NONE
    time_ms: int = NO_TIME
    removes: bool = False

    @property
    def expired(self) -> bool:
        return min(self.max_ms, self.expires_ms) < self.now_ms

    @property
    def unsupported(self) -> bool:
        """Whether the metadata.version has no tokens."""
        return self.kraft and self.level < _FIRST_LEVEL


@with_arguments
def refuse_and_answer_no_time(subject: TokenRequest, code: ErrorCode) -> None:
    """Refuse a request where the state of tokens is kept. A KRaft controller leaves the time 0."""
    subject.code = code
    subject.time_ms = 0 if subject.kraft else NO_TIME


@with_arguments
def expire_after(subject: TokenRequest, period: Callable[[TokenRequest], int]) -> None:
    """The token expires after this period, but not later than it may."""
    subject.time_ms = min(subject.max_ms, subject.now_ms + period(subject))


def _remove(request: TokenRequest) -> None:
    request.removes, request.time_ms = True, request.now_ms


_NOT_ALLOWED: Final[Row[TokenRequest, TokenRequest]] = Row(
    "TOKEN-01",
    lambda request: not request.allowed,
    (refuse(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),),
)
_DISABLED: Final[Row[TokenRequest, TokenRequest]] = Row(
    "TOKEN-02",
    lambda request: not request.enabled,
    (refuse_and_answer_no_time(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED),),
)
_UNSUPPORTED: Final[Row[TokenRequest, TokenRequest]] = Row(
    "TOKEN-03",
    lambda request: request.unsupported,
    (refuse_and_answer_no_time(ErrorCode.UNSUPPORTED_VERSION),),
)
_NOT_FOUND: Final[Row[TokenRequest, TokenRequest]] = Row(
    "TOKEN-06",
    lambda request: not request.found,
    (refuse_and_answer_no_time(ErrorCode.DELEGATION_TOKEN_NOT_FOUND),),
)
_MISMATCH: Final[Row[TokenRequest, TokenRequest]] = Row(
    "TOKEN-07",
    lambda request: not request.may_renew,
    (refuse_and_answer_no_time(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),),
)
_EXPIRED: Final = (refuse_and_answer_no_time(ErrorCode.DELEGATION_TOKEN_EXPIRED),)

CREATE_ROWS: Final[Sequence[Row[TokenRequest, TokenRequest]]] = (
    _NOT_ALLOWED,
    Row(
        "TOKEN-04",
        lambda request: not request.authorized,
        (refuse(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED),),
        since=_OWNERS_SINCE,
    ),
    Row(
        "TOKEN-05",
        lambda request: not request.only_users,
        (refuse(ErrorCode.INVALID_PRINCIPAL_TYPE),),
    ),
    _DISABLED,
    _UNSUPPORTED,
)

RENEW_ROWS: Final[Sequence[Row[TokenRequest, TokenRequest]]] = (
    _NOT_ALLOWED,
    _DISABLED,
    _UNSUPPORTED,
    _NOT_FOUND,
    Row("TOKEN-08", lambda request: request.kraft and request.expired, _EXPIRED),
    _MISMATCH,
    Row("TOKEN-08", lambda request: request.expired, _EXPIRED),
    Row(
        "TOKEN-09",
        lambda request: request.period_ms < 0 or (request.kraft and request.period_ms == 0),
        (expire_after(lambda request: request.default_ms),),
    ),
    Row(
        "TOKEN-09",
        lambda request: request.kraft,
        (expire_after(lambda request: min(request.default_ms, request.period_ms)),),
    ),
    Row("TOKEN-09", always, (expire_after(lambda request: request.period_ms),)),
)

EXPIRE_ROWS: Final[Sequence[Row[TokenRequest, TokenRequest]]] = (
    _NOT_ALLOWED,
    _DISABLED,
    _UNSUPPORTED,
    _NOT_FOUND,
    _MISMATCH,
    Row("TOKEN-10", lambda request: request.expired, _EXPIRED, until=_REMOVED_WHEN_EXPIRED),
    Row("TOKEN-10", lambda request: request.period_ms < 0, (_remove,)),
    Row("TOKEN-10", lambda request: request.expired, _EXPIRED),
    Row("TOKEN-10", always, (expire_after(lambda request: request.period_ms),)),
)

DESCRIBE_ROWS: Final[Sequence[Row[TokenRequest, TokenRequest]]] = (_NOT_ALLOWED, _DISABLED)


class TokenSeen(msgspec.Struct):
    """One token that may be described. ``requested``: the request names its owner or a renewer, or
    no principal. ``own``: the caller is its owner or a renewer. The callables ask the authorizer
    about the token, and about tokens of its owner (KIP-373)."""

    requested: bool
    own: bool
    may_describe: Callable[[], bool]
    may_describe_tokens: Callable[[], bool]
    shown: bool = False


def _show(token: TokenSeen) -> None:
    token.shown = True


VISIBILITY_ROWS: Final[Sequence[Row[TokenSeen, TokenSeen]]] = (
    Row("TOKEN-11", lambda token: token.requested and token.own, (_show,)),
    Row("TOKEN-12", lambda token: token.requested and token.may_describe(), (_show,)),
    Row(
        "TOKEN-12",
        lambda token: token.requested and token.may_describe_tokens(),
        (_show,),
        since=_OWNERS_SINCE,
    ),
)
