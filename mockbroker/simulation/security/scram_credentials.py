"""Stored SCRAM credentials (KIP-554): described (50), altered (51), and used by SASL.

What is stored is what RFC 5802 lets a server keep: salt, iterations, and two keys. Unlike Kafka,
SASL refuses users whose salt has fewer than 12 bytes, because ``scramp`` does.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from kproto.error_codes import ErrorCode, message
from mockbroker.errors import Refusal
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first, rows_of_release
from mockbroker.simulation.security.scram_rules import (
    SCRAM_ROWS,
    STORING_ROWS,
    ZOOKEEPER_ROWS,
    ScramChange,
)
from mockbroker.simulation.state.actions import ScramCredentialChanged
from mockbroker.simulation.state.cluster_parts import ScramCredential
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.java_maps import hash_order
from mockbroker.simulation.state.turns import step

__all__ = [
    "MECHANISM_NUMBERS",
    "CredentialChange",
    "CredentialResult",
    "ScramCredentials",
    "ScramKeys",
    "UserDescription",
]

MECHANISM_NUMBERS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

_NO_ZNODES: Final = (".", "..")
"""Users whose names are no names of znodes."""

ScramKeys = tuple[bytes, bytes, bytes, int]
"""Salt, stored key, server key, iterations."""


class CredentialChange(NamedTuple):
    """A requested change; ``iterations`` None deletes the credential."""

    user: str
    mechanism: int
    iterations: int | None = None
    salt: bytes = b""
    salted_password: bytes = b""


class CredentialResult(NamedTuple):
    user: str
    error_code: ErrorCode = ErrorCode.NONE
    text: str | None = None


class UserDescription(NamedTuple):
    """``credentials`` are pairs of the mechanism's number and the iterations."""

    user: str
    error_code: ErrorCode = ErrorCode.NONE
    text: str | None = None
    credentials: tuple[tuple[int, int], ...] = ()


