"""The broker's side of SASL: tokens in, tokens and a user name out. No requests, no connections.

PLAIN (RFC 4616) and SCRAM (RFC 5802, KIP-84), as far as Kafka's brokers have them; SCRAM's
computation is the package ``scramp``'s, the extra ``sasl``. Texts are those of Kafka's login
modules. Which request carries a token, and what a refusal looks like: ``mockbroker.apis.sasl``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from hmac import compare_digest
from typing import Any, Final, TypeAlias

from mockbroker.errors import ClusterError

__all__ = ["MECHANISMS", "SaslRefusedError", "SaslSession", "SaslUsers", "redacted"]

PLAIN: Final = "PLAIN"
MECHANISMS: Final = (PLAIN, "SCRAM-SHA-256", "SCRAM-SHA-512")
"""What brokers here can do, in the order they offer it."""

Step: TypeAlias = Callable[[bytes], tuple[bytes, str | None]]
"""The client's token -> (ours, the user's name once that was the last one)."""

_OTHER_ID = (
    "Authentication failed: Client requested an authorization id that is different from username"
)
_HIDDEN: Final = b"[hidden]"
_SOONEST_ANEW_MS: Final = 1_000
"""A client that authenticates anew sooner than that is refused."""

_CLIENT_FIRST: Final = re.compile(r"n,(?:a=(?P<authzid>[^,]*))?,n=(?P<user>[^,]+),r=.+")
"""Channel binding is nothing that Kafka has, so ``n`` is all that may stand first."""


class SaslRefusedError(Exception):
    """The exchange failed; the text is what the client is told."""


class SaslUsers:
    """Who may authenticate: ``MECHANISM:USER:PASSWORD`` texts, one for each mechanism of a user.

    ``iterations`` is a lie: what SCRAM's first answer says in place of the true number, to see what
    a client makes of it. Nobody can authenticate then, as the proof is of another number.
    ``final`` is what stands in place of the broker's own proof at the end.

    A mechanism is enabled once somebody has a password for it. Raises ClusterError for a text of
    another form or a mechanism that brokers here do not have, ModuleNotFoundError naming the extra
    where SCRAM is asked for and ``scramp`` is absent.
    """

    def __init__(
        self, users: Iterable[str], *, iterations: int | None = None, final: str | None = None
    ) -> None:
        self._iterations = iterations
        self._final = final
        self._passwords: dict[str, dict[str, str]] = {}
        for text in users:
            mechanism, user, password = _parse(text)
            self._passwords.setdefault(mechanism, {})[user] = password
        self.mechanisms = tuple(each for each in MECHANISMS if each in self._passwords)
        self._scram_keys: dict[tuple[str, str], Any] = {}
        if any(each != PLAIN for each in self.mechanisms):
            _scramp()

    def exchange(self, mechanism: str) -> Step:
        """A new exchange of one of ``mechanisms``, to be called with each token in turn; it raises
        SaslRefusedError."""
        return self._plain if mechanism == PLAIN else self._scram(mechanism)

    def _plain(self, token: bytes) -> tuple[bytes, str | None]:
        # A fourth part is as wrong as a millionth, and Kafka looks no further either.
        parts = token.decode(errors="replace").split("\0", 3)
        if len(parts) != 3:
            raise SaslRefusedError(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
            )
        authorization_id, user, password = parts
        for what, value in (("username", user), ("password", password)):
            if not value:
                raise SaslRefusedError(f"Authentication failed: {what} not specified")
        expected = self._passwords[PLAIN].get(user)
        if expected is None or not compare_digest(expected.encode(), password.encode()):
            raise SaslRefusedError("Authentication failed: Invalid username or password")
        _check_authorization_id(authorization_id, user)
        return b"", user

    def _scram(self, mechanism: str) -> Step:
        scramp = _scramp()
        server = scramp.ScramMechanism(mechanism).make_server(
            lambda user: self._scram_key(mechanism, user)
        )
        user = ""

        def first(text: str) -> str:
            nonlocal user
            match = _CLIENT_FIRST.fullmatch(text)
            if match is None:
                raise _scram_refused(mechanism)
            user = match["user"].replace("=2C", ",").replace("=3D", "=")
            self._scram_key(mechanism, user)
            # Before scramp sees it, which knows no authorization ids at all.
            _check_authorization_id(match["authzid"] or "", user)
            server.set_client_first(text)
            answer: str = server.get_server_first()
            if self._iterations is None:
                return answer
            return re.sub(r"(?<=,i=)\d+", str(self._iterations), answer)

        def final(text: str) -> str:
            server.set_client_final(text)
            answer: str = server.get_server_final()
            return answer if self._final is None else self._final

        steps = [first, final]

        def step(token: bytes) -> tuple[bytes, str | None]:
            try:
                answer = steps.pop(0)(token.decode())
            except (scramp.ScramException, UnicodeDecodeError, IndexError):
                raise _scram_refused(mechanism) from None
            return answer.encode(), None if steps else user

        return step

    def _scram_key(self, mechanism: str, user: str) -> Any:
        """Salted and hashed once; hashing is slow on purpose. ScramException for no such user."""
        scramp = _scramp()
        password = self._passwords[mechanism].get(user)
        if password is None:
            raise scramp.ScramException("no such user")
        key = (mechanism, user)
        if key not in self._scram_keys:
            self._scram_keys[key] = scramp.ScramMechanism(mechanism).make_auth_info(password)
        return self._scram_keys[key]


class SaslSession:
    """How far one connection has come. ``user`` is None until somebody has authenticated, and
    while he does so anew.

    ``ends_ms`` is when the session is over, by the cluster's clock; None where it never is
    (KIP-368). Whoever authenticates anew stays who he was, by the same mechanism.
    """

    def __init__(self, users: SaslUsers) -> None:
        self.mechanism: str | None = None
        self.user: str | None = None
        self.versions_asked = False
        self.ends_ms: int | None = None
        self._users = users
        self._step: Step | None = None
        self._before: tuple[str, str | None] | None = None
        self._begun_anew_ms: int | None = None

    @property
    def mechanisms(self) -> tuple[str, ...]:
        return self._users.mechanisms

    def begin(self, mechanism: str) -> bool:
        """The client chose. False: that mechanism is not enabled."""
        if mechanism not in self.mechanisms:
            return False
        self.mechanism = mechanism
        self._step = self._users.exchange(mechanism)
        return True

    def begin_anew(self, now_ms: int) -> bool:
        """Whether who has authenticated may do so again: where sessions end, and no more than once
        a second."""
        if self.user is None or self.ends_ms is None:
            return False
        if self._begun_anew_ms is not None and now_ms - self._begun_anew_ms < _SOONEST_ANEW_MS:
            return False
        self._begun_anew_ms = now_ms
        self._before, self.user = (self.user, self.mechanism), None
        return True

    def step(self, token: bytes) -> bytes:
        """Our answer to the client's token. Raises SaslRefusedError."""
        if self._step is None:
            raise SaslRefusedError("Authentication failed: no mechanism was chosen")
        if self._before is not None and self._before[1] != self.mechanism:
            raise SaslRefusedError(
                f"SASL mechanism '{self.mechanism}' requested by client is not supported for "
                f"re-authentication of mechanism '{self._before[1]}'"
            )
        answer, user = self._step(token)
        if user is not None and self._before is not None and self._before[0] != user:
            raise SaslRefusedError(
                "Cannot change principals during re-authentication from "
                f"User.{self._before[0]}: User.{user}"
            )
        self.user = user
        return answer

    def outlived(self, now_ms: int) -> bool:
        """Whether the session is over. Brokers close then on whatever is no SaslHandshake."""
        return self.user is not None and self.ends_ms is not None and now_ms > self.ends_ms


