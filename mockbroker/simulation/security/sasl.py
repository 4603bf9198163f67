"""The broker's side of SASL: it takes tokens, and returns tokens and a user name.

It has PLAIN (RFC 4616) and SCRAM (RFC 5802, KIP-84), as far as Kafka's brokers support them, and
OAUTHBEARER (``oauthbearer``). The package ``scramp`` computes SCRAM. GSSAPI is missing, because it
needs a Kerberos realm. Texts are those of Kafka's login modules.
``mockbroker.apis.handlers.sasl`` has the requests that carry tokens.
"""

from __future__ import annotations

import importlib
import re
import secrets
import string
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from hmac import compare_digest
from typing import Final, TypeAlias

from mockbroker.errors import ClusterError
from mockbroker.simulation.releases.release import NEWEST, Release
from mockbroker.simulation.security.delegation_tokens import TokenLogin
from mockbroker.simulation.security.oauthbearer import (
    OAUTHBEARER,
    BearerExchange,
    bearer_validator,
    hide_bearer,
)
from mockbroker.simulation.security.oauthbearer_rules import BearerValidator
from mockbroker.simulation.security.sasl_errors import SaslRefusedError, invalid_credentials
from mockbroker.simulation.security.scram_credentials import ScramCredentials, ScramKeys
from mockbroker.simulation.security.token_issuer import TokenIssuer

__all__ = [
    "MECHANISMS",
    "PLAIN",
    "SaslRefusedError",
    "SaslSession",
    "SaslUsers",
    "parse_credentials",
    "redact",
]

PLAIN: Final = "PLAIN"
MECHANISMS: Final = (PLAIN, "SCRAM-SHA-256", "SCRAM-SHA-512")
"""The mechanisms with passwords, in the order in which brokers offer them."""

Step: TypeAlias = Callable[[bytes], tuple[bytes, str | None]]
"""The client's token -> (the broker's token, the user's name after the last token)."""

_OTHER_ID = (
    "Authentication failed: Client requested an authorization id that is different from username"
)
_HIDDEN: Final = b"[hidden]"
_MIN_REAUTH_MS: Final = 1_000
"""A client that re-authenticates sooner is refused."""

_SALT_DIGITS: Final = string.digits + string.ascii_lowercase
_SALT_LENGTH: Final = 25
"""Kafka's salts are 130 random bits in base 36, as text."""

OnToken: TypeAlias = Callable[[TokenLogin], None]

_CLIENT_FIRST: Final = re.compile(
    r"n,(?:a=(?P<authzid>[^,]*))?,n=(?P<user>[^,]+),r=[^,]+(?P<extensions>(?:,.*)?)"
)
"""Kafka has no channel binding, so the message must begin with ``n``."""


