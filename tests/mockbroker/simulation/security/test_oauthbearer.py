"""OAUTHBEARER on the mock's listeners: which tokens it accepts, and when sessions end. The same
messages are sent to a real Kafka by ``tests/real/test_secured.py``."""

import asyncio
import functools
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.framing import encode_frame
from mockbroker import MockCluster
from mockbroker.errors import ClusterError, UnreadableError
from mockbroker.simulation.security.oauthbearer import BearerExchange, bearer_validator, hide_bearer
from mockbroker.simulation.security.oauthbearer_rules import BearerValidator
from mockbroker.simulation.security.sasl import SaslRefusedError, redact
from tests.mockbroker.simulation.security.bearer_tokens import (
    ACCEPTED,
    DAMAGED,
    FAR,
    compact,
    first_message,
    part,
    token,
)
from tests.mockbroker.wire import Wire, connect
from tests.support.requests import request_of
from tests.support.toolchain import require, require_module
from tests.support.waiting import in_thread
from tests.tools.kafka_tools import KafkaTools

SCOPED = "OAUTHBEARER:requiredScope=kafka read"
GENERIC = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism "
    "OAUTHBEARER"
)
INVALID = b'{"status":"invalid_token"}'
INSUFFICIENT = b'{"status":"insufficient_scope", "scope":"[kafka, read]"}'
SECONDS = 30
MINUTE_MS = 60_000
JAVA_RELEASE = "4.3.1"


@asynccontextmanager
async def wired(
    sasl: str = SCOPED, profile: str = "kafka-4.4", most_ms: int | None = None
) -> AsyncIterator[tuple[MockCluster, Wire]]:
    configs = {} if most_ms is None else {"connections.max.reauth.ms": str(most_ms)}
    async with (
        MockCluster(
            1, topics=["foo=1"], sasl=[sasl, "PLAIN:alice:pencil"], clock="manual",
            profile=profile, broker_configs=configs,
        ) as mock,
        connect(mock) as wire,
    ):  # fmt: skip
        yield mock, wire


async def shake(wire: Wire, mechanism: str = "OAUTHBEARER", version: int = 1) -> Any:
    return await wire.ask("SaslHandshake", version, mechanism=mechanism)


async def say(wire: Wire, message: bytes, version: int = 2) -> Any:
    return await wire.ask("SaslAuthenticate", version, auth_bytes=message)


async def authenticate(wire: Wire, bearer: str, version: int = 2) -> Any:
    assert (await shake(wire)).error_code == 0
    return await say(wire, first_message(bearer), version)


async def refusal(bearer: str, sasl: str = SCOPED, now_ms: int = 0) -> Any:
    """What a token is answered: the error's JSON, or "closed"; None if it is accepted."""
    async with wired(sasl) as (mock, wire):
        mock.advance(now_ms)
        await shake(wire)
        wire.send(wire.frame(request_of("SaslAuthenticate", auth_bytes=first_message(bearer)), 2))
        try:
            frame = await wire.receive()
        except asyncio.IncompleteReadError:
            return "closed"
        _, answer = wire.codec.decode_response(frame, api_key=36, api_version=2)
        assert answer.error_code == 0
        if not answer.auth_bytes:
            return None
        found = await say(wire, b"\x01")
        assert (found.error_code, found.error_message) == (58, answer.auth_bytes.decode())
        assert await wire.closed() == b""
        return answer.auth_bytes


# ---- messages ------------------------------------------------------------------------------------


@pytest.mark.requirement("OAUTH-01")
@pytest.mark.parametrize("message", [each[0] for each in DAMAGED[:12] if b"Basic" not in each[0]])
async def test_first_messages_of_another_form(message: bytes) -> None:
    async with wired() as (_, wire):
        await shake(wire)
        answer = await say(wire, message)
        assert (answer.error_code, answer.error_message) == (58, GENERIC)
        assert await wire.closed() == b""


@pytest.mark.requirement("OAUTH-01")
@pytest.mark.parametrize("version", [0, 1])
async def test_another_scheme_closes(version: int) -> None:
    async with wired() as (_, wire):
        await shake(wire, version=version)
        message = first_message(token()).replace(b"Bearer", b"Basic")
        request = wire.frame(request_of("SaslAuthenticate", auth_bytes=message), 2)
        wire.send(request if version else encode_frame(message))
        assert await wire.closed() == b""


