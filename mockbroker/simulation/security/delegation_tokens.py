"""The delegation tokens of a cluster (KIP-48): created (38), renewed (39), expired (40), described
(41), and used by SASL/SCRAM with ``tokenauth=true``.

The state has no secret: the HMAC, which is the token's password, is computed from the id and the
secret key in the brokers' properties. As in Kafka an expired token is kept until the next periodic
check; a client that authenticates with it has a session that has ended.
"""

from __future__ import annotations

import hmac
import uuid
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from mockbroker.simulation.configs.effective import EffectiveConfigs
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import Row, apply_first, rows_of_release
from mockbroker.simulation.security.delegation_token_rules import (
    CREATE_ROWS,
    DESCRIBE_ROWS,
    EXPIRE_ROWS,
    RENEW_ROWS,
    VISIBILITY_ROWS,
    TokenRequest,
    TokenSeen,
)
from mockbroker.simulation.state.actions import DelegationTokenChanged
from mockbroker.simulation.state.cluster_parts import DelegationToken
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.turns import step
from mockbroker.simulation.topics.administration import fresh_id

__all__ = ["DelegationTokens", "TokenLogin", "TokenOffer"]

_SECRET_KEYS: Final = ("delegation.token.secret.key", "delegation.token.master.key")
"""The config and its former name."""
_LONGEST_MS: Final = 2**63 - 1
_USER: Final = "User:"


class TokenLogin(NamedTuple):
    """What SASL needs of a token: the user that it stands for, and the password."""

    owner: str
    password: str
    expires_ms: int


