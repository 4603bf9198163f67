"""Requests that the mock does not serve are reported once for each client, and what released
clients make of the answers."""

import asyncio
import logging
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mockbroker import MockCluster
from mockbroker.apis.registry import HANDLERS
from mockbroker.options.option_types import parse_api_override
from mockbroker.simulation.cluster import Cluster
from tests.mockbroker.broker import DirectBroker
from tests.support.requests import request_of
from tests.support.toolchain import require_module

SECONDS = 30
ROOT = Path(__file__).parents[3]

TOPIC = "foo"
LOGGER = "mockbroker.unserved"


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.WARNING, LOGGER)
    return lambda: [each.getMessage() for each in caplog.records if each.name == LOGGER]


def test_an_api_without_a_handler_is_reported_once(lines: Callable[[], list[str]]) -> None:
    broker = DirectBroker(Cluster(1), profile_name="kafka-2.4")
    for _ in range(3):
        assert broker.ask("ControlledShutdown", 2).error_code == 35
        assert broker.ask("Metadata", 9, topics=None).brokers
    (line,) = lines()
    assert line.startswith("ControlledShutdown (7) v2 from client id 'test': ")
    assert "the mock has no handler" in line
    assert "serve --reply 7=FILE.json" in line
    assert "--advertise implemented" in line


def test_a_version_or_api_that_is_not_advertised_is_reported(lines):
    broker = DirectBroker(
        Cluster(1), apis=dict(map(parse_api_override, ("41=0-2", "40=off", "71=off")))
    )
    for _ in range(2):
        assert broker.ask("DescribeDelegationToken", 3) is None
        assert broker.ask("ExpireDelegationToken", 2) is None
        assert broker.ask("GetTelemetrySubscriptions", 0) is None
    first, second, third = lines()
    assert "DescribeDelegationToken (41) v3" in first
    assert "serves v0-2" in first
    assert "--api 41=3" in first
    for line, name in (
        (second, "ExpireDelegationToken (40) v2"),
        (third, "GetTelemetrySubscriptions"),
    ):
        assert name in line
        assert "does not serve this API" in line


def test_a_version_that_no_schema_defines_is_not_suggested(lines: Callable[[], list[str]]) -> None:
    broker = DirectBroker(Cluster(1))
    broker.send(bytes.fromhex("0000000c 0010 7fff 00000001 ffff 0000"))
    broker.send(bytes.fromhex("0000000c 7000 0000 00000002 ffff 0000"))
    for line in lines():
        assert line.endswith("; the schemas do not define it, so check what the client sends")
    assert len(lines()) == 2


def test_what_clients_negotiate_is_not_reported(lines: Callable[[], list[str]]) -> None:
    broker = DirectBroker(Cluster(1), profile_name="kafka-2.4")
    for version in range(5):
        request = request_of("ApiVersions", client_software_name="c", client_software_version="1")
        frame = broker.codec.encode_request(request, api_version=version, correlation_id=1)
        assert isinstance(broker.send(frame), bytes)
    assert lines() == []


def test_the_number_of_lines_is_bounded(lines: Callable[[], list[str]]) -> None:
    broker = DirectBroker(Cluster(1), profile_name="kafka-2.4")
    frames = [
        broker.codec.encode_request(
            request_of("ControlledShutdown"),
            api_version=2,
            correlation_id=number,
            client_id=f"{number}\n\x1b[31m" + "x" * 1000,
        )
        for number in range(1000)
    ]
    for frame in frames:
        broker.send(frame)
    found = lines()
    assert len(found) == 101
    assert found[-1].startswith("100 requests that are not served have been reported")
    assert all(each.isprintable() and len(each) < 500 for each in found)


@pytest.mark.parametrize(
    ("key_type", "key", "needs"),
    [
        (0, "g", ("8=off", "11=off", "68=off", "76=off", "88=off")),
        (1, "t", ("22=off",)),
        (2, "g:AAAAAAAAAAAAAAAAAAAAAQ:0", ("83=off",)),
    ],
)
def test_a_broker_without_the_coordinators_apis_says_so(key_type, key, needs):
    request = request_of("FindCoordinator", key_type=key_type, coordinator_keys=[key])
    (row,) = DirectBroker(Cluster(1)).ask(request, 6).coordinators
    assert row.error_code == 15
    hidden = DirectBroker(Cluster(1), apis=dict(map(parse_api_override, needs)))
    (row,) = hidden.ask(request, 6).coordinators
    assert (row.error_code, row.node_id) == (35, -1)
    assert row.error_message.startswith("This broker has no coordinator")


# ---- released clients ----------------------------------------------------------------------------


def kafka_python_producer(bootstrap: str) -> None:
    kafka = require_module("kafka")
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap, client_id="producer", max_block_ms=1000,
        transactional_id="t",
    )  # fmt: skip
    try:
        with pytest.raises(kafka.errors.KafkaError):
            producer.init_transactions()
    finally:
        producer.close(0.1)