@pytest.mark.requirement("OAUTH-02")
async def test_after_an_error_the_client_may_try_another_token() -> None:
    async with wired() as (mock, wire):
        await shake(wire)
        for _ in range(2):
            assert (await say(wire, first_message(token(exp=-1)))).auth_bytes == INVALID
        assert (await say(wire, first_message(token()))).auth_bytes == b""
        assert await wire.lists("foo")
        (entry,) = mock.journal.select(event="authenticated")
        assert entry.note == "User:alice"


@pytest.mark.requirement("OAUTH-02")
async def test_the_error_comes_back_once_the_client_has_it() -> None:
    async with wired() as (_, wire):
        await shake(wire, version=0)
        wire.send(encode_frame(first_message(token(sub=5))))
        assert (await wire.receive())[4:] == INVALID
        wire.send(encode_frame(b"\x01"))
        assert await wire.closed() == b""


@pytest.mark.requirement("OAUTH-08")
@pytest.mark.parametrize("message", ACCEPTED)
async def test_accepted(message: bytes) -> None:
    async with wired() as (_, wire):
        await shake(wire)
        answer = await say(wire, message)
        assert (answer.error_code, answer.auth_bytes) == (0, b"")
        assert await wire.lists("foo")


@pytest.mark.requirement("OAUTH-08")
async def test_another_authorization_id() -> None:
    async with wired() as (_, wire):
        await shake(wire)
        answer = await say(wire, first_message(token(), "bob"))
        assert answer.error_code == 58
        assert answer.error_message == (
            "Authentication failed: Client requested an authorization id (bob) that is different "
            "from the token's principal name (alice)"
        )


# ---- tokens --------------------------------------------------------------------------------------


@pytest.mark.requirement("OAUTH-03")
@pytest.mark.parametrize(
    "bearer",
    [
        "a..",
        token().replace(".", "..", 1),
        f"{part({})}..",
        "x.y",
        f"{part({})}.{part({})}",
        token() + ".",
        compact("{"),
        compact({"exp": FAR, "sub": "x"}, "["),
        f"{token().split('.')[0]}.+.",
        compact('{"exp": NaN}'),
    ],
)
async def test_tokens_of_another_form(bearer: str) -> None:
    assert await refusal(bearer) == INVALID


@pytest.mark.requirement("OAUTH-04")
async def test_algorithms_and_signatures() -> None:
    assert await refusal(token({"alg": "HS256"})) == INVALID
    assert await refusal(token() + "c2ln") == INVALID
    assert await refusal(token({})) == "closed"
    assert await refusal(token([1])) == "closed"


@pytest.mark.requirement("OAUTH-05")
@pytest.mark.parametrize(
    "claims",
    [
        {"exp": None}, {"exp": "5"}, {"exp": True},
        {"sub": None}, {"sub": 5}, {"sub": ["alice"]}, {"sub": " \t"}, {"sub": {}},
        {"iat": "now"}, {"iat": False}, {"scope": 5},
    ],
    ids=str,
)  # fmt: skip
async def test_types_of_claims(claims: dict[str, Any]) -> None:
    assert await refusal(token(**claims), "OAUTHBEARER") == INVALID


@pytest.mark.requirement("OAUTH-06")
@pytest.mark.parametrize(
    ("claims", "now_ms", "accepted"),
    [
        ({"exp": 10}, 9_999, True),
        ({"exp": 10}, 10_000, False),
        ({"exp": 10, "iat": 5}, 4_999, False),
        ({"exp": 10, "iat": 5}, 5_000, True),
        ({"exp": 10, "iat": 10}, 10_500, False),
    ],
)
async def test_times(claims: dict[str, Any], now_ms: int, accepted: bool) -> None:
    expected = None if accepted else INVALID
    assert await refusal(token(**claims), "OAUTHBEARER", now_ms) == expected