class TokenOffer(NamedTuple):
    """A token that a client asks for. Principals are texts: ``User:alice``."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    lifetime_ms: int


class DelegationTokens:
    """The tokens of one cluster. ``level`` returns the finalized level of metadata.version."""

    def __init__(
        self,
        controller: Controller,
        configs: EffectiveConfigs,
        release: Release,
        level: Callable[[], int],
        new_id: Callable[[], uuid.UUID] = uuid.uuid4,
    ) -> None:
        self._controller = controller
        self.turns = controller.turns
        self._configs = configs
        self._level = level
        self._new_id = new_id
        release.follow(self._use_release)
        self._started_ms = controller.now_ms
        self._check = controller.timers.timer(self.remove_expired, "a check of delegation tokens")

    def _use_release(self, release: Release) -> None:
        self._create = rows_of_release(CREATE_ROWS, release)
        self._renew = rows_of_release(RENEW_ROWS, release)
        self._expire = rows_of_release(EXPIRE_ROWS, release)
        self._describe = rows_of_release(DESCRIBE_ROWS, release)
        self._visibility = rows_of_release(VISIBILITY_ROWS, release)

    # ---- reading -----------------------------------------------------------------------------

    @property
    def enabled(self) -> bool:
        """Whether the brokers have a secret key."""
        return bool(self._secret)

    @property
    def all(self) -> tuple[DelegationToken, ...]:
        """The tokens, oldest first, expired ones included."""
        return tuple(self._controller.state.tokens.values())

    def hmac_of(self, token_id: str) -> bytes:
        """The password of a token."""
        return hmac.digest(self._secret.encode(), token_id.encode(), "sha512")

    def login(self, token_id: str) -> TokenLogin | None:
        """What authenticates the owner of a token; None without such a token."""
        found = self._controller.state.tokens.get(token_id)
        if found is None or not self.enabled:
            return None
        password = b64encode(self.hmac_of(token_id)).decode()
        return TokenLogin(found.owner.partition(":")[2], password, found.expires_ms)

    def shows(self, seen: TokenSeen) -> bool:
        """Whether DescribeDelegationToken lists a token."""
        apply_first(self._visibility, seen, seen)
        return seen.shown

    # ---- requests ----------------------------------------------------------------------------

    @step()
    def create(
        self, offer: TokenOffer, *, allowed: bool, authorized: bool
    ) -> tuple[TokenRequest, DelegationToken | None]:
        """Create a token, unless the request is refused."""
        request = self._request(allowed)
        request.authorized = authorized
        request.only_users = all(each.startswith(_USER) for each in offer.renewers)
        if apply_first(self._create, request, request):
            return request, None
        now_ms = self._controller.now_ms
        lifetime_ms = self._number("delegation.token.max.lifetime.ms")
        if offer.lifetime_ms > 0:
            lifetime_ms = min(lifetime_ms, offer.lifetime_ms)
        max_ms = min(now_ms + lifetime_ms, _LONGEST_MS)
        token = DelegationToken(
            token_id=urlsafe_b64encode(fresh_id(self._new_id).bytes).rstrip(b"=").decode(),
            owner=offer.owner,
            requester=offer.requester,
            renewers=offer.renewers,
            issued_ms=now_ms,
            expires_ms=min(max_ms, now_ms + request.default_ms),
            max_ms=max_ms,
        )
        self._record("create_delegation_token", token.token_id, token)
        return request, token

    @step()
    def renew(self, password: bytes, caller: str, period_ms: int, *, allowed: bool) -> TokenRequest:
        """Let a token expire later: ``period_ms`` from now, or the usual time."""
        return self._change(
            "renew_delegation_token", self._renew, password, caller, period_ms, allowed
        )

    @step()
    def expire(
        self, password: bytes, caller: str, period_ms: int, *, allowed: bool
    ) -> TokenRequest:
        """Let a token expire ``period_ms`` from now; below 0, remove it."""
        return self._change(
            "expire_delegation_token", self._expire, password, caller, period_ms, allowed
        )

    def describe(self, *, allowed: bool) -> TokenRequest:
        """Whether tokens may be described."""
        request = self._request(allowed)
        apply_first(self._describe, request, request)
        return request

    def _change(
        self,
        cause: str,
        rows: Sequence[Row[TokenRequest, TokenRequest]],
        password: bytes,
        caller: str,
        period_ms: int,
        allowed: bool,
    ) -> TokenRequest:
        request = self._request(allowed)
        request.period_ms = period_ms
        token = self._find(password)
        if token is not None:
            request.found = True
            request.may_renew = caller in (token.owner, *token.renewers)
            request.max_ms, request.expires_ms = token.max_ms, token.expires_ms
        apply_first(rows, request, request)
        if token is not None and not request.code:
            after = None if request.removes else replace(token, expires_ms=request.time_ms)
            self._record(cause, token.token_id, after)
        return request

    def _find(self, password: bytes) -> DelegationToken | None:
        if not self.enabled:
            return None
        matches = (t for t in self.all if hmac.compare_digest(self.hmac_of(t.token_id), password))
        return next(matches, None)

    def _request(self, allowed: bool) -> TokenRequest:
        return TokenRequest(
            now_ms=self._controller.now_ms,
            allowed=allowed,
            enabled=self.enabled,
            kraft=not self._controller.keeps_znodes,
            level=self._level(),
            default_ms=self._number("delegation.token.expiry.time.ms"),
        )

    # ---- expiry ------------------------------------------------------------------------------

    def remove_expired(self) -> None:
        """Remove the tokens whose time has passed, as the periodic check does."""
        for token in self.all:
            if min(token.max_ms, token.expires_ms) < self._controller.now_ms:
                self._record("delegation_token_expired", token.token_id, None)
        self._schedule()

    def _schedule(self) -> None:
        if not self.all:
            self._check.set(None)
        elif self._check.due_ms is None:
            interval_ms = self._number("delegation.token.expiry.check.interval.ms")
            checks = (self._controller.now_ms - self._started_ms) // interval_ms + 1
            self._check.set(self._started_ms + checks * interval_ms)

    # ---- helpers -----------------------------------------------------------------------------

    def _record(self, cause: str, token_id: str, after: DelegationToken | None) -> None:
        before = self._controller.state.tokens.get(token_id)
        self._controller.record(cause, DelegationTokenChanged(token_id, before, after))
        self._schedule()

    @property
    def _secret(self) -> str:
        state, known = self._controller.state, self._configs.definitions.broker
        given = (state.static_configs.get(name) for name in _SECRET_KEYS if name in known)
        return next((value for value in given if value), "")

    def _number(self, name: str) -> int:
        if name not in self._configs.definitions.broker:
            return 1
        return max(int(self._configs.controller_value(name)), 1)
