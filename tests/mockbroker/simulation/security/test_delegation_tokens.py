"""Delegation tokens: who gets, renews, removes and sees them, and logs in with them."""

import asyncio
import hashlib
import hmac
import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from mockbroker import MockCluster
from mockbroker.control import ControlServer
from mockbroker.profiles import profile
from mockbroker.simulation.security.authorizer import (
    ANONYMOUS,
    AclOperation,
    Authorizer,
    PatternType,
    PermissionType,
    ResourceType,
)
from mockbroker.simulation.security.policy import OPEN, Security
from mockbroker.simulation.state.cluster_state import replay
from mockbroker.simulation.state.results import AclBinding
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.control.test_command_line import run_here
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.wire import Wire, connect
from tests.support.requests import request_of

SECRET = "the brokers' secret"
KEY = "delegation.token.secret.key"
NEWEST, OLD, ZOOKEEPER = "kafka-4.4", "kafka-1.1", "kafka-3.9-zk"
START = 1_000_000
HOUR, DAY = 3_600_000, 86_400_000
NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
DISABLED = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
NOT_FOUND = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
EXPIRED = ErrorCode.DELEGATION_TOKEN_EXPIRED
MISMATCH = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


class Tokens:
    """A broker, and requests about tokens in the name of any user."""

    def __init__(
        self,
        name: str = NEWEST,
        *,
        configs: Mapping[str, str] | None = None,
        security: Security = OPEN,
        features: Mapping[str, int] | None = None,
    ) -> None:
        found = profile(name)
        if configs is None:
            old = found.line < (2, 8)
            configs = {"delegation.token.master.key" if old else KEY: SECRET}
        self.cluster = simulated_cluster(
            1, broker_configs=configs, release=found.software,
            reassignment=found.reassignment, features=features or {}, now_ms=START,
        )  # fmt: skip
        self.broker = DirectBroker(self.cluster, profile_name=name, security=security)
        self.versions = found.versions

    def ask(self, body: Any, user: str = "alice") -> Any:
        self.broker.principal = user if user == ANONYMOUS else f"User:{user}"
        return self.broker.ask(body, self.versions[body.API_KEY].highest)

    def create(
        self,
        user: str = "alice",
        *,
        lifetime_ms: int = -1,
        renewers: tuple[str, ...] = (),
        renewer_type: str = "User",
        owner: str = "",
    ) -> Any:
        return self.ask(
            request_of(
                "CreateDelegationToken",
                max_lifetime_ms=lifetime_ms,
                owner_principal_type="User" if owner else "",
                owner_principal_name=owner,
                renewers=[
                    {"principal_type": renewer_type, "principal_name": each} for each in renewers
                ],
            ),
            user,
        )

    def renew(self, password: bytes, user: str = "alice", period_ms: int = -1) -> tuple[int, int]:
        request = request_of("RenewDelegationToken", hmac=password, renew_period_ms=period_ms)
        answer = self.ask(request, user)
        return answer.error_code, answer.expiry_timestamp_ms

    def expire(self, password: bytes, user: str = "alice", period_ms: int = -1) -> tuple[int, int]:
        request = request_of(
            "ExpireDelegationToken", hmac=password, expiry_time_period_ms=period_ms
        )
        answer = self.ask(request, user)
        return answer.error_code, answer.expiry_timestamp_ms

    def describe(self, user: str = "alice", *owners: str) -> list[str]:
        answer = self.described(user, *owners)
        assert answer.error_code == 0
        return [each.token_id for each in answer.tokens]

    def described(self, user: str, *owners: str) -> Any:
        named = [{"principal_type": "User", "principal_name": each} for each in owners]
        return self.ask(request_of("DescribeDelegationToken", owners=named or None), user)

    def codes(self, user: str, password: bytes = b"") -> list[int]:
        """What each of the four requests is answered with."""
        return [
            self.create(user).error_code,
            self.renew(password, user)[0],
            self.expire(password, user)[0],
            self.described(user).error_code,
        ]


EVERYWHERE = pytest.mark.parametrize("name", [NEWEST, ZOOKEEPER, OLD])