@pytest.mark.requirement("OAUTH-06")
@pytest.mark.parametrize(
    ("claims", "now_ms", "accepted"),
    [
        ({"exp": 10}, 10_999, True),
        ({"exp": 10}, 11_000, False),
        ({"exp": 20, "iat": 10}, 9_000, True),
        ({"exp": 20, "iat": 10}, 8_999, False),
        ({"exp": 10, "iat": 10}, 10_000, False),
    ],
)
async def test_skew_of_clocks(claims: dict[str, Any], now_ms: int, accepted: bool) -> None:
    sasl = "OAUTHBEARER:allowableClockSkewMs=1000"
    assert await refusal(token(**claims), sasl, now_ms) == (None if accepted else INVALID)


@pytest.mark.requirement("OAUTH-07")
@pytest.mark.parametrize("scope", [None, "kafka", "kafka read", ["kafka"], [], ["Kafka", "read"]])
async def test_missing_scopes(scope: Any) -> None:
    assert await refusal(token(scope=scope)) == INSUFFICIENT
    assert await refusal(token(scope=scope), "OAUTHBEARER") is None


async def test_claims_of_other_names() -> None:
    sasl = "OAUTHBEARER:principalClaimName=user,scopeClaimName=scp,requiredScope=a"
    assert await refusal(token(user="bob", scp="a", sub=None), sasl) is None
    assert await refusal(token(scp="a"), sasl) == INVALID


@pytest.mark.parametrize(
    "text", ["x", "requiredScope", "requiredScope=", "allowableClockSkewMs=-1", "sub=alice"]
)
def test_what_is_no_option(text: str) -> None:
    with pytest.raises(ClusterError):
        bearer_validator(text)


# ---- sessions ------------------------------------------------------------------------------------


@pytest.mark.requirement("OAUTH-09")
@pytest.mark.parametrize(
    ("profile", "most_ms", "lifetime_ms"),
    [
        ("kafka-4.4", None, 2 * MINUTE_MS),
        ("kafka-4.4", 0, 2 * MINUTE_MS),
        ("kafka-4.4", MINUTE_MS, MINUTE_MS),
        ("kafka-4.4", 3 * MINUTE_MS, 2 * MINUTE_MS),
        ("kafka-3.3", None, 2 * MINUTE_MS),
        ("kafka-3.2", None, 0),
        ("kafka-3.2", MINUTE_MS, MINUTE_MS),
    ],
)
async def test_lifetimes(profile: str, most_ms: int | None, lifetime_ms: int) -> None:
    async with wired(profile=profile, most_ms=most_ms) as (mock, wire):
        answer = await authenticate(wire, token(exp=120))
        assert (answer.error_code, answer.session_lifetime_ms) == (0, lifetime_ms)
        mock.advance(lifetime_ms)
        assert await wire.lists("foo")
        mock.advance(10 * MINUTE_MS if lifetime_ms == 0 else 1)
        wire.send(wire.frame(request_of("Metadata", topics=None), 1))
        if lifetime_ms == 0:
            assert await wire.receive()
        else:
            assert await wire.closed() == b""
            assert mock.journal.select(event="session-expired")


@pytest.mark.requirement("OAUTH-09")
async def test_a_password_leaves_the_end_to_the_config() -> None:
    for most_ms, lifetime_ms in ((None, 0), (MINUTE_MS, MINUTE_MS)):
        async with wired(most_ms=most_ms) as (_, wire):
            await shake(wire, "PLAIN")
            assert (await say(wire, b"\0alice\0pencil")).session_lifetime_ms == lifetime_ms


@pytest.mark.requirement("OAUTH-09")
async def test_an_end_that_is_too_far_away() -> None:
    for profile, most_ms, closes in (
        ("kafka-4.4", None, True),
        ("kafka-4.4", MINUTE_MS, False),
        ("kafka-4.1", None, False),
    ):
        async with wired(profile=profile, most_ms=most_ms) as (mock, wire):
            await shake(wire)
            message = first_message(token(exp=10**17))
            wire.send(wire.frame(request_of("SaslAuthenticate", auth_bytes=message), 2))
            if not closes:
                assert await wire.receive()
                continue
            assert await wire.closed() == b""
            async with connect(mock) as raw:
                await shake(raw, version=0)
                raw.send(encode_frame(message))
                assert await raw.closed() == b""


