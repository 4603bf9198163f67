"""A ``server.properties`` with three listeners that three clients use at the same time, and what
``mockbroker serve``, HTTP and the fixture make of listeners."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mockbroker.cli import cli
from mockbroker.running.fixture import MockKafkaFactory
from tests.mockbroker.control.test_command_line import serving
from tests.support.toolchain import require_module

PEM = Path(__file__).parents[2] / "client" / "localhost.pem"
MESSAGES = 30
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"

PROPERTIES = f"""\
# A broker as an operator writes it.
node.id=1
process.roles=broker,controller
controller.listener.names=CONTROLLER
listeners=INTERNAL://127.0.0.1:0,CONTROLLER://127.0.0.1:0,\\
          EXTERNAL://127.0.0.1:0,PARTNERS://127.0.0.1:0
advertised.listeners=INTERNAL://127.0.0.1:0,EXTERNAL://localhost:0,PARTNERS://localhost:0
listener.security.protocol.map=CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,\\
          EXTERNAL:SASL_PLAINTEXT,PARTNERS:SASL_SSL
inter.broker.listener.name=INTERNAL
listener.name.external.sasl.enabled.mechanisms=PLAIN
listener.name.external.plain.sasl.jaas.config={PLAIN_LOGIN} required \\
          user_alice="alice-secret";
