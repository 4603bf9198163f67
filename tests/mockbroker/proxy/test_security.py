"""TLS and SASL on either side of a proxy, in front of a mock cluster."""

import ssl
from collections.abc import Callable
from typing import Any

import pytest

from kproto.client import (
    Connection,
    SaslAuthenticationError,
    SaslExchangeError,
    SaslPlain,
    SaslScram,
    UnsupportedSaslMechanismError,
)
from kproto.errors import KprotoError
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.proxy.kafka_proxy import ProxyOptions
from tests.mockbroker.proxy.conftest import address, dial
from tests.mockbroker.simulation.security.test_tls import client_context, server_context
from tests.support.requests import request_of
from tests.support.toolchain import require_module

Proxied = Callable[..., Any]

USERS = ["PLAIN:alice:a-secret", "SCRAM-SHA-256:alice:a-secret", "SCRAM-SHA-512:bob:b-secret"]
PLAIN = SaslPlain("alice", "a-secret")
MECHANISMS = [PLAIN, SaslScram("SCRAM-SHA-256", "alice", "a-secret"),
              SaslScram("SCRAM-SHA-512", "bob", "b-secret")]  # fmt: skip


async def asked(proxy: Any, sasl: Any, version: int | None = None, **options: Any) -> list[int]:
    """Authenticate at the bootstrap listener, and ask for Metadata."""
    host, port = address(proxy.bootstrap)
    async with await Connection.open(host, port, **options) as connection:
        if sasl is not None:
            await connection.authenticate(
                sasl.mechanism, sasl.exchange(), handshake_version=version
            )
        body = await connection.request(request_of("Metadata", topics=[]))
        return sorted(each.node_id for each in body.brokers)


@pytest.mark.requirement("DP-PROXY-31")
@pytest.mark.parametrize("to_clients", [False, True])
@pytest.mark.parametrize("to_upstream", [False, True])
async def test_tls_on_each_side(proxied: Proxied, to_clients: bool, to_upstream: bool) -> None:
    async with MockCluster(2, tls=server_context(mutual=True) if to_upstream else None) as mock:
        proxy = await proxied(
            mock,
            tls=server_context() if to_clients else None,
            upstream_tls=client_context(certificate=True) if to_upstream else None,
        )
        assert sorted(proxy.addresses) == [1, 2]
        context = client_context() if to_clients else None
        for broker_id in (None, 1, 2):
            text = proxy.bootstrap if broker_id is None else proxy.addresses[broker_id]
            host, port = address(text)
            async with await Connection.open(host, port, ssl=context) as connection:
                await connection.request(request_of("Metadata", topics=[]))


@pytest.mark.requirement("DP-PROXY-31")
async def test_a_client_certificate_is_asked_for_here(proxied: Proxied) -> None:
    async with MockCluster(1) as mock:
        proxy = await proxied(mock, tls=server_context(mutual=True))
        context = client_context(certificate=True)
        assert await asked(proxy, None, ssl=context) == [1]
        with pytest.raises((OSError, KprotoError)):
            await asked(proxy, None, ssl=client_context(), timeout=10)


@pytest.mark.requirement("DP-PROXY-31", "DP-PROXY-52")
async def test_an_upstream_that_wants_tls(proxied, caplog):
    async with MockCluster(1, tls=server_context()) as mock:
        proxy = await proxied(mock)
        async with dial(proxy) as wire:
            wire.send(wire.frame(request_of("ApiVersions"), 0))
            assert await wire.closed() == b""
        events = {each.event for each in proxy.journal.select(direction="event")}
        assert events & {"upstream-malformed", "upstream-closed"}
        assert "the brokers' listeners open when a client asks" in caplog.text


async def test_an_upstream_whose_certificate_is_not_trusted(proxied: Proxied) -> None:
    async with MockCluster(1, tls=server_context()) as mock:
        proxy = await proxied(mock, upstream_tls=ssl.create_default_context())
        async with dial(proxy) as wire:
            assert await wire.closed() == b""
        (unreachable,) = proxy.journal.select(event="upstream-unreachable")
        assert "CERTIFICATE_VERIFY_FAILED" in unreachable.note