@EVERYWHERE
@pytest.mark.requirement("TOKEN-01", "TOKEN-02", "TOKEN-05")
def test_a_token_is_created_and_described(name: str) -> None:
    tokens = Tokens(name)
    made = tokens.create(renewers=("bob", "carol"))
    assert (made.error_code, made.principal_type, made.principal_name) == (0, "User", "alice")
    times = (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms)
    assert times == (START, START + DAY, START + 7 * DAY)
    assert len(made.token_id) == 22
    assert made.hmac == hmac.digest(SECRET.encode(), made.token_id.encode(), "sha512")
    (found,) = tokens.described("alice").tokens
    assert (found.token_id, found.hmac, found.principal_name) == (
        made.token_id, made.hmac, "alice",
    )  # fmt: skip
    assert (found.issue_timestamp, found.expiry_timestamp, found.max_timestamp) == times
    assert [each.principal_name for each in found.renewers] == ["bob", "carol"]
    assert replay(tokens.cluster.state.cluster_id, tokens.cluster.log).tokens.keys() == {
        made.token_id
    }


def test_the_configs_and_the_client_limit_the_lifetime() -> None:
    limits = {"delegation.token.max.lifetime.ms": "5000", "delegation.token.expiry.time.ms": "3000"}
    tokens = Tokens(configs={KEY: SECRET, **limits})
    for asked, max_ms, expires_ms in ((-1, 5000, 3000), (9000, 5000, 3000), (2000, 2000, 2000)):
        made = tokens.create(lifetime_ms=asked)
        assert made.max_timestamp_ms == START + max_ms
        assert made.expiry_timestamp_ms == START + expires_ms


@EVERYWHERE
@pytest.mark.requirement("TOKEN-01")
def test_a_client_without_a_name_has_no_tokens(name: str) -> None:
    tokens = Tokens(name)
    assert tokens.codes(ANONYMOUS) == [NOT_ALLOWED] * 4
    made = tokens.create(ANONYMOUS)
    assert (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms) == (-1,) * 3
    assert tokens.renew(b"", ANONYMOUS) == tokens.expire(b"", ANONYMOUS) == (NOT_ALLOWED, -1)
    assert tokens.cluster.tokens.all == ()


@pytest.mark.requirement("TOKEN-02")
@pytest.mark.parametrize(("name", "time_ms"), [(NEWEST, 0), (ZOOKEEPER, -1), (OLD, -1)])
def test_without_a_secret_key_there_are_no_tokens(name: str, time_ms: int) -> None:
    tokens = Tokens(name, configs={})
    assert tokens.codes("alice") == [DISABLED] * 4
    assert tokens.create().max_timestamp_ms == time_ms
    assert tokens.renew(b"") == tokens.expire(b"") == (DISABLED, time_ms)


def test_the_former_name_of_the_secret_key() -> None:
    former = {"delegation.token.master.key": SECRET}
    assert Tokens("kafka-3.9", configs=former).create().error_code == 0
    assert Tokens("kafka-4.0", configs=former).create().error_code == DISABLED
    assert Tokens("kafka-2.7", configs={KEY: SECRET}).create().error_code == DISABLED


@pytest.mark.requirement("TOKEN-03")
def test_the_metadata_version_has_to_know_tokens() -> None:
    for level, code in ((13, ErrorCode.UNSUPPORTED_VERSION), (14, ErrorCode.NONE)):
        tokens = Tokens("kafka-3.9", features={"metadata.version": level})
        assert tokens.create().error_code == code
        expected = code or NOT_FOUND
        assert tokens.renew(b"x") == tokens.expire(b"x") == (expected, 0)
    assert Tokens(ZOOKEEPER).create().error_code == 0


def binding(operation: AclOperation, kind: ResourceType, name: str) -> AclBinding:
    return AclBinding(
        resource_type=kind, resource_name=name, pattern_type=PatternType.LITERAL,
        principal="User:alice", host="*", operation=operation,
        permission_type=PermissionType.ALLOW,
    )  # fmt: skip


@pytest.mark.requirement("TOKEN-04")
@pytest.mark.parametrize("name", [NEWEST, ZOOKEEPER, "kafka-3.3-zk"])
def test_tokens_of_another_owner(name: str) -> None:
    tokens = Tokens(name, security=Security(Authorizer()))
    made = tokens.create(owner="bob")
    assert made.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (made.principal_name, made.max_timestamp_ms) == ("bob", -1)
    assert tokens.create(owner="alice").error_code == tokens.create().error_code == 0
    tokens.cluster.acls.create([binding(AclOperation.CREATE_TOKENS, ResourceType.USER, "User:bob")])
    made = tokens.create(owner="bob")
    assert (made.error_code, made.principal_name) == (0, "bob")
    assert made.token_requester_principal_name == "alice"
    assert made.token_id in tokens.describe("bob")
    assert tokens.renew(made.hmac, "alice")[0] == MISMATCH
    assert tokens.renew(made.hmac, "bob")[0] == 0


