"""The mock refuses whom a real Kafka with an authorizer refuses, and says so in the same fields.

What may differ: host, port and ids; the order of what Kafka gathers in hash maps; and the name of
the request in the text of error 31, where Kafka prints the request object it holds.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import pytest

from kproto.client import Admin, BrokerError, SaslAuthenticationError, SaslPlain, SaslScram
from kproto.dialects import dialect
from kproto.framing import encode_frame
from kproto.messages import (
    ApiVersionsRequest,
    ListPartitionReassignmentsRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from kproto.schema.model import ZERO_UUID
from kproto.schema.versions import Versions
from mockbroker import MockCluster
from mockbroker.simulation.security.authorizer import Authorizer
from tests.mockbroker.simulation.security.bearer_tokens import ACCEPTED, DAMAGED
from tests.mockbroker.wire import Wire
from tests.real.compare import Comparison
from tests.real.delegation_tokens import played
from tests.real.kafka import COMMON_CONFIGS
from tests.real.secured_kafka import (
    MECHANISMS,
    OAUTHBEARER,
    REQUIRED_SCOPE,
    SUPER_USER,
    TOKEN_KEY,
    USERS,
    SecuredKafka,
    password,
)
from tests.real.secured_sessions import PREAMBLE, Said, SecuredSession, secured_sessions
from tests.support.toolchain import require

pytestmark = [pytest.mark.slow, pytest.mark.java]

RELEASE: Final = "4.4.0"
SESSIONS_AT_LEAST: Final = 60
PATIENCE: Final = 30.0
EVENTUALLY_SECONDS: Final = 3.0
"""How long a new rule may take to reach the broker and the controller. Asked again meanwhile."""

UNORDERED: Final = {(3, "topics"), (3, "brokers"), (19, "topics"), (20, "responses"),
                    (32, "results"), (37, "results"), (43, "replicaElectionResults"),
                    (29, "resources"), (29, "resources[].acls"),
                    (31, "filterResults[].matchingAcls"), (75, "topics")}  # fmt: skip
MASKED: Final = {(3, "brokers[].port"), (60, "brokers[].port"), (3, "clusterId"), (60, "clusterId")}
_NEEDS: Final = re.compile(r"^Request .* needs (\w+) permission\.$", re.DOTALL)


@pytest.fixture(scope="module")
def secured_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    require("java", "maven")
    with SecuredKafka(RELEASE, tmp_path_factory.mktemp("secured")) as kafka:
        yield kafka


def mock_cluster() -> MockCluster:
    """A mock of it."""
    return MockCluster(
        1,
        profile="kafka-4.4",
        broker_configs={**COMMON_CONFIGS, "delegation.token.secret.key": TOKEN_KEY},
        sasl=[
            *(f"{each}:{user}:{password(user)}" for each in MECHANISMS for user in USERS),
            f"{OAUTHBEARER}:requiredScope={' '.join(REQUIRED_SCOPE)}",
        ],
        authorizer=Authorizer(frozenset({SUPER_USER})),
    )


@asynccontextmanager
async def dial(address: str) -> AsyncIterator[Wire]:
    host, port = address.rsplit(":", 1)
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield Wire(reader, writer, dialect("kafka"))
    finally:
        writer.close()


class Side:
    """One of the two clusters: a connection a user, and the ids of its topics."""

    def __init__(self, wires: Mapping[str, Wire]) -> None:
        self.ids: dict[str, Any] = {}
        self._wires = wires

    async def ask(self, said: Said, version: int, own: str) -> Any:
        """The answer as JSON has it, without what says nothing."""
        body = said.ask.body(self.ids) if callable(said.ask.body) else said.ask.body
        async with asyncio.timeout(PATIENCE):
            answer = await self._wires[said.who].ask(body, version)
        for row in getattr(answer, "topics", ()):
            if row.name and getattr(row, "topic_id", ZERO_UUID) != ZERO_UUID:
                self.ids[row.name] = row.topic_id
        known = {
            urlsafe_b64encode(value.bytes).decode().rstrip("="): f"<id of {name}>"
            for name, value in self.ids.items()
        }
        return _normal(json.loads(answer.to_json(version)), body.API_KEY, "", known, own)


@asynccontextmanager
async def side(address: str) -> AsyncIterator[Side]:
    """Every user, authenticated by PLAIN."""
    async with _everybody(address) as wires:
        yield Side(wires)


@asynccontextmanager
async def _everybody(address: str) -> AsyncIterator[dict[str, Wire]]:
    async with AsyncExitStack() as stack:
        wires = {}
        for user in USERS:
            wire = wires[user] = await stack.enter_async_context(dial(address))
            await wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            token = f"\0{user}\0{password(user)}".encode()
            answer = await wire.ask(SaslAuthenticateRequest(auth_bytes=token), 2)
            assert answer.error_code == 0, answer
        yield wires


def _normal(value: Any, key: int, path: str, ids: Mapping[str, str], own: str) -> Any:
    if (key, path) in MASKED:
        return "<masked>"
    if isinstance(value, dict):
        return {
            name: _normal(each, key, f"{path}.{name}" if path else name, ids, own)
            for name, each in value.items()
        }
    if isinstance(value, list):
        rows = [_normal(each, key, f"{path}[]", ids, own) for each in value]
        if (key, path) in ((3, "topics"), (75, "topics")):
            # Bob sees what other sessions gave him, too.
            rows = [row for row in rows if _is_own(row["name"], own)]
        return sorted(rows, key=json.dumps) if (key, path) in UNORDERED else rows
    if isinstance(value, str):
        return ids.get(value, _NEEDS.sub(r"Request <...> needs \1 permission.", value))
    return value


def _is_own(name: str | None, own: str) -> bool:
    return name is None or name == own or name.startswith(f"{own}-") or "-v" not in name


@pytest.mark.parametrize(
    ("name", "own"),
    [("see-v1", True), ("see-v1-b", True), ("see-v10", False), ("a b", True), (None, True)],
)
def test_sessions_are_told_apart(name: str | None, own: bool) -> None:
    assert _is_own(name, "see-v1") is own


async def _compare(real: Side, mock: Side, said: Said, version: int, own: str) -> tuple[str, int]:
    """What differs, as text, and how many fields Kafka's answer has. Kafka is asked again while
    they differ: refusing changes nothing."""
    mocked = await mock.ask(said, version, own)
    found = await real.ask(said, version, own)
    deadline = time.monotonic() + EVENTUALLY_SECONDS
    while found != mocked and said.ask.refusable and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
        found = await real.ask(said, version, own)
    if found == mocked:
        return "", _count(found)
    return f"Kafka {json.dumps(found)}\n    mock  {json.dumps(mocked)}", _count(found)


def _count(value: Any) -> int:
    """Fields that hold no others."""
    if isinstance(value, dict) and value:
        return sum(map(_count, value.values()))
    if isinstance(value, list) and value:
        return sum(map(_count, value))
    return 1


async def _play(
    real: Side, mock: Side, session: SecuredSession, served: Any, comparison: Comparison
) -> list[str]:
    problems = []
    for number, said in enumerate(session.steps, 1):
        body = said.ask.body(_Any()) if callable(said.ask.body) else said.ask.body
        key = body.API_KEY
        version = said.ask.version
        if version is None:
            version = session.version if key == session.api_key else served[key].highest
        differs, fields = await _compare(real, mock, said, version, session.name)
        comparison.responses += 1
        comparison.fields += fields
        comparison.by_api[type(body).__name__.removesuffix("Request")] += 1
        if differs:
            problems.append(f"{session.name} #{number} {said.who}\n    {differs}")
    return problems


class _Any(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        return ZERO_UUID


@pytest.mark.requirement("K455-21", "K455-22", "K455-24", "K455-25", "K183-07", "K183-10", "A-28")
async def test_who_may_not_is_refused_as_by_kafka(
    secured_kafka: SecuredKafka, comparisons: dict[str, Comparison]
) -> None:
    async with (
        mock_cluster() as cluster,
        side(secured_kafka.bootstrap) as real,
        side(cluster.bootstrap) as mock,
    ):
        async with dial(secured_kafka.bootstrap) as wire:
            rows = (await wire.ask(ApiVersionsRequest(), 0)).api_keys
        theirs = {row.api_key: Versions(row.min_version, row.max_version) for row in rows}
        served = {
            key: Versions(max(ours.lowest, theirs[key].lowest),
                          min(ours.highest, theirs[key].highest))
            for key, ours in cluster.served.items() if key in theirs
        }  # fmt: skip
        problems: list[str] = []
        for said in PREAMBLE:
            assert not (await _compare(real, mock, said, said.ask.version or 0, ""))[0]
        sessions = secured_sessions(served)
        comparison = Comparison(sessions=len(sessions))
        for session in sessions:
            problems += await _play(real, mock, session, served, comparison)
    comparisons[f"{RELEASE} with an authorizer"] = comparison
    assert not problems, "\n".join(problems)
    assert len(sessions) >= SESSIONS_AT_LEAST


async def test_delegation_tokens_are_answered_as_by_kafka(secured_kafka: SecuredKafka) -> None:
    async with mock_cluster() as mock:
        heard = []
        for address in (secured_kafka.bootstrap, mock.bootstrap):
            async with _everybody(address) as wires:
                heard.append(await played(wires))
    real, mocked = heard
    assert len(real) == len(mocked) >= 56
    different = [pair for pair in zip(real, mocked, strict=True) if pair[0] != pair[1]]
    assert not different, "\n".join(f"Kafka {one}\nmock  {two}" for one, two in different)


# ---- SASL ----------------------------------------------------------------------------------------

ALICE: Final = f"\0alice\0{password('alice')}".encode()

CONVERSATIONS: Final[tuple[tuple[str, int, tuple[bytes, ...]], ...]] = (
    ("PLAIN", 1, (ALICE,)),
    ("PLAIN", 1, (ALICE, b"again")),
    ("PLAIN", 1, (b"alice" + ALICE,)),
    ("PLAIN", 1, (b"bob" + ALICE,)),
    ("PLAIN", 1, (b"\0alice\0wrong",)),
    ("PLAIN", 1, (b"\0mallory\0x",)),
    ("PLAIN", 1, (b"\0alice\0",)),
    ("PLAIN", 1, (b"\0\0x",)),
    ("PLAIN", 1, (b"",)),
    ("PLAIN", 1, (b"x",)),
    ("PLAIN", 1, (ALICE + b"\0",)),
    ("PLAIN", 1, (b"\xff\0\xff\0\xff",)),
    ("PLAIN", 0, (ALICE,)),
    ("PLAIN", 0, (b"\0alice\0wrong",)),
    ("GSSAPI", 1, ()),
    ("plain", 1, ()),
    ("", 0, ()),
    ("SCRAM-SHA-256", 1, (b"nonsense",)),
    ("SCRAM-SHA-256", 1, (b"n,,n=mallory,r=abc",)),
    ("SCRAM-SHA-512", 1, (b"y,,n=alice,r=abc",)),
    ("SCRAM-SHA-512", 1, (b"p=tls-unique,,n=alice,r=abc",)),
    ("SCRAM-SHA-256", 1, (b"n,a=bob,n=alice,r=abc",)),
    ("SCRAM-SHA-256", 0, (b"nonsense",)),
    *((OAUTHBEARER, version, messages) for messages in DAMAGED for version in (0, 1)),
    *((OAUTHBEARER, 1, (message,)) for message in ACCEPTED),
)
"""(mechanism, version of the handshake, the client's tokens)"""


async def _converse(address: str, mechanism: str, version: int, tokens: tuple[bytes, ...]) -> Any:
    """All that the broker said, and whether it is still there in the end. Of a lifetime only
    whether there is one: it depends on the time of the request."""
    heard: list[Any] = []
    async with dial(address) as wire:
        try:
            answer = await wire.ask(SaslHandshakeRequest(mechanism=mechanism), version)
            heard.append((answer.error_code, sorted(answer.mechanisms)))
            for token in tokens:
                if version == 0:
                    wire.send(encode_frame(token))
                    heard.append(await wire.receive())
                    continue
                said = await wire.ask(SaslAuthenticateRequest(auth_bytes=token), 2)
                heard.append((said.error_code, said.error_message, said.auth_bytes,
                              said.session_lifetime_ms > 0))  # fmt: skip
            heard.append((await wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)).error_code)
        except (asyncio.IncompleteReadError, ConnectionError):
            heard.append("closed")
    return heard