class SaslUsers:
    """The users: ``MECHANISM:USER:PASSWORD`` texts, one for each mechanism of a user, and
    ``OAUTHBEARER[:OPTION=VALUE,...]``, which accepts any user with a valid token.

    ``iterations`` replaces the true number in SCRAM's first answer, to test a client's limits.
    No client can authenticate then, because the proof is computed with another number. ``first``
    and ``final`` replace the broker's first message and its proof at the end; in both ``{}`` stands
    for what is replaced, and ``{:.20}`` for its beginning.

    With ``oauth_clients``, OAUTHBEARER accepts only the signed tokens that ``issuer`` gives them.

    A mechanism is enabled if a user has a password for it. Raises ClusterError for a text of
    another form or an unsupported mechanism.
    """

    def __init__(
        self,
        users: Iterable[str],
        *,
        iterations: int | None = None,
        first: str | None = None,
        final: str | None = None,
        oauth_clients: Iterable[str] = (),
        release: Release = NEWEST,
    ) -> None:
        self._iterations = iterations
        self._first = first
        self._final = final
        self._passwords: dict[str, dict[str, str]] = {}
        self.issuer: TokenIssuer | None = None
        """Gives and checks signed tokens."""
        self._bearer: BearerValidator | TokenIssuer | None = None
        clients = tuple(oauth_clients)
        if clients:
            self._bearer = self.issuer = TokenIssuer(clients, release=release)
        self._add(users, clients, release)
        enabled = tuple(each for each in MECHANISMS if each in self._passwords)
        self.mechanisms = enabled if self._bearer is None else (*enabled, OAUTHBEARER)
        self._prepare()
        self._scram_keys: dict[tuple[str, str], ScramKeys] = {}
        self._stored: Callable[[str, str], ScramKeys | None] | None = None
        self._tokens: Callable[[str], TokenLogin | None] = lambda _: None

    def _add(self, users: Iterable[str], clients: tuple[str, ...], release: Release) -> None:
        for text in users:
            if text.partition(":")[0] == OAUTHBEARER:
                options = text.partition(":")[2]
                if clients:
                    self._bearer = self.issuer = TokenIssuer(clients, options, release)
                else:
                    self._bearer = bearer_validator(options)
                continue
            mechanism, user, password = parse_credentials(text)
            self._passwords.setdefault(mechanism, {})[user] = password

    def _prepare(self) -> None:
        if any(each.startswith("SCRAM") for each in self.mechanisms):
            importlib.import_module("scramp")  # so that no exchange opens a file

    def of_listener(self, mechanisms: Sequence[str], users: Iterable[str]) -> SaslUsers:
        """The users of one listener, which enables these mechanisms: all of these, and its own,
        who take the place of those with the same name."""
        found = copy(self)
        found._passwords = {name: dict(each) for name, each in self._passwords.items()}
        found._add(users, (), NEWEST)
        found.mechanisms = tuple(mechanisms)
        if OAUTHBEARER in mechanisms and found._bearer is None:
            found._bearer = bearer_validator("")
        found._prepare()
        return found

    def has_users(self, mechanism: str) -> bool:
        """Whether anybody has a password for the mechanism."""
        return bool(self._passwords.get(mechanism))

    def use_stored(self, credentials: ScramCredentials) -> None:
        """Let a cluster store the SCRAM users from now on, beginning with those given here."""
        for mechanism, users in self._passwords.items():
            for user in users if mechanism != PLAIN else ():
                credentials.store(mechanism, user, self._scram_key(mechanism, user), "start")
        self._stored = credentials.keys

    def use_tokens(self, find: Callable[[str], TokenLogin | None]) -> None:
        """Let SCRAM accept delegation tokens; ``find`` returns one by its id."""
        self._tokens = find

    def exchange(self, mechanism: str, on_token: OnToken = lambda _: None) -> Step:
        """Begin an exchange. The result is called with each token in turn; it raises
        SaslRefusedError. ``on_token`` is called with the delegation token that the client names."""
        return self._plain if mechanism == PLAIN else self._scram(mechanism, on_token)

    def bearer_exchange(self) -> BearerExchange:
        """Begin an exchange of OAUTHBEARER, which has to be enabled."""
        assert self._bearer is not None
        return BearerExchange(self._bearer)

    def _plain(self, token: bytes) -> tuple[bytes, str | None]:
        # Kafka stops at the fourth part, too.
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

    def _scram(self, mechanism: str, on_token: OnToken) -> Step:
        import scramp

        keys: ScramKeys | None = None
        server = scramp.ScramMechanism(mechanism).make_server(lambda _: keys)
        user = ""

        def first(text: str) -> str:
            nonlocal keys, user
            match = _CLIENT_FIRST.fullmatch(text)
            if match is None:
                raise invalid_credentials(mechanism)
            name = user = match["user"].replace("=2C", ",").replace("=3D", "=")
            if _names_token(match["extensions"]):
                login = self._tokens(name)
                if login is None:
                    raise invalid_credentials(mechanism)
                on_token(login)
                user, keys = login.owner, _token_keys(mechanism, login)
            else:
                keys = self._scram_key(mechanism, user)
            # scramp has no authorization ids, and no extensions.
            _check_authorization_id(match["authzid"] or "", name)
            extensions = match["extensions"]
            server.set_client_first(text.removesuffix(extensions))
            server.client_first_bare += extensions
            answer: str = server.get_server_first()
            if self._iterations is not None:
                answer = re.sub(r"(?<=,i=)\d+", str(self._iterations), answer)
            return answer if self._first is None else self._first.format(answer)

        def final(text: str) -> str:
            server.set_client_final(text)
            answer: str = server.get_server_final()
            return answer if self._final is None else self._final.format(answer)

        steps = [first, final]

        def step(token: bytes) -> tuple[bytes, str | None]:
            try:
                answer = steps.pop(0)(token.decode())
            except (scramp.ScramException, UnicodeDecodeError, IndexError):
                raise invalid_credentials(mechanism) from None
            return answer.encode(), None if steps else user

        return step

    def _scram_key(self, mechanism: str, user: str) -> ScramKeys:
        """Return the salted hash of a password, computed once because hashing is slow on purpose.
        Raises ScramException for an unknown user."""
        import scramp

        if self._stored is not None:
            stored = self._stored(mechanism, user)
            if stored is None:
                raise scramp.ScramException("no such user")
            return stored
        password = self._passwords[mechanism].get(user)
        if password is None:
            raise scramp.ScramException("no such user")
        key = (mechanism, user)
        if key not in self._scram_keys:
            self._scram_keys[key] = scramp.ScramMechanism(mechanism).make_auth_info(
                password, salt=_new_salt()
            )
        return self._scram_keys[key]