@pytest.mark.requirement("OAUTH-09")
async def test_a_new_token_renews_the_session() -> None:
    async with wired() as (mock, wire):
        await authenticate(wire, token(exp=60))
        mock.advance(MINUTE_MS)
        assert (await authenticate(wire, token(exp=180))).session_lifetime_ms == 2 * MINUTE_MS
        mock.advance(2 * MINUTE_MS)
        assert await wire.lists("foo")
        answer = await authenticate(wire, token(exp=FAR, sub="bob"))
        assert (answer.error_code, answer.error_message) == (
            58,
            "Cannot change principals during re-authentication from User.alice: User.bob",
        )


# ---- GSSAPI, the journal -------------------------------------------------------------------------


@pytest.mark.requirement("OAUTH-10")
async def test_gssapi_is_refused_with_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    async with wired() as (_, wire):
        with caplog.at_level(logging.WARNING, "mockbroker.unserved"):
            answer = await shake(wire, "GSSAPI")
        assert (answer.error_code, answer.mechanisms) == (33, ["PLAIN", "OAUTHBEARER"])
        assert await wire.closed() == b""
    assert "GSSAPI needs a Kerberos realm" in caplog.text
    assert "choose one of PLAIN, OAUTHBEARER" in caplog.text


@pytest.mark.requirement("OAUTH-11")
async def test_no_token_is_written_down() -> None:
    async with wired() as (mock, wire):
        bearer = token()
        await authenticate(wire, bearer)
        async with connect(mock) as raw:
            await shake(raw, version=0)
            raw.send(encode_frame(first_message(bearer, "alice", traceId="x")))
            await raw.receive()
        assert [entry for entry in mock.journal if bearer.encode() in entry.raw] == []
        (entry,) = mock.journal.select(api=36, direction="request")
        assert entry.decode().body.auth_bytes == b"n,,\x01auth=Bearer [hidden]\x01\x01"
        (sent, _) = mock.journal.select(event="sasl-token")
        assert sent.raw[4:] == b"n,a=alice,\x01auth=Bearer [hidden]\x01traceId=x\x01\x01"


@pytest.mark.requirement("OAUTH-11")
@pytest.mark.parametrize(
    ("message", "kept"),
    [
        (b"secret", b"?"),
        (b"n,,\x01auth=Bearer secret\x01", b"?"),
        (b"n,,\x01token=secret\x01\x01", b"?"),
        (b"n,,\x01auth=secret\x01\x01", b"n,,\x01auth=?\x01\x01"),
        (b"n,,\x01auth=a secret\x01auth=secret\x01\x01", b"n,,\x01auth=a ?\x01auth=?\x01\x01"),
        (b"\x01", b"\x01"),
        (b"", b""),
    ],
)
def test_messages_of_another_form_are_hidden(message: bytes, kept: bytes) -> None:
    assert hide_bearer(message, b"?") == kept
    assert redact(message, "OAUTHBEARER") == kept.replace(b"?", b"[hidden]")


# ---- any bytes -----------------------------------------------------------------------------------

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
CLAIMS = st.dictionaries(st.sampled_from(["sub", "exp", "iat", "scope"]), DOCUMENTS)
BEARERS = st.builds(compact, CLAIMS | DOCUMENTS, st.just({"alg": "none"}) | DOCUMENTS)
MESSAGES = (
    st.binary(max_size=60)
    | st.just(b"\x01")
    | BEARERS.map(first_message)
    | st.builds(first_message, BEARERS, st.just("alice"))
)


@given(messages=st.lists(MESSAGES, min_size=1, max_size=3), now_ms=st.integers(0, 2**50))
def test_any_message_is_answered_or_refused(messages: list[bytes], now_ms: int) -> None:
    exchange = BearerExchange(BearerValidator(required_scope=("kafka",)))
    exchange.now_ms = now_ms
    for message in messages:
        try:
            answer, user = exchange.step(message)
        except SaslRefusedError as error:
            str(error).encode()
            return
        except UnreadableError:
            return
        if user is not None:
            assert user.strip()
            assert user.encode()
            assert exchange.expires_ms is not None
            assert exchange.expires_ms >= now_ms
            return
        assert json.loads(answer)["status"] in ("invalid_token", "insufficient_scope")