listener.name.partners.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.partners.ssl.keystore.type=PEM
listener.name.partners.ssl.keystore.location={PEM}
num.partitions=3
"""


def with_kafka_python(bootstrap: str) -> set[bytes]:
    kafka = require_module("kafka")
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(MESSAGES):
        producer.send("orders", b"kafka-python %d" % number).get(timeout=30)
    producer.close()
    consumer = kafka.KafkaConsumer(
        "orders", bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id="internal",
        consumer_timeout_ms=30_000,
    )  # fmt: skip
    found = set()
    for record in consumer:
        found.add(record.value)
        if len(found) == 3 * MESSAGES:
            break
    consumer.close()
    return found


def with_aiokafka(bootstrap: str) -> set[bytes]:
    import asyncio

    aiokafka = require_module("aiokafka")
    settings = {
        "bootstrap_servers": bootstrap, "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN", "sasl_plain_username": "alice",
        "sasl_plain_password": "alice-secret",
    }  # fmt: skip

    async def run() -> set[bytes]:
        async with aiokafka.AIOKafkaProducer(**settings) as producer:
            for number in range(MESSAGES):
                await producer.send_and_wait("orders", b"aiokafka %d" % number)
        found: set[bytes] = set()
        async with aiokafka.AIOKafkaConsumer(
            "orders", group_id="external", auto_offset_reset="earliest", **settings
        ) as consumer:
            async with asyncio.timeout(60):
                while len(found) < 3 * MESSAGES:
                    found.add((await consumer.getone()).value)
        return found

    return asyncio.run(run())


def with_confluent(bootstrap: str) -> set[bytes]:
    confluent = require_module("confluent_kafka")
    settings = {
        "bootstrap.servers": bootstrap, "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "bob", "sasl.password": "bob-secret",
        "ssl.ca.location": str(PEM),
    }  # fmt: skip
    producer = confluent.Producer(settings)
    for number in range(MESSAGES):
        producer.produce("orders", b"confluent %d" % number)
    assert producer.flush(60) == 0
    consumer = confluent.Consumer(
        {**settings, "group.id": "partners", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    found = set()
    for _ in range(600):
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            found.add(message.value())
        if len(found) == 3 * MESSAGES:
            break
    consumer.close()
    return found


@pytest.mark.slow
def test_three_clients_use_three_listeners_at_once(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(PROPERTIES, "ascii")
    with serving(
        "--brokers", "3", "--properties", str(file), "--topic", "orders:3:2", "--control",
        "127.0.0.1:0", "--sasl", "SCRAM-SHA-512:bob:bob-secret",
    ) as (process, ready):  # fmt: skip
        assert process.poll() is None, process.stderr and process.stderr.read()
        names = ["INTERNAL", "EXTERNAL", "PARTNERS", "CONTROLLER"]
        assert [*ready["listeners"]["3"]] == names
        assert ready["bootstrap"] == ",".join(
            each["INTERNAL"] for each in ready["listeners"].values()
        )
        clients: dict[str, Callable[[str], set[bytes]]] = {
            "INTERNAL": with_kafka_python, "EXTERNAL": with_aiokafka, "PARTNERS": with_confluent,
        }  # fmt: skip
        with ThreadPoolExecutor(3) as pool:
            running = {
                name: pool.submit(
                    client,
                    ",".join(each[name] for each in ready["listeners"].values())
                    .replace("127.0.0.1", "127.0.0.1" if name == "INTERNAL" else "localhost"),
                )
                for name, client in clients.items()
            }  # fmt: skip
            found = {name: each.result(120) for name, each in running.items()}
        words = ("kafka-python", "aiokafka", "confluent")
        sent = {f"{word} {n}".encode() for word in words for n in range(MESSAGES)}
        assert found == dict.fromkeys(clients, sent)
        # Each client kept to its listener, and was sent nowhere else.
        own = {"INTERNAL": "kafka-python-", "EXTERNAL": "aiokafka-", "PARTNERS": "rdkafka"}
        for name, expected in own.items():
            entries = get(f"{ready['control']}/journal?direction=request&listener={name}")
            assert {each["listener"] for each in entries} == {name}
            assert {each["broker_id"] for each in entries} == {1, 2, 3}
            ids = {each.get("client_id", expected) for each in entries}
            assert all(each.startswith(expected) for each in ids), ids


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


# ---- refusals ------------------------------------------------------------------------------------

TWO = "listeners=PLAINTEXT://127.0.0.1:0,EXTERNAL://127.0.0.1:0\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"a=b\n{TWO}", ":2: listeners: No security protocol defined for listener EXTERNAL; add "
         "EXTERNAL:PLAINTEXT, or another protocol, to listener.security.protocol.map"),
        ("listeners=PLAINTEXT://:1,SSL://:1", ":1: listeners: Each listener must have a different "
         "port, listeners: PLAINTEXT://:1,SSL://:1"),
        ("listeners=PLAINTEXT:/x", ":1: listeners: Unable to parse PLAINTEXT:/x to a broker "
         "endpoint; use NAME://HOST:PORT"),
        ("listeners=PLAINTEXT://h:99999", ":1: listeners: PLAINTEXT://h:99999: the port must be"),
        ("listeners=SSL://h:0\nsecurity.inter.broker.protocol=PLAINTEXT", "inter.broker.listener."
         "name must be a listener name defined in advertised.listeners. The valid "
         "options based on currently configured listeners are SSL"),
        (f"{TWO}listener.security.protocol.map=PLAINTEXT:PLAINTEXT,EXTERNAL:TLS",
         ":2: listener.security.protocol.map: Invalid security protocol `TLS` defined in "
         "listener.security.protocol.map; use PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("listeners=PLAINTEXT://0.0.0.0:0", "advertised.listeners cannot use the nonroutable "
         "meta-address 0.0.0.0. Use a routable IP address."),
        ("listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0\n"
         "sasl.enabled.mechanisms=GSSAPI", ":2: sasl.enabled.mechanisms: 'GSSAPI' (the default is "
         "GSSAPI, which needs Kerberos): a mock cluster has PLAIN, SCRAM-SHA-256,"),
        ("listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0\n"
         "sasl.enabled.mechanisms=PLAIN", "listener SASL_PLAINTEXT has no users for PLAIN; set "
         "listener.name.sasl_plaintext.plain.sasl.jaas.config="),
        ("listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0\n"
         "sasl.enabled.mechanisms=PLAIN\nplain.sasl.jaas.config=x required user_a=b",
         ":3: plain.sasl.jaas.config: JAAS config entry not terminated by semi-colon"),
        ("listeners=PLAINTEXT://:9092,EXT://:9093\nlistener.security.protocol.map=PLAINTEXT:"
         "PLAINTEXT,EXT:PLAINTEXT", ":1: listeners: listener PLAINTEXT of broker 2 would have "
         ":9093, as listener EXT of broker 1: broker n listens on PORT + n - 1; leave 3 ports "),
        ("listeners=PLAINTEXT://:65534", ":1: listeners: the ports from 65534 on exceed 65535"),
        (f"{TWO}listener.name.EXTERNAL.ssl.client.auth=required\nlistener.security.protocol.map="
         "PLAINTEXT:PLAINTEXT,EXTERNAL:SSL", ":2: listener.name.EXTERNAL.ssl.client.auth: Kafka "
         "ignores the prefix of a listener in upper case; use listener.name.external."),
        ("process.roles=controller\nlisteners=PLAINTEXT://:0", ":1: process.roles: these are the "
         "configs of a controller; give those of a broker"),
        ("process.roles=broker,wizard\nlisteners=PLAINTEXT://:0", ":1: process.roles: Unknown "
         "process role 'wizard' (only 'broker' and 'controller' are allowed roles)"),
    ],
)  # fmt: skip
def test_a_refusal_says_where_and_what_to_do(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "server.properties"
    file.write_text(text, "ascii")
    result = CliRunner().invoke(cli, ["serve", "--properties", str(file)])
    assert (result.exit_code, problem in result.output) == (2, True), result.output


def test_addresses_come_from_one_place() -> None:
    words = ["serve", "--broker-config", "listeners=PLAINTEXT://:0", "--listen", "127.0.0.1:9092"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 2
    assert "from these configs or from the options host, port and advertise" in result.output


@pytest.mark.slow
def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with serving("--brokers", "1") as (_, ready):
        words = ["--brokers", "1", "--broker-config", f"listeners=PLAINTEXT://{ready['bootstrap']}"]
        with serving(*words) as (second, nothing):
            assert nothing == {}
            assert second.stderr is not None
            problem = second.stderr.read()
    assert f"listeners: cannot listen on {ready['bootstrap']}: address already in use" in problem


@pytest.mark.slow
def test_over_http(tmp_path: Path) -> None:
    with serving("--no-cluster", "--control", "127.0.0.1:0") as (_, ready):
        configs = {
            "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
            "ssl.keystore.location": str(PEM),
        }
        with pytest.raises(urllib.error.HTTPError) as refused:
            post(f"{ready['control']}/clusters", {"brokers": 1, "broker_configs": configs})
        text = json.load(refused.value)["error"]
        assert "broker config ssl.keystore.location: a file would be one on the server's" in text
        pem = PEM.read_text("ascii")
        end = pem.index("-----END PRIVATE KEY-----") + len("-----END PRIVATE KEY-----")
        configs |= {"ssl.keystore.key": pem[:end], "ssl.keystore.certificate.chain": pem[end:]}
        del configs["ssl.keystore.location"]
        made = post(f"{ready['control']}/clusters", {"brokers": 1, "broker_configs": configs})
        assert [*made["listeners"]["1"]] == ["PLAINTEXT", "SSL"]
        host, port = made["listeners"]["1"]["SSL"].split(":")
        assert "BEGIN CERTIFICATE" in ssl.get_server_certificate((host, int(port)))


def post(url: str, body: Any) -> Any:
    asked = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return json.load(answer)


def test_in_the_fixture(mock_kafka_factory: MockKafkaFactory) -> None:
    mock = mock_kafka_factory(
        brokers=1,
        topics=["foo:1:1"],
        broker_configs={
            "listeners": "PLAINTEXT://127.0.0.1:0,EXTERNAL://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT",
        },
    )
    kafka = require_module("kafka")
    producer = kafka.KafkaProducer(bootstrap_servers=mock.bootstrap_of("EXTERNAL"))
    producer.send("foo", b"x").get(timeout=30)
    producer.close()
    mock.assert_requested("Produce", times=1, listener="EXTERNAL")
    mock.assert_not_requested("Produce", listener="PLAINTEXT")
    assert mock.wait_for("Produce", listener="EXTERNAL").listener == "EXTERNAL"