@pytest.mark.requirement("DP-PROXY-32")
@pytest.mark.parametrize("sasl", MECHANISMS, ids=lambda each: each.mechanism)
@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("ends_here", [False, True])
async def test_each_mechanism(proxied: Proxied, sasl: Any, version: int, ends_here: bool) -> None:
    require_module("scramp")
    where = {"sasl": USERS}
    async with MockCluster(1, **({} if ends_here else where)) as mock:
        proxy = await proxied(mock, **(where if ends_here else {}))
        assert await asked(proxy, sasl, version) == [1]
        assert not any(b"secret" in each.raw for each in proxy.journal)
        principals = [each.note for each in proxy.journal.select(event="authenticated")]
        assert principals == ([f"User:{sasl.username}"] if ends_here else [])
        seen = {each.api_key for each in mock.journal.select(direction="request")}
        assert (17 in seen) is not ends_here


@pytest.mark.requirement("DP-PROXY-32")
@pytest.mark.parametrize("ends_here", [False, True])
@pytest.mark.parametrize("version", [0, 1])
async def test_wrong_credentials(proxied: Proxied, version: int, ends_here: bool) -> None:
    where = {"sasl": USERS}
    async with MockCluster(1, **({} if ends_here else where)) as mock:
        proxy = await proxied(mock, **(where if ends_here else {}))
        wrong = SaslExchangeError if version == 0 else SaslAuthenticationError
        with pytest.raises(wrong):
            await asked(proxy, SaslPlain("alice", "wrong"), version)
        with pytest.raises(UnsupportedSaslMechanismError):
            await asked(proxy, _Other(), version)
        # Nothing passes before.
        with pytest.raises(KprotoError):
            await asked(proxy, None)


class _Other:
    mechanism = "OAUTHBEARER"

    def exchange(self) -> Any:
        return lambda _received: None


@pytest.mark.requirement("DP-PROXY-32")
async def test_the_proxy_has_credentials_of_its_own(proxied: Proxied) -> None:
    async with MockCluster(2, sasl=USERS) as mock:
        proxy = await proxied(mock, sasl=["PLAIN:carol:c-secret"], upstream_sasl=PLAIN)
        # It knows the brokers, since it could ask.
        assert sorted(proxy.addresses) == [1, 2]
        assert await asked(proxy, SaslPlain("carol", "c-secret")) == [1, 2]
        with pytest.raises(SaslAuthenticationError):
            await asked(proxy, PLAIN)
        names = {each.note for each in mock.journal.select(event="authenticated")}
        assert names == {"User:alice"}


@pytest.mark.requirement("DP-PROXY-32")
def test_sessions_with_an_end_are_refused() -> None:
    with pytest.raises(ClusterError, match="unknown SASL mechanism 'OAUTHBEARER'"):
        ProxyOptions(upstream=[("localhost", 1)], sasl=["OAUTHBEARER"])


@pytest.mark.requirement("DP-PROXY-32")
async def test_open_to_all_has_to_be_said(proxied: Proxied) -> None:
    with pytest.raises(ClusterError, match="rights: give --sasl or --open-to-all"):
        ProxyOptions(upstream=[("a", 1)], upstream_sasl=PLAIN)
    async with MockCluster(1, sasl=USERS) as mock:
        proxy = await proxied(mock, upstream_sasl=PLAIN, open_to_all=True)
        assert await asked(proxy, None) == [1]


@pytest.mark.requirement("DP-PROXY-32", "DP-PROXY-33")
async def test_credentials_that_the_upstream_refuses(proxied: Proxied) -> None:
    async with MockCluster(1, sasl=USERS) as mock:
        proxy = await proxied(mock, upstream_sasl=SaslPlain("alice", "wrong"), open_to_all=True)
        async with dial(proxy) as wire:
            assert await wire.closed() == b""
        (unreachable,) = proxy.journal.select(event="upstream-unreachable")
        assert "Invalid username or password" in unreachable.note


@pytest.mark.requirement("DP-PROXY-56")
async def test_it_says_where_sasl_ends(proxied: Proxied) -> None:
    async with MockCluster(1) as mock:
        for options, text in (
            ({}, "SASL passes through"),
            ({"sasl": USERS}, "SASL ends here: clients authenticate to the proxy (PLAIN, SCRAM-"),
            ({"upstream_sasl": PLAIN, "open_to_all": True}, "SASL is the proxy's: it uses PLAIN"),
        ):
            proxy = await proxied(mock, **options)
            (notice,) = (each for each in proxy.notices() if "SASL" in each)
            assert notice.startswith(text)
