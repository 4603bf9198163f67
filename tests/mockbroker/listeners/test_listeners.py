"""Several listeners a broker, by Kafka's own configs: random ones, and what each config does.

The property: a client that comes in on a listener is asked to authenticate as that listener's
configs say, and Metadata, FindCoordinator and DescribeCluster name the brokers that advertise the
listener, at the addresses that they advertise for it, whatever other connections ask.
"""

from __future__ import annotations

import asyncio
import os
import random
import ssl
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kproto.client import Admin, SaslPlain, SaslScram
from kproto.error_codes import ErrorCode
from kproto.messages import (
    ApiVersionsRequest,
    DescribeClusterRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from kproto.messages.metadata_request import MetadataRequestTopic
from kproto.znodes.kafka_znodes import decode_broker
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.running.recorded_requests import RecordedRequests
from tests.mockbroker.simulation.security.test_tls import client_context
from tests.mockbroker.wire import Wire, connected
from tests.support.seeds import generator

PEM = Path(__file__).parents[2] / "client" / "localhost.pem"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SOON = 20_000
CLUSTERS = 12


# ---- random listeners ----------------------------------------------------------------------------


class Drawn(NamedTuple):
    """A random listener. ``advertised`` is the port in ``advertised.listeners``: 0 stands for the
    port that the listener gets, None for a listener that is not advertised."""

    name: str
    protocol: str
    mechanisms: tuple[str, ...]
    host: str
    advertised: int | None
    users: bool
    """Whether PLAIN's users are in the listener's own configs."""


def draw_listeners(rng: random.Random) -> list[Drawn]:
    names = rng.sample(["PLAINTEXT", "INTERNAL", "ext", "Ext_2", "A-B.C", "SSL", "SASL_SSL"], 4)
    found: list[Drawn] = []
    for name in names[: rng.randrange(1, 5)]:
        protocol = rng.choice(["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
        mechanisms = tuple(rng.sample(MECHANISMS, rng.randrange(1, 4)))
        host = rng.choice(["127.0.0.1", "localhost", "broker.test"])
        port = rng.choice([0, rng.randrange(1, 60_000)])
        advertised = None if found and rng.random() < 0.25 else port
        found.append(
            Drawn(name.upper(), protocol, mechanisms if "SASL" in protocol else (), host,
                  advertised, rng.random() < 0.5)
        )  # fmt: skip
    return found


def configs_of(listeners: list[Drawn], rng: random.Random) -> dict[str, str]:
    """The configs as users write them: names in any case, blanks around commas."""

    def cased(name: str) -> str:
        return rng.choice([name, name.lower()])

    def listed(parts: list[str]) -> str:
        return rng.choice([",", " , "]).join(parts)

    configs = {
        "listeners": listed([f"{cased(each.name)}://127.0.0.1:0" for each in listeners]),
        "listener.security.protocol.map": listed(
            [f"{cased(each.name)}:{cased(each.protocol)}" for each in listeners]
        ),
        "advertised.listeners": listed(
            [f"{cased(each.name)}://{each.host}:{each.advertised}"
             for each in listeners if each.advertised is not None]
        ),
        "inter.broker.listener.name": cased(listeners[0].name),
    }  # fmt: skip
    shared = rng.random() < 0.5
    for each in listeners:
        prefix = f"listener.name.{each.name.lower()}."
        if each.mechanisms:
            configs[f"{prefix}sasl.enabled.mechanisms"] = ",".join(each.mechanisms)
            if each.users and "PLAIN" in each.mechanisms:
                configs[f"{prefix}plain.sasl.jaas.config"] = (
                    f'{PLAIN_LOGIN} required username="b" password="b" '
                    f'user_{each.name.lower()}="own";'
                )
        if "SSL" in each.protocol:
            configs[("" if shared else prefix) + "ssl.keystore.location"] = str(PEM)
            configs[("" if shared else prefix) + "ssl.keystore.type"] = "PEM"
    return configs


@pytest.mark.parametrize("number", range(CLUSTERS))
async def test_each_connection_sees_the_listener_it_came_in_on(number: int) -> None:
    rng = generator(f"listeners {number}")
    listeners = draw_listeners(rng)
    sasl = ["PLAIN:alice:secret", "SCRAM-SHA-256:alice:secret", "SCRAM-SHA-512:alice:secret"]
    async with MockCluster(
        2, topics=["foo:2:2"], sasl=sasl, ready_coordinators=True,
        broker_configs=configs_of(listeners, rng),
    ) as mock:  # fmt: skip
        assert [*mock.listeners[1]] == [each.name for each in listeners]
        await asyncio.gather(*(check(mock, each, broker_id)
                               for each in listeners for broker_id in (1, 2)))  # fmt: skip
        for each in listeners:
            chosen = mock.journal.select(listener=each.name, event="connected")
            assert {entry.broker_id for entry in chosen} == {1, 2}


async def check(mock: MockCluster, listener: Drawn, broker_id: int) -> None:
    tls = client_context() if "SSL" in listener.protocol else None
    address = mock.listeners[broker_id][listener.name]
    expected = {
        each: (listener.host, (listener.advertised + each - 1) if listener.advertised
               else int(mock.listeners[each][listener.name].rpartition(":")[2]))
        for each in (1, 2)
        if listener.advertised is not None
    }  # fmt: skip
    if listener.mechanisms:
        async with connected(mock, address, tls=tls) as wire:
            refused = await wire.ask(SaslHandshakeRequest(mechanism="NONE"), 1)
            assert refused.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
            assert refused.mechanisms == list(listener.mechanisms)
        if "PLAIN" not in listener.mechanisms:
            return
    async with connected(mock, address, tls=tls) as wire:
        await wire.ask(ApiVersionsRequest(client_software_name="w", client_software_version="1"), 3)
        if listener.mechanisms:
            await wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            user, password = (
                (listener.name.lower(), "own") if listener.users else ("alice", "secret")
            )
            token = f"\0{user}\0{password}".encode()
            done = await wire.ask(SaslAuthenticateRequest(auth_bytes=token), 2)
            assert not done.error_code, done.error_message
        await check_answers(wire, mock, expected)
        await check_answers(wire, mock, expected)  # out of the response cache


async def check_answers(
    wire: Wire, mock: MockCluster, expected: dict[int, tuple[str, int]]
) -> None:
    metadata = await wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="foo")]), 12)
    assert {each.node_id: (each.host, each.port) for each in metadata.brokers} == expected
    for partition in metadata.topics[0].partitions:
        reached = bool(expected)
        assert partition.error_code == (0 if reached else ErrorCode.LISTENER_NOT_FOUND)
        assert (partition.leader_id != -1) == reached
        assert partition.offline_replicas == ([] if reached else partition.replica_nodes)
    described = await wire.ask(DescribeClusterRequest(), 1)
    assert {each.broker_id: (each.host, each.port) for each in described.brokers} == expected
    found = await wire.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    (row,) = found.coordinators
    if expected:
        assert expected[row.node_id] == (row.host, row.port)
    else:
        assert row.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