@pytest.mark.requirement("TOKEN-17")
@pytest.mark.parametrize("name", [NEWEST, ZOOKEEPER, "kafka-3.3-zk"])
def test_an_owner_without_a_type(name: str) -> None:
    request = request_of(
        "CreateDelegationToken", owner_principal_type=None, owner_principal_name="bob"
    )
    for user in ("alice", ANONYMOUS):
        made = Tokens(name).ask(request, user)
        assert (made.error_code, made.issue_timestamp_ms) == (ErrorCode.UNKNOWN_SERVER_ERROR, -1)
        assert f"{made.principal_type}:{made.principal_name}" == ANONYMOUS
        assert made.token_requester_principal_name == "ANONYMOUS"


@EVERYWHERE
@pytest.mark.requirement("TOKEN-05")
def test_renewers_are_users(name: str) -> None:
    nothing: dict[str, str] = {}
    for configs in (None, nothing):
        made = Tokens(name, configs=configs).create(renewers=("bob",), renewer_type="Group")
        assert made.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


@pytest.mark.requirement("TOKEN-06")
@pytest.mark.parametrize(("name", "time_ms"), [(NEWEST, 0), (ZOOKEEPER, -1), (OLD, -1)])
def test_an_unknown_token(name: str, time_ms: int) -> None:
    tokens = Tokens(name)
    tokens.create()
    assert tokens.renew(b"x") == tokens.expire(b"x") == (NOT_FOUND, time_ms)


@EVERYWHERE
@pytest.mark.requirement("TOKEN-06", "TOKEN-07")
def test_only_the_owner_and_renewers_change_a_token(name: str) -> None:
    tokens = Tokens(name)
    made = tokens.create(renewers=("bob",))
    assert tokens.renew(made.hmac, "carol")[0] == MISMATCH
    assert tokens.expire(made.hmac, "carol")[0] == MISMATCH
    assert tokens.renew(made.hmac, "bob")[0] == tokens.expire(made.hmac, "bob")[0] == 0


@pytest.mark.requirement("TOKEN-08")
@pytest.mark.parametrize(("name", "stranger"), [(NEWEST, EXPIRED), (ZOOKEEPER, MISMATCH)])
def test_an_expired_token_is_not_renewed(name: str, stranger: int) -> None:
    tokens = Tokens(name)
    made = tokens.create(lifetime_ms=1000)
    tokens.cluster.turns.advance(1000)
    assert tokens.renew(made.hmac, "carol")[0] == MISMATCH
    assert tokens.renew(made.hmac) == (0, START + 1000)
    tokens.cluster.turns.advance(1)
    assert tokens.renew(made.hmac)[0] == EXPIRED
    assert tokens.renew(made.hmac, "carol")[0] == stranger


@pytest.mark.requirement("TOKEN-09")
@pytest.mark.parametrize("interval_ms", [10_000, 20_000])
def test_how_often_expired_tokens_are_looked_for_is_a_config(interval_ms: int) -> None:
    name = "delegation.token.expiry.check.interval.ms"
    tokens = Tokens(configs={KEY: SECRET, name: str(interval_ms)})
    assert tokens.create().error_code == 0
    assert tokens.cluster.timers.next_due_ms == START + interval_ms


@pytest.mark.requirement("TOKEN-09")
@pytest.mark.parametrize(
    ("name", "periods"),
    [
        (NEWEST, {-1: DAY, 0: DAY, 5: 5, 2 * DAY: DAY}),
        (ZOOKEEPER, {-1: DAY, 5: 5, 2 * DAY: 2 * DAY, 8 * DAY: 7 * DAY, 0: 0}),
    ],
)
def test_the_period_of_a_renewal(name: str, periods: dict[int, int]) -> None:
    tokens = Tokens(name)
    made = tokens.create()
    for asked, after_ms in periods.items():
        assert tokens.renew(made.hmac, period_ms=asked) == (0, START + after_ms)
        (found,) = tokens.described("alice").tokens
        assert found.expiry_timestamp == START + after_ms