def kafka_python_group(bootstrap: str) -> Any:
    kafka = require_module("kafka")
    consumer = kafka.KafkaConsumer(
        TOPIC, bootstrap_servers=bootstrap, group_id="g", client_id="consumer"
    )
    try:
        return consumer.poll(300)
    except kafka.errors.KafkaError as error:
        return type(error).__name__
    finally:
        consumer.close()


def confluent_producer(bootstrap: str) -> None:
    confluent = require_module("confluent_kafka")
    settings = {"bootstrap.servers": bootstrap, "client.id": "producer", "log_level": 0}
    producer = confluent.Producer({**settings, "transactional.id": "t"})
    with pytest.raises(confluent.KafkaException, match="UNSUPPORTED_VERSION"):
        producer.init_transactions(2)


def confluent_group(bootstrap: str) -> Any:
    confluent = require_module("confluent_kafka")
    consumer = confluent.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "g", "client.id": "consumer", "log_level": 0}
    )
    consumer.subscribe([TOPIC])
    try:
        found = consumer.poll(3)  # librdkafka looks for its coordinator every second
        return {} if found is None else found.error().str()
    finally:
        consumer.close()


def aiokafka_producer(bootstrap: str) -> None:
    """aiokafka retries some errors for ever, so it runs in a process that can be killed."""
    require_module("aiokafka")
    program = f"""if True:
        import asyncio, aiokafka
        async def main():
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers={bootstrap!r}, client_id="producer", retry_backoff_ms=20,
                transactional_id="t",
            )
            await producer.start()
        asyncio.run(main())
    """
    done = subprocess.run(
        [sys.executable, "-c", program], timeout=SECONDS, capture_output=True, text=True
    )
    assert "UnsupportedVersionError" in done.stderr


async def aiokafka_group(bootstrap: str) -> Any:
    aiokafka = require_module("aiokafka")
    consumer = aiokafka.AIOKafkaConsumer(
        TOPIC, bootstrap_servers=bootstrap, group_id="g", client_id="consumer"
    )
    try:
        await asyncio.wait_for(consumer.start(), 1)
    except TimeoutError:
        return {}
    except aiokafka.errors.KafkaError as error:
        return type(error).__name__
    finally:
        await consumer.stop()


def of_aiokafka(work: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda bootstrap: asyncio.run(work(bootstrap))


async def run_client(work: Callable[[str], Any], mock: MockCluster) -> Any:
    return await asyncio.wait_for(asyncio.to_thread(work, mock.bootstrap), SECONDS)


SOFTWARE = {
    "kafka-python": "kafka-python [0-9.]+, client id",
    "confluent": "confluent-kafka-python [^ ]+, client id",
    "aiokafka": "client id",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("client", "work", "api"),
    [
        ("kafka-python", kafka_python_producer, "InitProducerId (22)"),
        ("confluent", confluent_producer, "InitProducerId (22)"),
        ("aiokafka", aiokafka_producer, "InitProducerId (22)"),
    ],
)
async def test_what_a_client_meets_is_reported_once(
    client: str, work: Callable[[str], Any], api: str, lines: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.delitem(HANDLERS, 22)
    async with MockCluster(topics=["foo:1:1"]) as mock:
        await run_client(work, mock)
        (line,) = lines()
        assert re.match(
            rf"{re.escape(api)} v\d+ from {SOFTWARE[client]} '(producer|consumer)': ", line
        )
        number = int(re.findall(r"\((\d+)\)", line)[0])
        assert mock.journal.select(api=number, direction="request")


@pytest.mark.slow
@pytest.mark.parametrize(
    "work", [kafka_python_group, confluent_group, of_aiokafka(aiokafka_group)],
    ids=["kafka-python", "confluent", "aiokafka"],
)  # fmt: skip
@pytest.mark.requirement("DP-COORD-02")
async def test_group_consumers_find_their_coordinator(work, lines):
    async with MockCluster(topics=["foo:1:1"]) as mock:
        await run_client(work, mock)
        entries = mock.journal.select(api=10, direction="response")
        answers: list[Any] = [each.decode().body for each in entries]
        codes = {row.error_code for each in answers for row in each.coordinators or [each]}
        assert codes == {0, 15}
        assert not [line for line in lines() if "FindCoordinator" in line]


PROGRAM = """if True:
    import sys
    from mockbroker.__main__ import main
    from mockbroker.apis.registry import HANDLERS
    del HANDLERS[22]
    sys.exit(main())
"""


@pytest.mark.slow  # a process
def test_serve_prints_the_report_on_standard_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "serve", "--topic", "foo:1:1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        bootstrap = re.findall(r"127\.0\.0\.1:\d+", process.stdout.readline())[0]
        confluent_producer(bootstrap)
        process.terminate()
        _, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.communicate()
    (line,) = err.splitlines()
    assert line.startswith("mockbroker: InitProducerId (22) v")
    assert "serve --reply 22=FILE.json" in line