class ScramCredentials:
    """The credentials of one cluster."""

    def __init__(self, controller: Controller, release: Release) -> None:
        self._controller = controller
        self.turns = controller.turns
        release.follow(self._use_release)

    def _use_release(self, release: Release) -> None:
        self._rows = rows_of_release(SCRAM_ROWS, release)
        self._zookeeper_rows = [rows_of_release(rows, release) for rows in ZOOKEEPER_ROWS]
        self._storing_rows = rows_of_release(STORING_ROWS, release)

    def keys(self, mechanism: str, user: str) -> ScramKeys | None:
        """Return what SASL needs to authenticate a user; None without such a credential."""
        found = self._controller.state.scram.get((user, mechanism))
        if found is None:
            return None
        salt, stored_key, server_key = map(
            b64decode, (found.salt, found.stored_key, found.server_key)
        )
        return salt, stored_key, server_key, found.iterations

    def store(self, mechanism: str, user: str, keys: ScramKeys, cause: str) -> None:
        """Store a credential without checks."""
        salt, stored_key, server_key = (b64encode(each).decode() for each in keys[:3])
        self._record(cause, user, mechanism, ScramCredential(salt, keys[3], stored_key, server_key))

    @step()
    def alter(
        self, deletions: Sequence[CredentialChange], upsertions: Sequence[CredentialChange]
    ) -> list[CredentialResult]:
        """Check all changes, then carry out those that are valid: one result for each user.
        Raises Refusal, in ZooKeeper mode, for a user whose znode cannot have that name."""
        changes = (*deletions, *upsertions)
        in_zookeeper = self._controller.keeps_znodes
        refused = self._refused_by_reason(changes) if in_zookeeper else self._refused(changes)
        results: dict[str, CredentialResult] = {}
        for change in changes:
            if change.user in refused:
                continue
            checked = self._checked(change, repeated=False)
            if not apply_first(self._storing_rows, checked, checked):
                self._carry_out(change)
            text = message(checked.code) if in_zookeeper and checked.code else None
            results[change.user] = CredentialResult(change.user, checked.code, text)
        return [*results.values(), *refused.values()]

    def _refused(self, changes: Sequence[CredentialChange]) -> dict[str, CredentialResult]:
        """The users of whom nothing is carried out; the first refusal of each counts."""
        refused: dict[str, CredentialResult] = {}
        seen: set[str] = set()
        for change in changes:
            if change.user in refused:
                continue
            checked = self._checked(change, repeated=change.user in seen)
            seen.add(change.user)
            if apply_first(self._rows, checked, checked):
                refused[change.user] = CredentialResult(change.user, checked.code, checked.text)
        return refused

    def _refused_by_reason(
        self, changes: Sequence[CredentialChange]
    ) -> dict[str, CredentialResult]:
        """As ``_refused``, in ZooKeeper mode."""
        times = Counter((change.user, change.mechanism) for change in changes)
        refused: dict[str, CredentialResult] = {}
        for place, rows in enumerate(self._zookeeper_rows):
            found = {}
            for change in changes:
                if change.user in refused:
                    continue
                if place == len(self._zookeeper_rows) - 1 and change.user in _NO_ZNODES:
                    raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
                checked = self._checked(change, repeated=times[change.user, change.mechanism] > 1)
                if apply_first(rows, checked, checked):
                    found[change.user] = CredentialResult(change.user, checked.code, checked.text)
            refused |= found
        return refused

    def _checked(self, change: CredentialChange, *, repeated: bool) -> ScramChange:
        mechanism = MECHANISM_NUMBERS.get(change.mechanism)
        return ScramChange(
            change.user,
            mechanism,
            change.iterations,
            repeated=repeated,
            stored=(change.user, mechanism or "") in self._controller.state.scram,
            has_password=bool(change.salted_password),
        )

    def _carry_out(self, change: CredentialChange) -> None:
        mechanism = MECHANISM_NUMBERS[change.mechanism]
        if change.iterations is None:
            self._record("alter_user_scram_credentials", change.user, mechanism, None)
            return
        name = _HASHES[mechanism]
        client_key = hmac.digest(change.salted_password, b"Client Key", name)
        stored_key = hashlib.new(name, client_key).digest()
        server_key = hmac.digest(change.salted_password, b"Server Key", name)
        keys = (change.salt, stored_key, server_key, change.iterations)
        self.store(mechanism, change.user, keys, "alter_user_scram_credentials")

    def _record(self, cause: str, user: str, mechanism: str, after: ScramCredential | None) -> None:
        before = self._controller.state.scram.get((user, mechanism))
        self._controller.record(cause, ScramCredentialChanged(user, mechanism, before, after))

    def describe(self, users: Sequence[str] | None) -> list[UserDescription]:
        """Describe users, all of them for None or an empty list."""
        stored = self._controller.state.scram
        if users:
            times = Counter(users)
            return [self._describe(user, times[user]) for user in hash_order(users)]
        return [self._describe(user, 1) for user in hash_order(user for user, _ in stored)]

    def _describe(self, user: str, times: int) -> UserDescription:
        if not user and self._controller.keeps_znodes:
            return UserDescription(user, ErrorCode.RESOURCE_NOT_FOUND, "Username must not be empty")
        if times > 1:
            text = (
                "Cannot describe SCRAM credentials for the same user twice in a single request: "
                f"{user}"
            )
            return UserDescription(user, ErrorCode.DUPLICATE_RESOURCE, text)
        if self._controller.keeps_znodes and user in _NO_ZNODES:
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            return UserDescription(user, code, message(code))
        stored = self._controller.state.scram
        found = tuple(
            (number, stored[user, mechanism].iterations)
            for number, mechanism in MECHANISM_NUMBERS.items()
            if (user, mechanism) in stored
        )
        if not found:
            text = f"Attempt to describe a user credential that does not exist: {user}"
            return UserDescription(user, ErrorCode.RESOURCE_NOT_FOUND, text)
        return UserDescription(user, credentials=found)