@pytest.mark.requirement("TOKEN-10")
@pytest.mark.parametrize(("name", "removed"), [(NEWEST, True), (ZOOKEEPER, True), (OLD, False)])
def test_expiring_a_token(name: str, removed: bool) -> None:
    tokens = Tokens(name)
    made = tokens.create()
    assert tokens.expire(made.hmac, period_ms=8 * DAY) == (0, START + 7 * DAY)
    assert tokens.expire(made.hmac, period_ms=0) == (0, START)
    assert len(tokens.describe()) == 1
    tokens.cluster.turns.advance(1)
    assert tokens.expire(made.hmac, period_ms=5)[0] == EXPIRED
    assert tokens.expire(made.hmac) == ((0, START + 1) if removed else (EXPIRED, -1))
    assert len(tokens.describe()) == (not removed)
    made = tokens.create("bob")
    assert tokens.expire(made.hmac, "bob") == (0, START + 1)
    assert made.token_id not in tokens.describe("bob")


@pytest.mark.requirement("TOKEN-11")
def test_owners_and_renewers_see_their_tokens() -> None:
    tokens = Tokens(security=Security(Authorizer()))
    first = tokens.create("alice", renewers=("bob",)).token_id
    second = tokens.create("bob").token_id
    assert tokens.describe("alice") == [first]
    assert tokens.describe("bob") == [first, second]
    assert tokens.describe("bob", "alice") == [first]
    assert tokens.describe("bob", "bob") == [first, second]
    assert tokens.describe("carol") == tokens.describe("alice", "carol") == []
    nobody = tokens.ask(request_of("DescribeDelegationToken", owners=[]))
    assert (nobody.error_code, nobody.tokens) == (0, [])


@pytest.mark.requirement("TOKEN-12")
def test_others_need_permission_to_see_a_token() -> None:
    tokens = Tokens(security=Security(Authorizer()))
    bob, carol = tokens.create("bob").token_id, tokens.create("carol").token_id
    assert tokens.describe("alice") == []
    tokens.cluster.acls.create([binding(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, bob)])
    assert tokens.describe("alice") == [bob]
    assert tokens.describe("alice", "carol") == []
    tokens.cluster.acls.create(
        [binding(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, "User:carol")]
    )
    assert tokens.describe("alice") == [bob, carol]
    assert tokens.describe("alice", "carol") == [carol]
    older = Tokens("kafka-3.2-zk", security=Security(Authorizer()))
    older.create("carol")
    older.cluster.acls.create(
        [binding(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, "User:carol")]
    )
    assert older.describe("alice") == []


@pytest.mark.requirement("TOKEN-13")
def test_a_periodic_check_removes_expired_tokens() -> None:
    tokens = Tokens()
    tokens.create(lifetime_ms=1000)
    later = tokens.create("bob").token_id
    tokens.cluster.turns.advance(HOUR - 1)
    assert len(tokens.describe()) == 2
    tokens.cluster.turns.advance(1)
    assert tokens.describe() == [later]
    tokens.cluster.turns.advance(25 * HOUR)
    assert tokens.describe() == []
    assert not any("token" in name for _, name in tokens.cluster.timers.pending())


# ---- authentication ------------------------------------------------------------------------------

MECHANISM = "SCRAM-SHA-256"


class Login:
    """SCRAM by hand, with the extension that no SCRAM library sends."""

    def __init__(self, name: str, password: bytes, extension: str = ",tokenauth=true") -> None:
        self._password = b64encode(password)
        self._bare = f"n={name},r=abcdefgh{extension}"

    @property
    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def final(self, answer: bytes) -> bytes:
        parts = dict(each.split("=", 1) for each in answer.decode().split(","))
        salted = hashlib.pbkdf2_hmac(
            "sha256", self._password, b64decode(parts["s"]), int(parts["i"])
        )
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        bare_final = f"c=biws,r={parts['r']}"
        signed = f"{self._bare},{answer.decode()},{bare_final}".encode()
        signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return f"{bare_final},p={b64encode(proof).decode()}".encode()


async def authenticate(wire: Wire, login: Login) -> Any:
    assert (await wire.ask(request_of("SaslHandshake", mechanism=MECHANISM), 1)).error_code == 0
    answer = await wire.ask(request_of("SaslAuthenticate", auth_bytes=login.first), 2)
    if answer.error_code:
        return answer
    final = login.final(answer.auth_bytes)
    return await wire.ask(request_of("SaslAuthenticate", auth_bytes=final), 2)


def secured() -> MockCluster:
    return MockCluster(
        1, profile=NEWEST, sasl=[f"{MECHANISM}:alice:secret", "PLAIN:alice:pencil"],
        broker_configs={KEY: SECRET}, clock="manual",
    )  # fmt: skip