async def test_half_of_a_surrogate_pair() -> None:
    async with wired() as (mock, wire):
        await shake(wire)
        bearer = compact('{"sub": "a\\ud800", "exp": 4000000000, "scope": ["kafka", "read"]}')
        assert (await say(wire, first_message(bearer))).error_code == 0
        assert [entry.note for entry in mock.journal.select(event="authenticated")] == ["User:a?"]


# ---- clients -------------------------------------------------------------------------------------


@asynccontextmanager
async def current(sasl: str = "OAUTHBEARER:requiredScope=kafka") -> AsyncIterator[MockCluster]:
    """A cluster whose clock is that of its clients."""
    async with MockCluster(1, topics=["foo=1"], sasl=[sasl]) as mock:
        yield mock


def users(mock: MockCluster) -> set[str]:
    return {entry.note for entry in mock.journal.select(event="authenticated")}


async def test_kafka_python() -> None:
    kafka: Any = require_module("kafka")
    oauth: Any = require_module("kafka.net.sasl.oauth")

    class Provider(oauth.AbstractTokenProvider):  # type: ignore[misc]  # the package has no types
        def __init__(self, **_: Any) -> None:
            pass

        def token(self) -> str:
            return token()

        def extensions(self) -> dict[str, str]:
            return {"traceId": "x"}

    async with current() as mock:
        make = functools.partial(
            kafka.KafkaAdminClient,
            bootstrap_servers=mock.bootstrap,
            request_timeout_ms=10_000,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Provider(),
        )
        admin = await in_thread(make)
        assert await in_thread(admin.list_topics) == ["foo"]
        await in_thread(admin.close)
        assert users(mock) == {"User:alice"}


def librdkafka(mock: MockCluster, **config: Any) -> Any:
    admin: Any = require_module("confluent_kafka.admin")
    return admin.AdminClient(
        {
            "bootstrap.servers": mock.bootstrap,
            "security.protocol": "sasl_plaintext",
            "sasl.mechanisms": "OAUTHBEARER",
            "enable.sasl.oauthbearer.unsecure.jwt": True,
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in config.items()},
        }
    )


@pytest.mark.slow
async def test_librdkafka() -> None:
    package: Any = require_module("confluent_kafka")
    async with current() as mock:

        def topics(config: str) -> list[str]:
            admin = librdkafka(mock, sasl_oauthbearer_config=config)
            return list(admin.list_topics(timeout=SECONDS / 2).topics)

        config = "principal=bob scope=kafka extension_traceId=x"
        assert await in_thread(functools.partial(topics, config)) == ["foo"]
        assert users(mock) == {"User:bob"}
        before = len(mock.journal.select(api=36, direction="response"))

        def refused() -> None:
            admin = librdkafka(mock, sasl_oauthbearer_config="principal=bob scope=other")
            admin.list_topics(timeout=2)

        with pytest.raises(package.KafkaException):
            await in_thread(refused)
        answers = mock.journal.select(api=36, direction="response")[before:]
        bodies = [entry.decode().body for entry in answers]
        documents = {body.auth_bytes for body in bodies if body.error_code == 0}
        assert [json.loads(each)["status"] for each in documents] == ["insufficient_scope"]
        assert {body.error_code for body in bodies} == {0, 58}


@pytest.mark.slow
@pytest.mark.java
async def test_java(tmp_path: Path) -> None:
    """The client in Kafka's tools, with its own login module for unsecured tokens."""
    require("java", "maven")
    config = tmp_path / "client.properties"

    def write(scope: str) -> None:
        config.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
            "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule "
            f'required unsecuredLoginStringClaim_sub="carol" '
            f'unsecuredLoginListClaim_scope=",{scope}" unsecuredLoginExtension_traceId="x";\n'
        )

    async with current() as mock:
        with KafkaTools(JAVA_RELEASE) as tools:
            arguments = ("--bootstrap-server", mock.bootstrap, "--list", "--command-config")
            write("kafka")
            outcome = await tools.run("topics", *arguments, str(config))
            assert outcome.code == 0, outcome
            assert "foo" in outcome.out.split()
            assert users(mock) == {"User:carol"}
            write("other")
            outcome = await tools.run("topics", *arguments, str(config))
            assert outcome.code != 0
            assert "insufficient_scope" in outcome.out + outcome.err
