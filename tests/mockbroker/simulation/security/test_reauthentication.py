"""Sessions that end (KIP-368): who authenticates anew in time stays, who does not is closed on. The
cluster's clock is moved by hand."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto.framing import encode_frame
from mockbroker import MockCluster
from tests.mockbroker.wire import Wire, connect
from tests.support.requests import request_of

USERS = ("PLAIN:alice:pencil", "PLAIN:bob:pen", "SCRAM-SHA-256:alice:pencil")
LIFETIME_MS = 60_000


@asynccontextmanager
async def wired(
    profile: str = "kafka-4.4", lifetime_ms: int = LIFETIME_MS
) -> AsyncIterator[tuple[MockCluster, Wire]]:
    async with (
        MockCluster(
            1, topics=["foo=1"], sasl=USERS, clock="manual", profile=profile,
            broker_configs={"connections.max.reauth.ms": str(lifetime_ms)},
        ) as mock,
        connect(mock) as wire,
    ):  # fmt: skip
        yield mock, wire


async def shake(wire: Wire, mechanism: str = "PLAIN") -> int:
    return int((await wire.ask("SaslHandshake", 1, mechanism=mechanism)).error_code)


async def authenticate(wire: Wire, user: str = "alice", password: str = "pencil") -> Any:
    assert await shake(wire) == 0
    return await wire.ask("SaslAuthenticate", 2, auth_bytes=f"\0{user}\0{password}".encode())


async def test_who_authenticates_anew_stays() -> None:
    async with wired() as (mock, wire):
        for _ in range(3):
            assert (await authenticate(wire)).session_lifetime_ms == LIFETIME_MS
            assert await wire.lists("foo")
            mock.advance(LIFETIME_MS)
            assert await wire.lists("foo"), "the last millisecond is of the session"
        assert len(mock.journal.select(event="authenticated")) == 3


@pytest.mark.parametrize("asked", [request_of("Metadata", topics=None), request_of("ApiVersions")])
async def test_who_does_not_is_closed_on(asked: Any) -> None:
    """Also where the answer to the same bytes is known already."""
    async with wired() as (mock, wire):
        await authenticate(wire)
        for _ in range(3):
            await wire.ask(asked, 1)
        mock.advance(LIFETIME_MS + 1)
        wire.send(wire.frame(asked, 1))
        assert await wire.closed() == b""
        assert mock.journal.select(event="session-expired")


async def test_a_session_that_is_over_can_still_be_begun_anew() -> None:
    async with wired() as (mock, wire):
        await authenticate(wire)
        mock.advance(10 * LIFETIME_MS)
        assert (await authenticate(wire)).error_code == 0
        assert await wire.lists("foo")


async def test_a_session_counts_after_raw_tokens_as_well() -> None:
    async with wired("kafka-3.9") as (mock, wire):
        await wire.ask("SaslHandshake", 0, mechanism="PLAIN")
        wire.send(encode_frame(b"\0alice\0pencil"))
        await wire.receive()
        assert await wire.lists("foo")
        mock.advance(LIFETIME_MS + 1)
        wire.send(wire.frame(request_of("Metadata", topics=None), 1))
        assert await wire.closed() == b""


async def test_anew_once_a_second() -> None:
    async with wired() as (mock, wire):
        await authenticate(wire)
        await authenticate(wire)
        mock.advance(999)
        assert await shake(wire) == 34
        assert await wire.lists("foo"), "as who it was"
        mock.advance(1)
        await authenticate(wire)


OTHERS = [
    ("alice", "wrong", "Authentication failed: Invalid username or password"),
    ("bob", "pen", "Cannot change principals during re-authentication from User.alice: User.bob"),
]


@pytest.mark.parametrize(("user", "password", "text"), OTHERS)
async def test_anew_as_somebody_else(user: str, password: str, text: str) -> None:
    async with wired() as (_, wire):
        await authenticate(wire)
        answer = await authenticate(wire, user, password)
        assert (answer.error_code, answer.error_message) == (58, text)
        assert await wire.closed() == b""


async def test_anew_by_another_mechanism() -> None:
    async with wired() as (_, wire):
        await authenticate(wire)
        assert await shake(wire, "SCRAM-SHA-256") == 0
        answer = await wire.ask("SaslAuthenticate", 2, auth_bytes=b"n,,n=alice,r=abc")
        assert answer.error_code == 58
        assert "not supported for re-authentication of mechanism 'PLAIN'" in answer.error_message
        assert await wire.closed() == b""


@pytest.mark.parametrize(("profile", "lifetime_ms"), [("kafka-4.4", 0), ("kafka-2.1", LIFETIME_MS)])
async def test_without_an_end_there_is_no_anew(profile: str, lifetime_ms: int) -> None:
    """0 is for ever, and before 2.2 there is no such config."""
    async with wired(profile, lifetime_ms) as (mock, wire):
        await wire.ask("SaslHandshake", 1, mechanism="PLAIN")
        answer = await wire.ask(
            "SaslAuthenticate", 0 if profile == "kafka-2.1" else 2, auth_bytes=b"\0alice\0pencil"
        )
        assert answer.session_lifetime_ms == 0
        mock.advance(10 * LIFETIME_MS)
        assert await shake(wire) == 34
        assert await wire.lists("foo")