def redacted(token: bytes, mechanism: str | None) -> bytes:
    """``token`` without what must not be written down: all but the names in PLAIN's. SCRAM's
    tokens hold no password; what is not known to be one of those is hidden whole."""
    if mechanism is not None and mechanism != PLAIN:
        return token
    if not token:
        return token
    authorization_id, nul, rest = token.partition(b"\0")
    user, second, _ = rest.partition(b"\0")
    return authorization_id + nul + user + second + _HIDDEN if nul and second else _HIDDEN


def _parse(text: str) -> tuple[str, str, str]:
    mechanism, _, rest = text.partition(":")
    user, _, password = rest.partition(":")
    if mechanism not in MECHANISMS:
        # Not the text itself: it may hold a password.
        raise ClusterError(
            f"no SASL mechanism {mechanism!r}; use MECHANISM:USER:PASSWORD, the mechanism one of "
            + ", ".join(MECHANISMS)
        )
    if not (user and password) or "\0" in rest:
        raise ClusterError(f"{mechanism} needs a user and a password: {mechanism}:USER:PASSWORD")
    return mechanism, user, password


def _check_authorization_id(authorization_id: str, user: str) -> None:
    if authorization_id not in ("", user):
        raise SaslRefusedError(_OTHER_ID)


def _scram_refused(mechanism: str) -> SaslRefusedError:
    return SaslRefusedError(
        "Authentication failed during authentication due to invalid credentials with SASL "
        f"mechanism {mechanism}"
    )


def _scramp() -> Any:
    try:
        import scramp
    except ImportError:
        raise ModuleNotFoundError(
            "SCRAM needs the package scramp: pip install 'kproto[sasl]'"
        ) from None
    return scramp
