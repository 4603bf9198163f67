"""Signed tokens: the token endpoint, what a broker accepts, and clients that log in by both."""

import base64
import json
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kproto.errors import MissingExtraError
from mockbroker import MockCluster
from mockbroker.control import ControlServer
from mockbroker.control.oauth_routes import credentials
from mockbroker.errors import ClusterError
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.security.token_issuer import TokenIssuer
from tests.mockbroker.simulation.security.bearer_tokens import first_message, part, token
from tests.mockbroker.wire import connect
from tests.support.requests import request_of
from tests.support.toolchain import require, require_module
from tests.support.waiting import in_thread
from tests.tools.kafka_tools import KafkaTools


@pytest.fixture(autouse=True)
def pyjwt() -> Any:
    return require_module("jwt")


CLIENTS = ["alice:pencil:read write", "bob:b%:read"]
HOUR_MS = 3_600_000
SKEW_MS = 30_000
SECONDS = 60
FORM = {"grant_type": "client_credentials"}
JAVA_RELEASE = "4.3.1"


def basic(client_id: str, secret: str) -> str:
    return "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()


ALICE = basic("alice", "pencil")


def answered(
    issuer: TokenIssuer, form: Mapping[str, str], authorization: str = ALICE, now_ms: int = 0
) -> tuple[int, dict[str, Any]]:
    return issuer.grant(form, *credentials(form, authorization), now_ms)


def granted(issuer: TokenIssuer, now_ms: int = 0, **form: str) -> str:
    status, document = answered(issuer, {**FORM, **form}, now_ms=now_ms)
    assert status == 200, document
    text: str = document["access_token"]
    return text


def claims(text: str) -> Any:
    section = text.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(section + "=" * (-len(section) % 4)))


# ---- the endpoint --------------------------------------------------------------------------------


@pytest.mark.requirement("OAUTH-15")
@pytest.mark.parametrize(
    ("form", "authorization", "status", "error"),
    [
        ({}, ALICE, 400, "invalid_request"),
        ({}, "", 400, "invalid_request"),
        (FORM, "", 401, "invalid_client"),
        (FORM, basic("alice", "wrong"), 401, "invalid_client"),
        (FORM, basic("carol", "pencil"), 401, "invalid_client"),
        (FORM, "Basic !", 401, "invalid_client"),
        (FORM, "Basic " + base64.b64encode(b"\xff").decode(), 401, "invalid_client"),
        ({"grant_type": "password"}, basic("alice", "wrong"), 401, "invalid_client"),
        ({"grant_type": "password", "scope": "x"}, ALICE, 400, "unsupported_grant_type"),
        ({**FORM, "scope": "read admin"}, ALICE, 400, "invalid_scope"),
    ],
)
def test_grants_that_are_refused(form, authorization, status, error):
    assert answered(TokenIssuer(CLIENTS), form, authorization) == (status, {"error": error})


@pytest.mark.requirement("OAUTH-15")
def test_what_a_token_says() -> None:
    issuer = TokenIssuer(CLIENTS, "expectedAudience=kafka other,tokenLifetimeSeconds=60")
    status, document = answered(issuer, {**FORM, "scope": "read"}, now_ms=5_500)
    text = document.pop("access_token")
    assert (status, document) == (
        200, {"token_type": "Bearer", "expires_in": 60, "scope": "read"}
    )  # fmt: skip
    assert claims(text) == {
        "iss": "mockbroker", "sub": "alice", "iat": 5, "exp": 65, "scope": ["read"],
        "aud": ["kafka", "other"],
    }  # fmt: skip
    assert claims(granted(issuer))["scope"] == ["read", "write"]
    assert claims(granted(issuer, audience="x"))["aud"] == ["x"]
    assert "aud" not in claims(granted(TokenIssuer(CLIENTS)))
    # Credentials in the form, and encoded ones in the header.
    status, _ = answered(issuer, {**FORM, "client_id": "alice", "client_secret": "pencil"}, "")
    assert status == 200
    assert answered(issuer, FORM, basic("bob", "b%25"))[0] == 200


@pytest.mark.parametrize("text", ["alice", "alice:", ":x", "a b:c"])
def test_what_is_no_client(text: str) -> None:
    with pytest.raises(ClusterError, match="ID:SECRET"):
        TokenIssuer([text])


@pytest.mark.parametrize(
    "text", ["requiredScope=a", "expectedAudience", "expectedIssuer=", "clockSkewSeconds=-1"]
)
def test_what_is_no_option(text: str) -> None:
    with pytest.raises(ClusterError):
        TokenIssuer(CLIENTS, text)


# ---- what a broker accepts -----------------------------------------------------------------------


def reason(issuer: TokenIssuer, text: str, now_ms: int = 0) -> str | None:
    return issuer.checked(text, now_ms).reason