async def created(mock: MockCluster) -> tuple[Any, Any]:
    """A new token, with what a user sees of all tokens."""
    async with connect(mock) as wire:
        assert (await wire.ask(request_of("SaslHandshake", mechanism="PLAIN"), 1)).error_code == 0
        token = request_of("SaslAuthenticate", auth_bytes=b"\0alice\0pencil")
        assert (await wire.ask(token, 2)).error_code == 0
        made = await wire.ask(request_of("CreateDelegationToken", max_lifetime_ms=HOUR), 3)
        assert made.error_code == 0
        return made, await wire.ask(request_of("DescribeDelegationToken", owners=None), 3)


@pytest.mark.requirement("TOKEN-14")
async def test_a_client_authenticates_with_a_token() -> None:
    async with secured() as mock:
        made, _ = await created(mock)
        mock.advance(1000)
        async with connect(mock) as wire:
            answer = await authenticate(wire, Login(made.token_id, made.hmac))
            assert (answer.error_code, answer.session_lifetime_ms) == (0, HOUR - 1000)
            renewed = await wire.ask(request_of("RenewDelegationToken", hmac=made.hmac), 2)
            assert renewed.error_code == NOT_ALLOWED
            mock.advance(HOUR - 1000)
            assert (await wire.ask(request_of("Metadata", topics=[]), 9)).brokers
            mock.advance(1)
            wire.send(wire.frame(request_of("Metadata", topics=[]), 9))
            assert await wire.closed() == b""
        assert mock.cluster.tokens.login(made.token_id) is not None


@pytest.mark.requirement("TOKEN-15")
async def test_what_does_not_authenticate() -> None:
    async with secured() as mock:
        made, _ = await created(mock)
        for login in (
            Login(made.token_id, made.hmac[:-1]),
            Login(made.token_id, made.hmac, ""),
            Login(made.token_id, made.hmac, ",tokenauth=false"),
            Login("alice", made.hmac),
        ):
            async with connect(mock) as wire:
                assert (await authenticate(wire, login)).error_code == 58
        mock.cluster.tokens.expire(made.hmac, "User:alice", -1, allowed=True)
        async with connect(mock) as wire:
            assert (await authenticate(wire, Login(made.token_id, made.hmac))).error_code == 58


@pytest.mark.requirement("TOKEN-16")
async def test_the_journal_has_no_secret_of_a_token() -> None:
    async with secured() as mock:
        made, described = await created(mock)
        assert described.tokens[0].hmac == made.hmac
        async with connect(mock) as wire:
            await wire.ask(request_of("SaslHandshake", mechanism="PLAIN"), 1)
            await wire.ask(request_of("SaslAuthenticate", auth_bytes=b"\0alice\0pencil"), 2)
            for body in (
                request_of("RenewDelegationToken", hmac=made.hmac),
                request_of("ExpireDelegationToken", hmac=made.hmac),
            ):
                assert (await wire.ask(body, 2)).error_code == 0
        assert not [entry for entry in mock.journal if made.hmac in entry.raw]
        (entry,) = mock.journal.select(api=38, direction="response")
        found: Any = entry.decode().body
        assert (found.token_id, found.hmac) == (made.token_id, b"[hidden]")
        for key in (39, 40):
            (entry,) = mock.journal.select(api=key, direction="request")
            found = entry.decode().body
            assert found.hmac == b"[hidden]"
        (entry,) = mock.journal.select(api=41, direction="response")
        found = entry.decode().body
        assert [each.hmac for each in found.tokens] == [b"[hidden]"]


@pytest.mark.requirement("TOKEN-16")
async def test_the_control_port_lists_tokens_without_their_secrets(capsys):
    async with secured() as mock:
        made, _ = await created(mock)
        mock.advance(HOUR + 1)
        control = ControlServer(mock, port=0)
        await control.start()
        try:
            assert await asyncio.to_thread(run_here, ["ctl", control.url, "tokens"]) == 0
            line = capsys.readouterr().out
            assert await asyncio.to_thread(run_here, ["ctl", control.url, "tokens", "--json"]) == 0
            document = capsys.readouterr().out
        finally:
            await control.stop()
        (token,) = mock.cluster.tokens.all
        assert line == (
            f"{made.token_id}  User:alice, expired at {token.expires_ms} ms, at most until "
            f"{token.max_ms} ms\n"
        )
        assert json.loads(document) == [
            {
                "token_id": made.token_id, "owner": "User:alice", "requester": "User:alice",
                "renewers": [], "issued_ms": token.issued_ms, "expires_ms": token.expires_ms,
                "max_ms": token.max_ms, "expired": True,
            }
        ]  # fmt: skip
        for secret in (made.hmac.hex(), b64encode(made.hmac).decode()):
            assert secret not in line + document
