"""No journal has a password: not the proxy's, and not that of the mock behind it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mockbroker import MockCluster
from tests.mockbroker.proxy.conftest import address
from tests.mockbroker.wire import Wire
from tests.support.requests import request_of

Proxied = Callable[..., Any]
PASSWORD = b"a-password-of-alice"
SALTED = b"a-salted-password-of-bob"
UPSERT = request_of(
    "AlterUserScramCredentials",
    upsertions={
        "name": "bob",
        "mechanism": 1,
        "iterations": 4096,
        "salt": b"salt",
        "salted_password": SALTED,
    },
)


async def _authenticated(proxy: Any, mock: MockCluster) -> Wire:
    host, port = address(proxy.bootstrap)
    wire = Wire(*await asyncio.open_connection(host, port), mock.dialect)
    assert (await wire.ask("ApiVersions", 0)).error_code == 0
    assert (await wire.ask("SaslHandshake", 1, mechanism="PLAIN")).error_code == 0
    sent = request_of("SaslAuthenticate", auth_bytes=b"\0alice\0" + PASSWORD)
    assert (await wire.ask(sent, 2)).error_code == 0
    return wire


async def _use(wire: Wire) -> bytes:
    """Every request with a secret, and each of them with a byte too many. Returns the HMAC."""
    assert (await wire.ask(UPSERT, 0)).results[0].error_code == 0
    made = await wire.ask("CreateDelegationToken", 3, max_lifetime_ms=3_600_000)
    assert made.error_code == 0
    described = await wire.ask("DescribeDelegationToken", 3, owners=None)
    assert [each.hmac for each in described.tokens] == [made.hmac]
    for body in (
        request_of("RenewDelegationToken", hmac=made.hmac, renew_period_ms=1_000),
        request_of("ExpireDelegationToken", hmac=made.hmac, expiry_time_period_ms=-1),
    ):
        assert (await wire.ask(body, 2)).error_code == 0
    wire.writer.close()
    return bytes(made.hmac)


async def _damaged(wire: Wire, body: Any, version: int) -> None:
    """Send a frame that cannot be decoded, and wait until the broker closes the connection."""
    frame = wire.frame(body, version) + b"\xff"
    wire.send((len(frame) - 4).to_bytes(4, "big") + frame[4:])
    await wire.closed()
    wire.writer.close()


@pytest.mark.requirement("TOKEN-16", "SCRAM-08")
async def test_no_journal_has_a_password(proxied: Proxied) -> None:
    async with MockCluster(
        1, profile="kafka-4.4", sasl=["PLAIN:alice:" + PASSWORD.decode()],
        broker_configs={"delegation.token.secret.key": "key"},
    ) as mock:  # fmt: skip
        proxy = await proxied(mock)
        hmac = await _use(await _authenticated(proxy, mock))
        for body, version in (
            (UPSERT, 0),
            (request_of("RenewDelegationToken", hmac=hmac), 2),
            (request_of("ExpireDelegationToken", hmac=hmac), 2),
        ):
            await _damaged(await _authenticated(proxy, mock), body, version)
        for journal in (proxy.journal, mock.journal):
            kept = b"".join(entry.raw for entry in journal)
            for secret in (PASSWORD, SALTED, hmac):
                assert secret not in kept
            for api in (36, 39, 40, 51):
                assert journal.select(api=api, direction="request")
            assert b"[hidden]" in kept
            notes = " ".join(entry.note or "" for entry in journal)
            assert SALTED.decode() not in notes
        changes = repr(list(mock.cluster.log)) + repr(mock.cluster.describe())
        assert PASSWORD.decode() not in changes
        assert hmac.hex() not in changes
        assert repr(hmac)[2:-1] not in changes