@pytest.mark.requirement("OAUTH-12")
def test_a_token_has_the_signature_of_the_endpoint() -> None:
    issuer = TokenIssuer(CLIENTS)
    good = granted(issuer)
    header, body, signature = good.split(".")
    assert reason(issuer, good) is None
    for text in ("", "x", f"{header}.{body}", f"{header}.{body}.", f"{good}.{signature}"):
        assert reason(issuer, text) == "it does not have three sections", text
    other = part({**claims(good), "sub": "admin"})
    for text in (
        token(),
        f"{header}.{other}.{signature}",
        f"{header}.{body}.{signature[::-1]}",
        f"{part({'alg': 'none'})}.{body}.{signature}",
        f"{part({'alg': 'HS256'})}.{body}.{signature}",
        granted(TokenIssuer(CLIENTS)),
    ):
        expected = "it has no signature of the token endpoint"
        if text.endswith("."):
            expected = "it does not have three sections"
        assert reason(issuer, text) == expected, text


@pytest.mark.requirement("OAUTH-13")
def test_a_token_expires_by_the_clock_with_a_skew() -> None:
    issuer = TokenIssuer(CLIENTS)
    good = granted(issuer)
    assert reason(issuer, good, HOUR_MS + SKEW_MS - 1) is None
    assert reason(issuer, good, HOUR_MS + SKEW_MS) == "it has expired"
    strict = TokenIssuer(CLIENTS, "clockSkewSeconds=0,tokenLifetimeSeconds=1")
    short = granted(strict)
    assert [reason(strict, short, now_ms) for now_ms in (999, 1000)] == [None, "it has expired"]


@pytest.mark.requirement("OAUTH-14")
def test_the_audience_and_the_issuer() -> None:
    other = "it is for another audience"
    for expected, audience, found in (
        ("kafka", "kafka", None),
        ("kafka x", "x y", None),
        ("kafka", "other", other),
        (None, "kafka", None),
        (None, "", None),
    ):
        options = "" if expected is None else f"expectedAudience={expected}"
        issuer = TokenIssuer(CLIENTS, options)
        assert reason(issuer, granted(issuer, audience=audience)) == found
    for release, found in (
        ((4, 3), "it has an audience, and none is expected"), ((4, 4), None),
    ):  # fmt: skip
        issuer = TokenIssuer(CLIENTS, release=Release(release))
        assert reason(issuer, granted(issuer)) is None
        assert reason(issuer, granted(issuer, audience="kafka")) == found
    # A token without any audience is not for a broker that expects one.
    issuer = TokenIssuer(CLIENTS)
    text = granted(issuer)
    issuer.validator = TokenIssuer(CLIENTS, "expectedAudience=kafka").validator
    assert issuer.checked(text, 0).reason == other
    for name, found in (("mockbroker", None), ("other", "it is of another issuer")):
        issuer = TokenIssuer(CLIENTS, f"expectedIssuer={name}")
        assert reason(issuer, granted(issuer)) == found


@pytest.mark.requirement("OAUTH-12", "OAUTH-13")
async def test_a_session_ends_with_the_token() -> None:
    async with MockCluster(
        1, profile="kafka-4.4", clock="manual", oauth_clients=CLIENTS, topics=["foo:1:1"]
    ) as mock:
        assert mock.token_issuer is not None
        text = granted(mock.token_issuer, mock.cluster.timers.now_ms)
        async with connect(mock) as wire:
            answer = await wire.ask("SaslHandshake", 1, mechanism="PLAIN")
            assert (answer.error_code, answer.mechanisms) == (33, ["OAUTHBEARER"])
        async with connect(mock) as wire:
            await wire.ask("SaslHandshake", 1, mechanism="OAUTHBEARER")
            answer = await wire.ask("SaslAuthenticate", 2, auth_bytes=first_message(token()))
            assert (answer.error_code, answer.auth_bytes) == (0, b'{"status":"invalid_token"}')
            answer = await wire.ask("SaslAuthenticate", 2, auth_bytes=b"\x01")
            assert (answer.error_code, answer.error_message) == (58, '{"status":"invalid_token"}')
        async with connect(mock) as wire:
            await wire.ask("SaslHandshake", 1, mechanism="OAUTHBEARER")
            answer = await wire.ask("SaslAuthenticate", 2, auth_bytes=first_message(text))
            assert (answer.error_code, answer.session_lifetime_ms) == (0, HOUR_MS)
            assert (await wire.ask("Metadata", 9, topics=None)).topics[0].name == "foo"
            mock.advance(HOUR_MS + 1)
            wire.send(wire.frame(request_of("Metadata", topics=None), 9))
            assert await wire.closed() == b""
        notes = [each.note for each in mock.journal.select(event="authenticated")]
        assert notes == ["User:alice"]
        assert not any(text.encode() in entry.raw for entry in mock.journal)


# ---- over HTTP -----------------------------------------------------------------------------------


