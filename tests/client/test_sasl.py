"""Authentication and TLS: Admin against the mock, and against a broker that does it badly. The
broker's side of SCRAM is scramp's, as the client's is; the example of RFC 7677 pins both to the
standard."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from scramp import ScramClient

import kproto
from kproto.client import (
    Admin,
    BrokerError,
    RequestTimeoutError,
    SaslAuthenticationError,
    SaslExchangeError,
    SaslPlain,
    SaslScram,
    UnsupportedSaslMechanismError,
)
from kproto.client.sasl import MOST_ITERATIONS, SCRAM_MECHANISMS
from kproto.connection import RequestReceived, SaslTokenReceived
from kproto.messages import SaslAuthenticateResponse, SaslHandshakeResponse
from kproto.schema.versions import Versions
from mockbroker import MockCluster
from mockbroker.profiles import profile
from mockbroker.simulation.security.sasl import SaslRefusedError, SaslUsers
from tests.client.broker import Broker, serving
from tests.client.fake import answering

SOON = 20_000
PEM = Path(__file__).with_name("localhost.pem")
SERVED = {3: Versions(0, 13), 17: Versions(0, 1), 18: Versions(0, 5), 36: Versions(0, 2),
          46: Versions(0, 0)}  # fmt: skip
USERS = {"alice": "pencil", "b=o,b": "pâté"}
ENABLED = ["PLAIN", *SCRAM_MECHANISMS]
PASSWORDS = [f"{each}:{user}:{word}" for each in ENABLED for user, word in USERS.items()]


def seen_keys(mock: MockCluster) -> list[int]:
    """The api keys asked for, in order; -1 for a raw token."""
    requests = mock.journal.select(direction="request")
    return [-1 if entry.api_key is None else entry.api_key for entry in requests]


def secured(tls: ssl.SSLContext | None = None, served: dict[int, Versions] = SERVED) -> MockCluster:
    """A broker that authenticates, and serves no more than these."""
    narrowed: dict[int, Versions | None] = dict.fromkeys(profile("kafka-4.4").versions)
    return MockCluster(1, profile="kafka-4.4", sasl=PASSWORDS, tls=tls, apis={**narrowed, **served})


@asynccontextmanager
async def admin_of(
    sasl: Any,
    *,
    served: dict[int, Versions] = SERVED,
    tls: ssl.SSLContext | None = None,
    **options: Any,
) -> AsyncIterator[tuple[Admin, MockCluster]]:
    """A client of it."""
    async with (
        secured(tls, served) as mock,
        Admin(
            mock.bootstrap, default_timeout_ms=SOON, retry_backoff_ms=1, sasl=sasl, **options
        ) as admin,
    ):
        yield admin, mock


class BadBroker:
    """One that says no, or that it knows the password, and leaves it to the client to go."""

    def __init__(self) -> None:
        self.connections: list[Broker] = []
        self._steps: dict[Broker, Any] = {}

    def __call__(self, broker: Broker, event: Any) -> None:
        rows = {key: (each.lowest, each.highest) for key, each in SERVED.items()}
        match event:
            case RequestReceived(api=api, body=body) if api.api_key == 17:
                self.connections.append(broker)
                self._steps[broker] = SaslUsers(PASSWORDS).exchange(body.mechanism)
                broker.respond(event, SaslHandshakeResponse(error_code=0, mechanisms=ENABLED))
            case SaslTokenReceived(token=token):
                broker.transport.write(broker.wire.send_sasl_token(self._step(broker, token)))
            case RequestReceived(api=api, body=body) if api.api_key == 36:
                try:
                    answer = self._step(broker, body.auth_bytes)
                except SaslRefusedError as error:
                    said = SaslAuthenticateResponse(error_code=58, error_message=str(error))
                else:
                    said = SaslAuthenticateResponse(error_message=None, auth_bytes=answer)
                broker.respond(event, said)
            case _:
                answering({}, kproto.dialect(), rows)(broker, event)

    def _step(self, broker: Broker, token: bytes) -> bytes:
        answer, user = self._steps[broker](token)
        return b"v=" + b"A" * 43 + b"=" if user is not None else bytes(answer)


@asynccontextmanager
async def badly_served(sasl: Any, **options: Any) -> AsyncIterator[tuple[Admin, BadBroker]]:
    broker = BadBroker()
    async with (
        serving(broker, sasl_required=True) as (port, _),
        Admin(f"127.0.0.1:{port}", default_timeout_ms=SOON, sasl=sasl, **options) as admin,
    ):
        yield admin, broker


def credentials(mechanism: str, user: str, password: str) -> Any:
    if mechanism == "PLAIN":
        return SaslPlain(user, password)
    return SaslScram(mechanism, user, password)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mechanism", ENABLED)
@pytest.mark.parametrize("handshake", [0, 1, None])
async def test_the_right_password(mechanism: str, user: str, handshake: int | None) -> None:
    sasl = credentials(mechanism, user, USERS[user])
    async with admin_of(sasl, sasl_handshake_version=handshake) as (admin, mock):
        assert await admin.list_partition_reassignments() == {}
        assert (await admin.describe_cluster()).controller_id == 1
        tokens = 1 if mechanism == "PLAIN" else 2
        key = -1 if handshake == 0 else 36
        assert seen_keys(mock)[:-3] == [18, 17] + [key] * tokens
        assert seen_keys(mock)[-3:] == [3, 46, 3]


@pytest.mark.parametrize("mechanism", ENABLED)
@pytest.mark.parametrize("user", ["alice", "mallory"])
async def test_the_wrong_password_is_not_tried_twice(mechanism: str, user: str) -> None:
    sasl = credentials(mechanism, user, "wrong")
    async with admin_of(sasl) as (admin, mock):
        with pytest.raises(SaslAuthenticationError, match="Authentication failed"):
            await admin.list_partition_reassignments()
        assert seen_keys(mock).count(17) == 1
    # In raw tokens a broker has no way to say so: it closes.
    async with admin_of(sasl, sasl_handshake_version=0) as (admin, mock):
        with pytest.raises(
            SaslExchangeError,
            match=rf"^{mechanism}: the broker closed .* the credentials may be wrong$",
        ):
            await admin.list_partition_reassignments()
        assert seen_keys(mock).count(17) == 1


async def test_a_refused_connection_is_given_up() -> None:
    async with badly_served(SaslPlain("alice", "wrong")) as (admin, broker):
        with pytest.raises(SaslAuthenticationError):
            await admin.list_topics()
        (refused,) = broker.connections
        async with asyncio.timeout(SOON / 1000):
            while not refused.transport.is_closing():
                await asyncio.sleep(0.001)


async def test_a_broker_before_sasl_authenticate_gets_raw_tokens() -> None:
    old = {key: versions for key, versions in SERVED.items() if key != 36}
    async with admin_of(SaslPlain("alice", "pencil"), served=old) as (admin, mock):
        assert await admin.list_partition_reassignments() == {}
        assert seen_keys(mock) == [18, 17, -1, 3, 46]
        (handshake,) = mock.journal.select(api=17, direction="request")
        assert handshake.api_version == 0


async def test_a_mechanism_the_broker_has_not() -> None:
    class Gssapi:
        mechanism = "GSSAPI"

        def exchange(self) -> Any:
            return lambda _token: None

    async with admin_of(Gssapi()) as (admin, _):
        with pytest.raises(
            UnsupportedSaslMechanismError,
            match="GSSAPI is not enabled; the broker offers: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        ):
            await admin.list_topics()


async def test_a_listener_without_sasl() -> None:
    async with (
        MockCluster(brokers=1) as mock,
        Admin(mock.bootstrap, sasl=SaslPlain("alice", "pencil")) as admin,
    ):
        with pytest.raises(BrokerError, match="not valid given the current SASL state") as caught:
            await admin.list_topics()
        assert caught.value.name == "ILLEGAL_SASL_STATE"


@pytest.mark.parametrize("handshake", [0, 1])
async def test_a_broker_that_does_not_know_the_password_is_found_out(handshake: int) -> None:
    sasl = SaslScram("SCRAM-SHA-256", "alice", "pencil")
    async with badly_served(sasl, sasl_handshake_version=handshake) as (admin, _):
        with pytest.raises(SaslExchangeError, match="the broker's token is wrong"):
            await admin.list_topics()


def test_what_cannot_be() -> None:
    with pytest.raises(ValueError, match="NUL"):
        SaslPlain("a\0b", "c")
    with pytest.raises(ValueError, match=r"no mechanism 'SCRAM-SHA-1'; Kafka has SCRAM-SHA-256"):
        SaslScram("SCRAM-SHA-1", "a", "b")
    for secret in (SaslPlain("user", "hidden"), SaslScram("SCRAM-SHA-512", "user", "hidden")):
        assert "hidden" not in repr(secret)
        assert "user" in repr(secret)
    with pytest.raises(SaslExchangeError, match="SCRAM-SHA-256"):
        SaslScram("SCRAM-SHA-256", "", "b").exchange()


def test_the_example_of_rfc_7677(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokens of section 3, with its nonce in place of a random one."""
    import scramp

    def fixed(*arguments: Any) -> Any:
        return ScramClient(*arguments, c_nonce="rOprNGfwEbeRWgbNEkqO")

    monkeypatch.setattr(scramp, "ScramClient", fixed)
    exchange = SaslScram("SCRAM-SHA-256", "user", "pencil").exchange()
    assert exchange(b"") == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = b"rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert exchange(b"r=" + nonce + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096") == (
        b"c=biws,r=" + nonce + b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert exchange(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


# ---- TLS ----------------------------------------------------------------------------------------


def tls_server() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    return context


def test_a_broker_that_asks_for_too_many_iterations() -> None:
    """Refused before anything is hashed: seven digits alone take seconds."""
    for iterations in (MOST_ITERATIONS + 1, 9_999_999, 2**31 - 1):
        exchange = SaslScram("SCRAM-SHA-256", "alice", "pencil").exchange()
        nonce = (exchange(b"") or b"").partition(b"r=")[2]
        with pytest.raises(SaslExchangeError, match=r"iterations|must not be > 10000000"):
            exchange(b"r=%s1,s=QSXCR+Q6sej8bf92,i=%d" % (nonce, iterations))


async def test_tls_with_and_without_sasl() -> None:
    trusting = ssl.create_default_context(cafile=PEM)
    sasl = SaslScram("SCRAM-SHA-512", "alice", "pencil")
    async with admin_of(sasl, tls=tls_server(), ssl=trusting) as (admin, mock):
        assert await admin.list_partition_reassignments() == {}
        assert 36 in seen_keys(mock)
    async with (
        MockCluster(1, tls=tls_server()) as mock,
        Admin(mock.bootstrap, ssl=trusting, default_timeout_ms=SOON) as admin,
    ):
        assert await admin.list_partition_reassignments() == {}


async def test_a_certificate_nobody_vouches_for_is_refused_at_once() -> None:
    async with admin_of(SaslPlain("alice", "pencil"), tls=tls_server(), ssl=True) as (admin, mock):
        with pytest.raises(ssl.SSLCertVerificationError):
            await admin.list_partition_reassignments()
        assert seen_keys(mock) == []


async def test_without_tls_where_the_broker_wants_it() -> None:
    async with admin_of(SaslPlain("alice", "pencil"), tls=tls_server()) as (admin, _):
        with pytest.raises(RequestTimeoutError):
            await admin.list_topics(timeout_ms=400)


async def test_a_session_is_begun_anew_on_its_connection() -> None:
    """KIP-368; who asks at the same time waits for it."""
    async with (
        MockCluster(
            1, topics=["foo=1"], sasl=["PLAIN:alice:pencil"], clock="manual",
            broker_configs={"connections.max.reauth.ms": "60000"},
        ) as mock,
        Admin(mock.bootstrap, sasl=SaslPlain("alice", "pencil"), default_timeout_ms=SOON) as admin,
    ):  # fmt: skip
        for _ in range(3):
            assert await admin.list_topics() == ["foo"]
            mock.advance(59_000)
            for connection in admin._nodes._connections.values():
                assert not connection.session_due
                connection._session_due = 0.0
            several = [admin.list_topics() for _ in range(4)]
            assert await asyncio.gather(*several) == 4 * [["foo"]]
        assert not mock.journal.select(event="session-expired")
        sessions = mock.journal.select(event="authenticated")
        assert len(sessions) == 4
        assert len({entry.connection_id for entry in sessions}) == 1


async def test_a_session_that_cannot_be_begun_anew_ends_in_that_error() -> None:
    async with (
        MockCluster(
            1, topics=["foo=1"], sasl=["PLAIN:alice:pencil"],
            broker_configs={"connections.max.reauth.ms": "60000"},
        ) as mock,
        Admin(mock.bootstrap, sasl=SaslPlain("alice", "pencil"), default_timeout_ms=SOON) as admin,
    ):  # fmt: skip
        await admin.list_topics()
        (connection,) = admin._nodes._connections.values()
        connection._session_due = 0.0
        fault = mock.fault(api=36, error="SASL_AUTHENTICATION_FAILED")
        with pytest.raises(SaslAuthenticationError):
            await admin.list_topics()
        assert connection.closed
        mock.remove_fault(fault)
        assert await admin.list_topics() == ["foo"]