# ---- what each config does -----------------------------------------------------------------------

TWO = {
    "listeners": "PLAINTEXT://127.0.0.1:0,EXTERNAL://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT",
}


async def test_requests_rules_and_filters_select_a_listener() -> None:
    async with MockCluster(1, topics=["foo:1:1"], broker_configs=TWO) as mock:
        rule = mock.fault(api="ListPartitionReassignments", listener="EXT*", error=29)
        codes = []
        for name in ("PLAINTEXT", "EXTERNAL"):
            async with connected(mock, mock.listeners[1][name]) as wire:
                answer = await wire.ask(
                    wire.codec.message("ListPartitionReassignmentsRequest")(), 0
                )
                codes.append(answer.error_code)
        assert codes == [0, 29]
        assert rule.hits == 1
        recorded = RecordedRequests(mock.journal)
        recorded.assert_requested("ListPartitionReassignments", times=1, listener="EXTERNAL")
        recorded.assert_not_requested("ListPartitionReassignments", listener="OTHER")
        assert [each.listener for each in recorded.requests()] == ["PLAINTEXT", "EXTERNAL"]


async def test_a_restarted_broker_has_all_its_listeners_again() -> None:
    async with MockCluster(2, broker_configs=TWO) as mock:
        before = mock.listeners
        await mock.stop_broker(2)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*before[2]["EXTERNAL"].split(":"))
        await mock.start_broker(2)
        assert mock.listeners == before
        async with connected(mock, before[2]["EXTERNAL"]) as wire:
            metadata = await wire.ask(MetadataRequest(topics=[]), 12)
            assert {f"{each.host}:{each.port}" for each in metadata.brokers} == {
                each["EXTERNAL"] for each in before.values()
            }
            assert mock.connections(2) == 1