async def _interrupt(address: str, body: Any, version: int) -> Any:
    """What a request amid the exchange is told."""
    async with dial(address) as wire:
        await wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        code = (await wire.ask(body, version)).error_code
        return code, await wire.closed()


@pytest.mark.parametrize(
    ("body", "version"),
    [(ApiVersionsRequest(), 0), (SaslHandshakeRequest(mechanism="PLAIN"), 1),
     (ListPartitionReassignmentsRequest(topics=None), 0)],
)  # fmt: skip
async def test_a_request_amid_sasl_is_answered_as_by_kafka(
    secured_kafka: SecuredKafka, body: Any, version: int
) -> None:
    async with mock_cluster() as mock:
        real = await _interrupt(secured_kafka.bootstrap, body, version)
        assert await _interrupt(mock.bootstrap, body, version) == real == (34, b"")


async def test_every_token_is_answered_as_by_kafka(secured_kafka: SecuredKafka) -> None:
    async with mock_cluster() as mock:
        for conversation in CONVERSATIONS:
            real = await _converse(secured_kafka.bootstrap, *conversation)
            assert await _converse(mock.bootstrap, *conversation) == real, conversation


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_our_client_authenticates_to_kafka(
    secured_kafka: SecuredKafka, mechanism: str
) -> None:
    def credentials(user: str, secret: str) -> Any:
        if mechanism == "PLAIN":
            return SaslPlain(user, secret)
        return SaslScram(mechanism, user, secret)

    for user, expected in (("admin", {}), ("alice", "CLUSTER_AUTHORIZATION_FAILED")):
        sasl = credentials(user, password(user))
        async with Admin(secured_kafka.bootstrap, sasl=sasl) as admin:
            try:
                found: Any = await admin.list_partition_reassignments()
            except BrokerError as error:
                found = error.name
            assert found == expected
    async with Admin(secured_kafka.bootstrap, sasl=credentials("alice", "wrong")) as admin:
        with pytest.raises(SaslAuthenticationError, match="Authentication failed"):
            await admin.list_topics()
