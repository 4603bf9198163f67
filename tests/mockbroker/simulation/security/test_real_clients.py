"""Released clients, and ours, against a mock that asks who they are: by PLAIN and SCRAM, over TLS
and not; what a principal without rights is told, and what one with rights gets done."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kproto.client import Admin, BrokerError, SaslAuthenticationError, SaslPlain, SaslScram
from mockbroker import MockCluster
from mockbroker.simulation.security.authorizer import (
    AclOperation,
    Authorizer,
    PatternType,
    PermissionType,
    ResourceType,
)
from mockbroker.simulation.security.sasl import MECHANISMS
from mockbroker.simulation.state.results import AclBinding
from tests.support.toolchain import require_module
from tests.support.waiting import in_thread

PEM = Path(__file__).parents[3] / "client" / "localhost.pem"
SECONDS = 30
USERS = {"admin": "secret", "alice": "pencil"}
EVERY_WAY = pytest.mark.parametrize("mechanism", MECHANISMS)
TLS = pytest.mark.parametrize("tls", [False, True], ids=["plaintext", "tls"])


@asynccontextmanager
async def secured(tls: bool) -> AsyncIterator[MockCluster]:
    """``foo-0`` led by another broker than the preferred one; admin may everything."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    async with MockCluster(
        topics=["foo=1,2,3"],
        sasl=[f"{each}:{user}:{secret}" for each in MECHANISMS for user, secret in USERS.items()],
        tls=context if tls else None,
        authorizer=Authorizer(frozenset({"User:admin"})),
    ) as mock:
        await mock.stop_broker(1)
        await mock.start_broker(1)
        mock.join_isr("foo-0", 1)
        yield mock


def let_alice(mock: MockCluster, operation: AclOperation) -> None:
    cluster = (ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL)
    who = ("User:alice", "127.0.0.1")
    mock.cluster.acls.create([AclBinding(*cluster, *who, operation, PermissionType.ALLOW)])


# ---- kafka-python --------------------------------------------------------------------------------


def kafka_python(kafka: Any, mock: MockCluster, tls: bool, **sasl: Any) -> Any:
    return kafka.KafkaAdminClient(
        bootstrap_servers=mock.bootstrap,
        request_timeout_ms=10_000,
        security_protocol="SASL_SSL" if tls else "SASL_PLAINTEXT",
        ssl_cafile=str(PEM) if tls else None,
        **sasl,
    )


@EVERY_WAY
@TLS
@pytest.mark.requirement("K455-21", "K455-22", "K455-24")
async def test_kafka_python(mechanism: str, tls: bool) -> None:
    kafka: Any = require_module("kafka")
    plan = {kafka.TopicPartition("foo", 0): [2, 3]}
    async with secured(tls) as mock:
        for user, secret in USERS.items():
            sasl = {"sasl_mechanism": mechanism, "sasl_plain_username": user,
                    "sasl_plain_password": secret}  # fmt: skip
            admin = await in_thread(partial(kafka_python, kafka, mock, tls, **sasl))
            alter = partial(admin.alter_partition_reassignments, plan)
            try:
                if user == "admin":
                    await in_thread(alter)
                    assert mock.cluster.topics.partition("foo", 0).replicas == (2, 3)
                    continue
                before = len(mock.cluster.log)
                with pytest.raises(kafka.errors.ClusterAuthorizationFailedError):
                    await in_thread(alter)
                with pytest.raises(kafka.errors.ClusterAuthorizationFailedError):
                    await in_thread(admin.list_partition_reassignments)
                assert len(mock.cluster.log) == before
                let_alice(mock, AclOperation.DESCRIBE)
                assert await in_thread(admin.list_partition_reassignments) == {}
            finally:
                await in_thread(admin.close)


@pytest.mark.slow
@EVERY_WAY
async def test_kafka_python_with_the_wrong_password(mechanism: str) -> None:
    kafka: Any = require_module("kafka")
    sasl = {"sasl_mechanism": mechanism, "sasl_plain_username": "alice",
            "sasl_plain_password": "wrong", "bootstrap_timeout_ms": 500}  # fmt: skip
    async with secured(False) as mock:
        # It goes on trying until its time is up: to a wrong password it is no other error.
        with pytest.raises(kafka.errors.KafkaError):
            await in_thread(lambda: kafka_python(kafka, mock, False, **sasl))
        assert mock.journal.select(api=36)
        assert not mock.journal.select(event="authenticated")


# ---- confluent-kafka (librdkafka) ----------------------------------------------------------------


def librdkafka(mock: MockCluster, tls: bool, mechanism: str, user: str, secret: str) -> Any:
    admin: Any = require_module("confluent_kafka.admin")
    config = {
        "bootstrap.servers": mock.bootstrap, "socket.timeout.ms": 10_000, "log_level": 0,
        "security.protocol": "sasl_ssl" if tls else "sasl_plaintext",
        "sasl.mechanisms": mechanism, "sasl.username": user, "sasl.password": secret,
    }  # fmt: skip
    return admin.AdminClient(config | ({"ssl.ca.location": str(PEM)} if tls else {}))