@asynccontextmanager
async def served(
    *sasl: str, token: str | None = None, clients: list[str] = CLIENTS
) -> AsyncIterator[tuple[MockCluster, str]]:
    """A cluster whose clock is that of its clients, and the URL of its control port."""
    async with MockCluster(
        1, profile="kafka-4.4", topics=["foo:1:1"], sasl=sasl, oauth_clients=clients
    ) as mock:
        control = ControlServer(mock, port=0, token=token)
        await control.start()
        try:
            yield mock, control.url
        finally:
            await control.stop()


def fetched(url: str, form: Mapping[str, str] | None = None, **headers: str) -> tuple[int, Any]:
    data = None if form is None else urllib.parse.urlencode(form).encode()
    request = urllib.request.Request(url, data, headers)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.mark.requirement("OAUTH-15")
async def test_the_routes_need_no_control_token_and_check_the_client(pyjwt: Any) -> None:
    async with served(token="control") as (mock, url):
        ask = partial(fetched, f"{url}/oauth/token", FORM, Authorization=ALICE)
        status, document = await in_thread(ask)
        assert (status, document["scope"]) == (200, "read write")
        status, keys = await in_thread(partial(fetched, f"{url}/oauth/jwks.json"))
        assert status == 200
        key = pyjwt.PyJWK(keys["keys"][0])
        found = pyjwt.decode(document["access_token"], key, algorithms=["RS256"])
        assert found["sub"] == "alice"
        assert abs(found["iat"] - mock.cluster.timers.now_ms / 1000) < SECONDS
        ask = partial(fetched, f"{url}/clusters/1/oauth/token", FORM)
        assert await in_thread(ask) == (401, {"error": "invalid_client"})
        status, _ = await in_thread(partial(fetched, f"{url}/state"))
        assert status == 401


async def test_without_clients_there_is_no_endpoint() -> None:
    async with served(clients=[]) as (_, url):
        for path, form in (("/oauth/token", FORM), ("/oauth/jwks.json", None)):
            status, document = await in_thread(partial(fetched, url + path, form))
            assert (status, "no OAuth clients" in document["error"]) == (404, True)


@pytest.mark.slow
@pytest.mark.requirement("OAUTH-12")
async def test_librdkafka_logs_in_by_oidc() -> None:
    package: Any = require_module("confluent_kafka")
    admin: Any = require_module("confluent_kafka.admin")

    def topics(bootstrap: str, url: str, secret: str, timeout: float) -> list[str]:
        client = admin.AdminClient(
            {
                "bootstrap.servers": bootstrap,
                "security.protocol": "sasl_plaintext",
                "sasl.mechanisms": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "alice",
                "sasl.oauthbearer.client.secret": secret,
                "sasl.oauthbearer.scope": "read",
                "sasl.oauthbearer.token.endpoint.url": f"{url}/oauth/token",
                "log_level": 0,
            }
        )
        return list(client.list_topics(timeout=timeout).topics)

    async with served("OAUTHBEARER:expectedAudience=kafka") as (mock, url):
        work = partial(topics, mock.bootstrap, url, "pencil", SECONDS / 2)
        assert await in_thread(work) == ["foo"]
        notes = [each.note for each in mock.journal.select(event="authenticated")]
        assert set(notes) == {"User:alice"}
        with pytest.raises(package.KafkaException):
            await in_thread(partial(topics, mock.bootstrap, url, "wrong", 2))
        assert len(mock.journal.select(event="authenticated")) == len(notes)


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.requirement("OAUTH-12")
async def test_java_logs_in_by_its_token_endpoint(tmp_path: Path) -> None:
    require("java", "maven")
    config = tmp_path / "client.properties"
    package = "org.apache.kafka.common.security.oauthbearer"

    def write(url: str, secret: str) -> None:
        config.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
            f"sasl.oauthbearer.token.endpoint.url={url}/oauth/token\n"
            f"sasl.login.callback.handler.class={package}.OAuthBearerLoginCallbackHandler\n"
            f"sasl.jaas.config={package}.OAuthBearerLoginModule required "
            f'clientId="alice" clientSecret="{secret}" scope="read";\n'
        )

    async with served("OAUTHBEARER:expectedAudience=kafka") as (mock, url):
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}/oauth/token"
        arguments = ("--bootstrap-server", mock.bootstrap, "--list", "--command-config")
        with KafkaTools(JAVA_RELEASE, [allowed]) as tools:
            write(url, "pencil")
            outcome = await tools.run("topics", *arguments, str(config))
            assert (outcome.code, outcome.out.split()) == (0, ["foo"]), outcome
            notes = {each.note for each in mock.journal.select(event="authenticated")}
            assert notes == {"User:alice"}
            write(url, "wrong")
            outcome = await tools.run("topics", *arguments, str(config))
            assert outcome.code != 0
            assert "invalid_client" in outcome.out + outcome.err


def test_without_pyjwt_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(MissingExtraError, match=r"need PyJWT: pip install 'kproto\[oauth\]'"):
        TokenIssuer(CLIENTS)