def _new_salt() -> bytes:
    """Return a salt as Kafka makes them: the text of a random number, rather than any bytes."""
    return "".join(secrets.choice(_SALT_DIGITS) for _ in range(_SALT_LENGTH)).encode()


class SaslSession:
    """The state of SASL on one connection. ``user`` is None until the client has authenticated, and
    while it re-authenticates.

    ``ends_ms`` is when the session expires by the cluster's clock, None for never (KIP-368).
    Re-authentication must keep the user and the mechanism.
    """

    def __init__(self, users: SaslUsers) -> None:
        self.mechanism: str | None = None
        self.user: str | None = None
        self.versions_sent = False
        self.ends_ms: int | None = None
        self._users = users
        self._step: Step | None = None
        self._bearer: BearerExchange | None = None
        self.login: TokenLogin | None = None
        """The delegation token with which the client authenticates."""
        self._before: tuple[str, str | None] | None = None
        self._begun_again_ms: int | None = None

    @property
    def mechanisms(self) -> tuple[str, ...]:
        return self._users.mechanisms

    def begin(self, mechanism: str) -> bool:
        """Begin the exchange of the client's mechanism. Returns False if it is not enabled."""
        if mechanism not in self.mechanisms:
            return False
        self.mechanism, self.login = mechanism, None
        if mechanism == OAUTHBEARER:
            self._bearer = self._users.bearer_exchange()
            self._step = self._bearer.step
        else:
            self._bearer, self._step = None, self._users.exchange(mechanism, self._note_token)
        return True

    @property
    def credential_expires_ms(self) -> int | None:
        """When the credential expires with which the client authenticated, None for never."""
        if self.login is not None:
            return self.login.expires_ms
        return None if self._bearer is None else self._bearer.expires_ms

    def _note_token(self, login: TokenLogin) -> None:
        self.login = login

    def begin_again(self, now_ms: int) -> bool:
        """Begin a re-authentication. Returns False if the client has not authenticated, if its
        session does not expire, or if it re-authenticated less than a second ago."""
        if self.user is None or self.ends_ms is None:
            return False
        if self._begun_again_ms is not None and now_ms - self._begun_again_ms < _MIN_REAUTH_MS:
            return False
        self._begun_again_ms = now_ms
        self._before, self.user = (self.user, self.mechanism), None
        return True

    def step(self, token: bytes, now_ms: int) -> bytes:
        """Return the answer to the client's token, which arrives at ``now_ms``. Raises
        SaslRefusedError, and UnreadableError for what a broker closes the connection on."""
        if self._bearer is not None:
            self._bearer.now_ms = now_ms
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

    def expired(self, now_ms: int) -> bool:
        """Return whether the session has expired. Brokers then accept only a SaslHandshake."""
        return self.user is not None and self.ends_ms is not None and now_ms > self.ends_ms


def redact(token: bytes, mechanism: str | None) -> bytes:
    """Return ``token`` without secrets.

    Of PLAIN's tokens only the names remain, and of OAUTHBEARER's all but the token. SCRAM's tokens
    hold no password and stay. Anything else is hidden whole.
    """
    if mechanism == OAUTHBEARER:
        return hide_bearer(token, _HIDDEN)
    if mechanism is not None and mechanism != PLAIN:
        return token
    if not token:
        return token
    authorization_id, nul, rest = token.partition(b"\0")
    user, second, _ = rest.partition(b"\0")
    return authorization_id + nul + user + second + _HIDDEN if nul and second else _HIDDEN


def parse_credentials(text: str) -> tuple[str, str, str]:
    """Split ``MECHANISM:USER:PASSWORD``. Raises ClusterError."""
    mechanism, _, rest = text.partition(":")
    user, _, password = rest.partition(":")
    if mechanism not in MECHANISMS:
        # The text itself may contain a password.
        raise ClusterError(
            f"unknown SASL mechanism {mechanism!r}; use MECHANISM:USER:PASSWORD with one of "
            + ", ".join(MECHANISMS)
        )
    if not (user and password) or "\0" in rest:
        raise ClusterError(f"{mechanism} needs a user and a password: {mechanism}:USER:PASSWORD")
    return mechanism, user, password


def _names_token(extensions: str) -> bool:
    """Whether the client's first message says that the user is the id of a delegation token."""
    return any(each.lower() == "tokenauth=true" for each in extensions.split(","))


def _token_keys(mechanism: str, login: TokenLogin) -> ScramKeys:
    import scramp

    keys: ScramKeys = scramp.ScramMechanism(mechanism).make_auth_info(login.password)
    return keys


def _check_authorization_id(authorization_id: str, user: str) -> None:
    if authorization_id not in ("", user):
        raise SaslRefusedError(_OTHER_ID)