@pytest.mark.parametrize("opens", ["open_listener", "start_broker"])
async def test_a_port_that_another_process_has_taken_meanwhile(opens: str) -> None:
    """No listener is open then, and later all are."""
    async with MockCluster(2, broker_configs=TWO) as mock:
        before = mock.listeners[2]
        await (mock.close_listener if opens == "open_listener" else mock.stop_broker)(2)
        host, port = before["EXTERNAL"].split(":")
        other = await asyncio.start_server(lambda _, writer: writer.close(), host, int(port))
        problem = rf"broker 2 cannot listen on {before['EXTERNAL']} \(EXTERNAL\): address already"
        with pytest.raises(ClusterError, match=problem):
            await getattr(mock, opens)(2)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*before["PLAINTEXT"].split(":"))
        other.close()
        await other.wait_closed()
        await getattr(mock, opens)(2)
        assert mock.listeners[2] == before
        for address in before.values():
            async with connected(mock, address) as wire:
                await wire.ask(MetadataRequest(topics=[]), 12)


async def test_the_limit_of_connections_is_that_of_the_broker() -> None:
    async with MockCluster(1, broker_configs=TWO, max_connections=1) as mock:
        first, second = mock.listeners[1].values()
        async with connected(mock, first) as wire:
            await wire.ask(MetadataRequest(topics=[]), 12)
            async with connected(mock, second) as another:
                assert await another.closed() == b""
            await wire.ask(MetadataRequest(topics=[]), 12)
        (refused,) = mock.journal.select(event="over-limit")
        assert refused.listener == "EXTERNAL"


async def test_a_rule_without_an_end_is_the_latency_of_a_listener() -> None:
    """The test compares the order of answers, not times: the quick listener answers the later
    request first."""
    async with MockCluster(1, broker_configs=TWO) as mock:
        mock.fault(listener="EXTERNAL", broker=1, delay="500ms")
        async with (
            connected(mock, mock.bootstrap_of("EXTERNAL")) as slow,
            connected(mock, mock.bootstrap_of("PLAINTEXT")) as quick,
        ):
            slow.send(slow.frame(MetadataRequest(topics=[]), 12))
            while not mock.journal.select(listener="EXTERNAL", direction="request"):
                await asyncio.sleep(0.001)
            await quick.ask(MetadataRequest(topics=[]), 12)
            assert not mock.journal.select(listener="EXTERNAL", direction="response")
            await slow.receive()


async def test_the_address_of_one_listener_changes() -> None:
    async with MockCluster(1, broker_configs=TWO) as mock:
        mock.advertise(1, "external://relay.test:7")
        mock.advertise(1, "inner.test:8")
        found = {}
        for name, address in mock.listeners[1].items():
            async with connected(mock, address) as wire:
                (broker,) = (await wire.ask(MetadataRequest(topics=[]), 12)).brokers
                found[name] = (broker.host, broker.port)
        assert found == {"PLAINTEXT": ("inner.test", 8), "EXTERNAL": ("relay.test", 7)}
        with pytest.raises(ClusterError, match="broker 1 has no listener OTHER; it has PLAINTEXT"):
            mock.advertise(1, "OTHER://x:1")


async def test_brokers_may_have_listeners_of_their_own() -> None:
    own = {2: {**TWO, "listeners": "PLAINTEXT://127.0.0.1:0"}}
    async with MockCluster(2, topics=["foo=2"], broker_configs=TWO, own_broker_configs=own) as mock:
        assert [[*each] for each in mock.listeners.values()] == [["PLAINTEXT", "EXTERNAL"],
                                                                 ["PLAINTEXT"]]  # fmt: skip
        assert mock.bootstrap_of("EXTERNAL") == mock.listeners[1]["EXTERNAL"]
        with pytest.raises(ClusterError, match="no listener 'SSL'; there are PLAINTEXT, EXTERNAL"):
            mock.bootstrap_of("SSL")
        async with connected(mock, mock.bootstrap_of("EXTERNAL")) as wire:
            metadata = await wire.ask(MetadataRequest(topics=None), 12)
            assert [each.node_id for each in metadata.brokers] == [1]
            (partition,) = metadata.topics[0].partitions
            assert partition.error_code == ErrorCode.LISTENER_NOT_FOUND
            assert partition.offline_replicas == [2]
            metadata = await wire.ask(MetadataRequest(topics=None), 5)
            (partition,) = metadata.topics[0].partitions
            assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE


async def test_zookeeper_and_other_brokers_learn_of_the_listeners() -> None:
    configs = {**TWO, "inter.broker.listener.name": "EXTERNAL"}
    async with MockCluster(
        2, topics=["foo=1,2"], profile="kafka-2.4", inter_broker=True, broker_configs=configs
    ) as mock:
        await mock.settled()
        found = mock.read_znode("/brokers/ids/1")
        assert found is not None
        registration = decode_broker("/brokers/ids/1", found[0])
        assert {
            each.listener: f"{each.host}:{each.port}" for each in registration.endpoints
        } == mock.listeners[1]
        host, port = mock.listeners[1]["EXTERNAL"].split(":")
        assert (mock.cluster.brokers[1].host, mock.cluster.brokers[1].port) == (host, int(port))
        sent = mock.journal.select(api="UpdateMetadata", direction="request", broker_id=2)
        body: Any = sent[-1].decode(mock.dialect).body
        assert {
            each.listener: f"{each.host}:{each.port}" for each in body.live_brokers[0].endpoints
        } == mock.listeners[1]


async def test_scram_users_come_from_the_cluster() -> None:
    configs = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    }
    async with MockCluster(1, broker_configs=configs) as mock:
        mock.cluster.scram.store("SCRAM-SHA-256", "bob", scram_keys("b"), "test")
        async with Admin(
            mock.bootstrap_of("SASL_PLAINTEXT"), default_timeout_ms=SOON,
            sasl=SaslScram("SCRAM-SHA-256", "bob", "b"),
        ) as admin:  # fmt: skip
            assert await admin.list_partition_reassignments() == {}


def scram_keys(password: str) -> Any:
    import scramp

    return scramp.ScramMechanism("SCRAM-SHA-256").make_auth_info(password)


async def test_unsecured_tokens_follow_the_options_of_the_listener() -> None:
    login = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    configs = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "oauthbearer.sasl.jaas.config": f"{login} required unsecuredValidatorRequiredScope=kafka;",
    }
    token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJib2IiLCJleHAiOjk5OTk5OTk5OTl9."
    async with (
        MockCluster(1, broker_configs=configs) as mock,
        connected(mock, mock.bootstrap_of("SASL_PLAINTEXT")) as wire,
    ):
        await wire.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
        first = f"n,,\x01auth=Bearer {token}\x01\x01".encode()
        answer = await wire.ask(SaslAuthenticateRequest(auth_bytes=first), 2)
        assert b"insufficient_scope" in answer.auth_bytes


# ---- key stores ----------------------------------------------------------------------------------


