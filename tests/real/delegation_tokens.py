"""What a secured cluster answers to requests about delegation tokens (KIP-48, KIP-373).

``played`` asks one cluster as several users and returns what it answered, without what differs in
every run: ids and HMACs of tokens have names, and times are minutes from now.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

from kproto.messages import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from kproto.messages.create_delegation_token_request import CreatableRenewers
from kproto.messages.describe_delegation_token_request import DescribeDelegationTokenOwner
from tests.mockbroker.wire import Wire

__all__ = ["played"]

MINUTE_MS: Final = 60_000
PATIENCE: Final = 30.0
POLL_SECONDS: Final = 0.05
UNKNOWN: Final = b"x" * 64


class _Side:
    """One cluster. ``hmacs`` are those of the tokens by name."""

    def __init__(self, wires: Mapping[str, Wire]) -> None:
        self.hmacs: dict[str, bytes] = {}
        self.heard: list[tuple[str, Any]] = []
        self._ids: dict[str, str] = {}
        self._wires = wires

    async def ask(self, who: str, body: Any, version: int) -> Any:
        async with asyncio.timeout(PATIENCE):
            return await self._wires[who].ask(body, version)

    def note(self, what: str, answer: Any) -> None:
        self.heard.append((what, answer))

    async def create(self, who: str, version: int, name: str = "", **members: Any) -> None:
        owner = members.pop("owner", None)
        if owner is not None:
            members |= {"owner_principal_type": owner[0], "owner_principal_name": owner[1]}
        body = CreateDelegationTokenRequest(
            renewers=[
                CreatableRenewers(principal_type=kind, principal_name=each)
                for kind, each in members.pop("renewers", ())
            ],
            **members,
        )
        answer = await self.ask(who, body, version)
        if not answer.error_code:
            self.hmacs[name], self._ids[answer.token_id] = answer.hmac, name
        self.note(f"{who} creates {name} v{version}", self._token(answer))

    async def describe(self, who: str, version: int, *owners: str) -> None:
        chosen = [
            DescribeDelegationTokenOwner(principal_type="User", principal_name=each)
            for each in owners
        ]
        body = DescribeDelegationTokenRequest(owners=chosen if owners else None)
        answer = await self.ask(who, body, version)
        tokens = sorted(
            (
                self._token(each) | {"renewers": [each.principal_name for each in each.renewers]}
                for each in answer.tokens
            ),
            key=repr,
        )
        self.note(f"{who} describes {owners} v{version}", (answer.error_code, tokens))

    async def until(self, names: set[str]) -> None:
        """Wait until the broker knows exactly these tokens."""
        deadline = time.monotonic() + PATIENCE
        body = DescribeDelegationTokenRequest(owners=None)
        while True:
            found = await self.ask("admin", body, 3)
            if {self._ids.get(each.token_id) for each in found.tokens} == names:
                return
            assert time.monotonic() < deadline, found
            await asyncio.sleep(POLL_SECONDS)

    async def renew(self, who: str, version: int, hmac: bytes, period_ms: int) -> None:
        body = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        answer = await self.ask(who, body, version)
        self.note(f"{who} renews v{version}", self._expiry(answer))

    async def expire(self, who: str, version: int, hmac: bytes, period_ms: int) -> None:
        body = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        answer = await self.ask(who, body, version)
        self.note(f"{who} expires v{version}", self._expiry(answer))

    def _expiry(self, answer: Any) -> tuple[int, int | None]:
        return answer.error_code, _minutes(answer.expiry_timestamp_ms)

    def _token(self, answer: Any) -> dict[str, Any]:
        members = (
            "error_code", "principal_type", "principal_name", "token_requester_principal_type",
            "token_requester_principal_name",
        )  # fmt: skip
        times = ("issue_timestamp_ms", "issue_timestamp", "expiry_timestamp_ms",
                 "expiry_timestamp", "max_timestamp_ms", "max_timestamp")  # fmt: skip
        return {
            "id": self._ids.get(answer.token_id, answer.token_id),
            "hmac": len(answer.hmac),
            **{each: getattr(answer, each) for each in members if hasattr(answer, each)},
            **{each: _minutes(getattr(answer, each)) for each in times if hasattr(answer, each)},
        }


def _minutes(at_ms: int) -> int | None:
    """Minutes from now; None for times that no clock gave."""
    return round((at_ms - time.time() * 1000) / MINUTE_MS) if at_ms > 0 else None


async def played(wires: Mapping[str, Wire]) -> list[tuple[str, Any]]:
    """Play the session as the users of ``secured_kafka``; returns what was answered."""
    side = _Side(wires)
    for version in (1, 2, 3):
        await side.create("alice", version, f"alice-{version}", max_lifetime_ms=10 * MINUTE_MS)
    await side.create("alice", 3, "renewable", max_lifetime_ms=-1, renewers=[("User", "bob")])
    await side.create("alice", 3, renewers=[("Group", "bob")])
    await side.create("alice", 3, owner=("Group", "alice"))
    await side.create("alice", 3, owner=("User", "bob"))
    await side.create("alice", 3, "own", owner=("User", "alice"))
    await side.create("admin", 3, "bob's", owner=("User", "bob"), max_lifetime_ms=0)
    names = {"alice-1", "alice-2", "alice-3", "renewable", "own", "bob's"}
    await side.until(names)
    for version in (1, 2, 3):
        await side.describe("alice", version)
        await side.describe("bob", version)
        await side.describe("alice", version, "bob")
        await side.describe("admin", version, "alice", "bob")
        await side.describe("dave", version)
        await side.describe("dave", version, "nobody")
    renewable = side.hmacs["renewable"]
    for version in (1, 2):
        await side.renew("bob", version, renewable, 20 * MINUTE_MS)
        await side.renew("alice", version, renewable, -1)
        await side.renew("alice", version, side.hmacs["alice-1"], 60 * MINUTE_MS)
        await side.renew("dave", version, renewable, MINUTE_MS)
        await side.renew("alice", version, UNKNOWN, MINUTE_MS)
        await side.renew("alice", version, b"", MINUTE_MS)
        await side.expire("dave", version, renewable, MINUTE_MS)
        await side.expire("alice", version, UNKNOWN, MINUTE_MS)
        await side.expire("bob", version, renewable, 30 * MINUTE_MS)
        await side.expire("alice", version, side.hmacs["alice-2"], 60 * MINUTE_MS)
    await side.expire("alice", 2, renewable, -1)
    await side.until(names - {"renewable"})
    await side.renew("alice", 2, renewable, MINUTE_MS)
    await side.expire("alice", 2, renewable, -1)
    await side.expire("admin", 2, side.hmacs["bob's"], -1)
    for name in ("alice-1", "alice-2", "alice-3", "own"):
        await side.expire("alice", 2, side.hmacs[name], -1)
    await side.until(_left(side))
    await side.describe("alice", 3)
    return side.heard


def _left(side: _Side) -> set[str]:
    """The token of another owner, unless its maker may expire it."""
    (answer,) = [heard for what, heard in side.heard if what == "admin expires v2"]
    return {"bob's"} if answer[0] else set()