@EVERY_WAY
@TLS
@pytest.mark.requirement("K183-07", "K183-10")
async def test_librdkafka(mechanism: str, tls: bool) -> None:
    package: Any = require_module("confluent_kafka")
    foo = package.TopicPartition("foo", 0)
    async with secured(tls) as mock:

        def elect(user: str) -> Any:
            admin = librdkafka(mock, tls, mechanism, user, USERS[user])
            preferred = package.ElectionType.PREFERRED
            return admin.elect_leaders(preferred, [foo]).result(SECONDS)

        with pytest.raises(package.KafkaException) as caught:
            await in_thread(lambda: elect("alice"))
        assert caught.value.args[0].code() == package.KafkaError.CLUSTER_AUTHORIZATION_FAILED
        assert mock.cluster.topics.partition("foo", 0).leader == 2
        assert list((await in_thread(lambda: elect("admin"))).values()) == [None]
        assert mock.cluster.topics.partition("foo", 0).leader == 1
        let_alice(mock, AclOperation.ALTER)
        (result,) = (await in_thread(lambda: elect("alice"))).values()
        assert result is None or result.code() == package.KafkaError.ELECTION_NOT_NEEDED


@pytest.mark.requirement("SCRAM-06", "SCRAM-07")
async def test_librdkafka_alters_users_who_can_then_log_in() -> None:
    module: Any = require_module("confluent_kafka.admin")
    mechanism = "SCRAM-SHA-512"
    async with secured(False) as mock:
        admin = librdkafka(mock, False, mechanism, "admin", USERS["admin"])
        kind = module.ScramMechanism.SCRAM_SHA_512

        def alter(change: Any) -> None:
            for done in admin.alter_user_scram_credentials([change]).values():
                assert done.result(SECONDS) is None

        def described(user: str, secret: str) -> Any:
            as_user = librdkafka(mock, False, mechanism, user, secret)
            return as_user.describe_user_scram_credentials(["carol"])["carol"].result(SECONDS)

        info = module.ScramCredentialInfo(kind, 8192)
        new = module.UserScramCredentialUpsertion("carol", info, b"password")
        await in_thread(lambda: alter(new))
        cluster = (ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL)
        rights = (AclOperation.DESCRIBE, PermissionType.ALLOW)
        mock.cluster.acls.create([AclBinding(*cluster, "User:carol", "*", *rights)])
        found = (await in_thread(lambda: described("carol", "password"))).scram_credential_infos
        assert [(each.mechanism, each.iterations) for each in found] == [(kind, 8192)]
        await in_thread(lambda: alter(module.UserScramCredentialDeletion("carol", kind)))
        assert mock.cluster.scram.keys(mechanism, "carol") is None


async def test_librdkafka_creates_topics_where_it_may() -> None:
    module: Any = require_module("confluent_kafka.admin")
    package: Any = require_module("confluent_kafka")

    async with secured(False) as mock:

        def create(user: str) -> Any:
            admin = librdkafka(mock, False, "PLAIN", user, USERS[user])
            (future,) = admin.create_topics([module.NewTopic("new", 1, 1)]).values()
            return future.result(SECONDS)

        with pytest.raises(package.KafkaException) as caught:
            await in_thread(lambda: create("alice"))
        assert caught.value.args[0].code() == package.KafkaError.TOPIC_AUTHORIZATION_FAILED
        assert "new" not in mock.cluster.topics
        await in_thread(lambda: create("admin"))
        assert "new" in mock.cluster.topics


# ---- ours ----------------------------------------------------------------------------------------


def ours(mock: MockCluster, tls: bool, mechanism: str, user: str, secret: str) -> Admin:
    sasl: Any = (SaslPlain(user, secret) if mechanism == "PLAIN"
                 else SaslScram(mechanism, user, secret))  # fmt: skip
    trusting = ssl.create_default_context(cafile=str(PEM)) if tls else False
    return Admin(mock.bootstrap, sasl=sasl, ssl=trusting, default_timeout_ms=SECONDS * 1000)


@EVERY_WAY
@TLS
@pytest.mark.requirement("K455-21", "K455-24", "K183-10")
async def test_our_admin(mechanism: str, tls: bool) -> None:
    async with secured(tls) as mock:
        async with ours(mock, tls, mechanism, "admin", USERS["admin"]) as admin:
            await admin.alter_partition_reassignments({("foo", 0): [2, 3, 1]}).all()
        assert mock.cluster.topics.partition("foo", 0).replicas == (2, 3, 1)
        async with ours(mock, tls, mechanism, "alice", USERS["alice"]) as admin:
            before = len(mock.cluster.log)
            with pytest.raises(BrokerError) as caught:
                await admin.alter_partition_reassignments({("foo", 0): [1]}).all()
            assert caught.value.name == "CLUSTER_AUTHORIZATION_FAILED"
            with pytest.raises(BrokerError, match="needs DESCRIBE permission"):
                await admin.list_partition_reassignments()
            assert len(mock.cluster.log) == before
            let_alice(mock, AclOperation.ALTER)
            assert await admin.list_partition_reassignments() == {}
        async with ours(mock, tls, mechanism, "alice", "wrong") as admin:
            with pytest.raises(SaslAuthenticationError, match="Authentication failed"):
                await admin.list_partition_reassignments()
