"""TLS on the mock's listeners, who a client certificate says somebody is, and the command line."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest

from kproto.client import Admin, BrokerError, SaslPlain, SaslScram
from mockbroker import MockCluster
from mockbroker.serving import listeners
from mockbroker.simulation.security.authorizer import Authorizer
from mockbroker.simulation.security.policy import certificate_principal
from tests.mockbroker.control.test_command_line import run_here, serving
from tests.mockbroker.wire import PATIENCE, Wire, connect
from tests.support.requests import request_of

PEM = Path(__file__).parents[3] / "client" / "localhost.pem"
SOON = 20_000


def server_context(*, mutual: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    if mutual:
        context.load_verify_locations(PEM)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(*, certificate: bool = False) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(PEM))
    if certificate:
        context.load_cert_chain(PEM)
    return context


async def test_every_listener_speaks_tls_also_when_opened_again() -> None:
    async with MockCluster(2, topics=["foo=1,2"], tls=server_context()) as mock:
        await mock.stop_broker(2)
        await mock.start_broker(2)
        for address in mock.addresses.values():
            async with Admin(address, ssl=client_context(), default_timeout_ms=SOON) as admin:
                assert await admin.list_partition_reassignments() == {}


async def test_plaintext_to_a_tls_port_is_closed_on() -> None:
    async with MockCluster(1, tls=server_context()) as mock, connect(mock) as wire:
        wire.send(wire.frame(request_of("ApiVersions"), 0))
        await wire.closed()  # bounded, and it may have said a TLS alert
        assert not mock.journal.select(direction="request")


async def test_silence_on_a_tls_port_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "TLS_HANDSHAKE_SECONDS", 0.05)
    async with MockCluster(1, tls=server_context()) as mock, connect(mock) as wire:
        await wire.closed()
        assert mock.connections(1) == 0


async def test_stopping_does_not_wait_for_who_never_shakes_hands() -> None:
    mock = MockCluster(1, tls=server_context())
    await mock.start()
    async with connect(mock):
        async with asyncio.timeout(PATIENCE):
            await mock.stop()


# ---- client certificates -------------------------------------------------------------------------

SUBJECT = (
    (("countryName", "DE"),),
    (("organizationName", "Ex, Inc."),),
    (("organizationalUnitName", "a+b"), ("userId", "7")),
    (("commonName", " #alice "),),
)


def test_a_distinguished_name_as_rfc_2253_has_it() -> None:
    assert certificate_principal(SUBJECT) == (r"User:CN=\ \#alice\ ,OU=a\+b+UID=7,O=Ex\, Inc.,C=DE")


@pytest.mark.parametrize(
    ("name", "shown"),
    [("#x", r"\#x"), ("a=b", r"a\=b"), ('a\\b"c', r"a\\b\"c"), ("pâté", "pâté"), ("a  b", "a  b"),
     (" ", r"\ "), ("  a b  ", r"\ \ a b\ \ "), ("a#b", r"a\#b"), ("a;b<c>", r"a\;b\<c\>")],
)  # fmt: skip
def test_a_name_as_java_prints_it(name: str, shown: str) -> None:
    """As ``X500Principal.getName()`` of JDK 17 does."""
    assert certificate_principal([[("commonName", name)]]) == f"User:CN={shown}"


async def ask_as(mock: MockCluster, *, certificate: bool, sasl: Any = None) -> str:
    """ "ok", or the name of the broker's error."""
    async with Admin(
        mock.bootstrap, ssl=client_context(certificate=certificate), sasl=sasl,
        default_timeout_ms=SOON,
    ) as admin:  # fmt: skip
        try:
            await admin.list_partition_reassignments()
        except BrokerError as error:
            return error.name
        return "ok"


REFUSED = "CLUSTER_AUTHORIZATION_FAILED"


@pytest.mark.parametrize(("boss", "said"), [("User:CN=localhost", "ok"), ("User:other", REFUSED)])
async def test_the_owner_of_a_client_certificate_is_the_principal(boss: str, said: str) -> None:
    authorizer = Authorizer(frozenset({boss}))
    async with MockCluster(1, tls=server_context(mutual=True), authorizer=authorizer) as mock:
        assert await ask_as(mock, certificate=True) == said


async def test_who_authenticates_by_sasl_as_well_is_that_user() -> None:
    authorizer = Authorizer(frozenset({"User:alice"}))
    async with MockCluster(
        1, tls=server_context(mutual=True), sasl=["PLAIN:alice:pencil"], authorizer=authorizer
    ) as mock:
        assert await ask_as(mock, certificate=True, sasl=SaslPlain("alice", "pencil")) == "ok"


async def ask_without_certificate(mock: MockCluster) -> None:
    host, port = mock.bootstrap.split(":")
    reader, writer = await asyncio.open_connection(
        host, int(port), ssl=client_context(), server_hostname="localhost"
    )
    try:
        await Wire(reader, writer, mock.dialect).ask("ApiVersions", 0)
    finally:
        writer.close()


async def test_without_the_certificate_that_is_asked_for() -> None:
    async with MockCluster(1, tls=server_context(mutual=True)) as mock:
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await ask_without_certificate(mock)
        assert not mock.journal.select(direction="request")


# ---- the command line ----------------------------------------------------------------------------


@pytest.mark.slow
async def test_serve_with_all_of_it() -> None:
    options = (
        "--sasl", "PLAIN:alice:pencil", "--sasl", "SCRAM-SHA-256:admin:secret",
        "--tls", str(PEM), "--authorizer", "--super-user", "User:admin",
    )  # fmt: skip
    found = []
    with serving("--brokers", "1", *options) as (_, ready):
        for sasl in (SaslPlain("alice", "pencil"), SaslScram("SCRAM-SHA-256", "admin", "secret")):
            async with Admin(
                ready["bootstrap"], ssl=client_context(), sasl=sasl, default_timeout_ms=SOON
            ) as admin:
                try:
                    await admin.list_partition_reassignments()
                    found.append("ok")
                except BrokerError as error:
                    found.append(error.name)
    assert found == [REFUSED, "ok"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--sasl", "GSSAPI:a:hidden"], "unknown SASL mechanism 'GSSAPI'"),
        (["--super-user", "User:a"], "--super-user needs --authorizer"),
        (["--allow-everyone-if-no-acl-found"], "needs --authorizer"),
        (["--authorizer", "--super-user", "a"], "use TYPE:NAME, as in User:admin"),
        (["--tls", "no/such.pem"], "--tls: 'no/such.pem' cannot be used"),
        (["--tls", str(Path(__file__))], "cannot be used"),
        (["--tls", f"{PEM}:{Path(__file__)}"], "cannot be used"),
        (["--tls-client-ca", str(PEM)], "--tls-client-ca needs --tls"),
        (["--tls", str(PEM), "--tls-client-ca", "no/such"], "--tls-client-ca: 'no/such' cannot"),
    ],
)
def test_bad_usage(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here(["serve", *options]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert "hidden" not in error