def stores(folder: Path, kind: str) -> dict[str, str]:
    """The configs of a key store and a trust store with one certificate."""
    text = PEM.read_text("ascii")
    begin = text.index("-----BEGIN CERTIFICATE")
    end = text.index("-----END CERTIFICATE-----") + len("-----END CERTIFICATE-----")
    certificate, key = text[begin:end], text[:begin] + text[end:]
    if kind == "texts":
        return {
            "ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": certificate,
            "ssl.keystore.key": key, "ssl.truststore.certificates": certificate,
        }  # fmt: skip
    if kind == "encrypted":
        from cryptography.hazmat.primitives import serialization as forms

        key = forms.load_pem_private_key(key.encode(), None).private_bytes(
            forms.Encoding.PEM, forms.PrivateFormat.PKCS8,
            forms.BestAvailableEncryption(b"key-secret"),
        ).decode()  # fmt: skip
        return {
            "ssl.keystore.certificate.chain": certificate, "ssl.keystore.key": key,
            "ssl.key.password": "key-secret", "ssl.truststore.certificates": certificate,
        }  # fmt: skip
    if kind == "pem":
        return {"ssl.keystore.location": str(PEM), "ssl.truststore.location": str(PEM)}
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization import pkcs12

    chain = x509.load_pem_x509_certificate(certificate.encode())
    private = serialization.load_pem_private_key(key.encode(), None)
    protection = serialization.BestAvailableEncryption(b"changeit")
    data = pkcs12.serialize_key_and_certificates(b"localhost", private, chain, None, protection)
    (folder / "keys.jks").write_bytes(data)
    trust = pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(chain, b"ca")], protection)
    (folder / "trust.jks").write_bytes(trust)
    return {
        "ssl.keystore.location": str(folder / "keys.jks"), "ssl.keystore.password": "changeit",
        "ssl.truststore.location": str(folder / "trust.jks"),
        "ssl.truststore.password": "changeit",
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["pem", "texts", "encrypted", "pkcs12"])
async def test_client_certificates_are_a_matter_of_the_listener(tmp_path: Path, kind: str) -> None:
    configs = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,MUTUAL://127.0.0.1:0,"
        "SASL_SSL://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,MUTUAL:SSL,"
        "SASL_SSL:SASL_SSL",
        "ssl.enabled.protocols": "TLSv1.2",
        **stores(tmp_path, kind),
        "listener.name.mutual.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN",
    }
    async with MockCluster(1, broker_configs=configs, sasl=["PLAIN:alice:secret"]) as mock:
        for name, certificate in (("SSL", False), ("MUTUAL", True)):
            async with connected(
                mock, mock.bootstrap_of(name), tls=client_context(certificate=certificate)
            ) as wire:
                tls = wire.writer.get_extra_info("ssl_object")
                assert tls.version() == "TLSv1.2"
                await wire.ask(MetadataRequest(topics=[]), 12)
        with pytest.raises((ConnectionError, ssl.SSLError)):  # in TLS 1.2 the handshake fails
            async with connected(mock, mock.bootstrap_of("MUTUAL"), tls=client_context()):
                pass
        async with Admin(
            mock.bootstrap_of("SASL_SSL"), ssl=client_context(), sasl=SaslPlain("alice", "secret"),
            default_timeout_ms=SOON,
        ) as admin:  # fmt: skip
            assert await admin.list_partition_reassignments() == {}
    by_name = {each.listener for each in mock.journal.select(direction="request")}
    assert by_name == {"SSL", "MUTUAL", "SASL_SSL"}


@pytest.mark.parametrize(
    ("configs", "problem"),
    [
        ({}, "listener.name.ssl.ssl.keystore.location: listener SSL speaks SSL and needs a"),
        ({"ssl.keystore.location": "/nowhere"}, "/nowhere: No such file or directory"),
        ({"ssl.keystore.location": os.__file__}, "cannot be read as PKCS12"),
        ({"ssl.keystore.certificate.chain": "x"}, "needs the private key; set ssl.keystore.key"),
        ({"ssl.keystore.certificate.chain": "x", "ssl.keystore.key": "y"},
         "the key store cannot be used: it must be PEM"),
        ({"ssl.keystore.location": str(PEM), "ssl.client.auth": "maybe"},
         "broker config ssl.client.auth: Invalid value maybe: String must be one of: required"),
        ({"ssl.keystore.location": str(PEM), "ssl.client.auth": "required"},
         "ssl.client.auth needs the authorities of clients; set ssl.truststore.location"),
        ({"ssl.keystore.location": str(PEM), "ssl.enabled.protocols": "SSLv3"},
         "'SSLv3' has no version that OpenSSL offers; use one of TLSv1.2, TLSv1.3"),
    ],
)  # fmt: skip
def test_key_stores_that_cannot_be_used(configs: dict[str, str], problem: str) -> None:
    listeners = {"listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"}
    with pytest.raises(ClusterError) as refused:
        MockCluster(1, broker_configs={**listeners, **configs})
    assert problem in str(refused.value)


def test_an_old_key_store_says_how_to_convert_it(tmp_path: Path) -> None:
    (tmp_path / "old.jks").write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    configs = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "ssl.keystore.location": str(tmp_path / "old.jks"),
    }
    with pytest.raises(ClusterError, match=r"has the format JKS; convert it: keytool .*PKCS12$"):
        MockCluster(1, broker_configs=configs)
