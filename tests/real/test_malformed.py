"""What the mock does to damaged requests, real Kafka does too, but for the differences that
``kspec/clientfuzz/brokers/expected.yaml`` lists with their reasons; and both stay up."""

from __future__ import annotations

from pathlib import Path

import pytest

import kproto
from kproto.client import Connection
from kspec.clientfuzz.bases import Base, bases_of
from kspec.clientfuzz.brokers.address import Address, parse_address
from kspec.clientfuzz.brokers.run import EXCLUDED_APIS, play
from mockbroker import MockCluster
from tests.real.kafka import RealKafka
from tests.support.full import either
from tests.support.toolchain import require

KAFKA = kproto.dialect("kafka")
SEED = 455
CASES = either(1500, sampled=400)


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.parametrize(("release", "profile"), [("4.4.0", "kafka-4.4"), ("3.9.2", "kafka-3.9")])
async def test_the_mock_closes_and_answers_as_kafka_does(
    release: str, profile: str, tmp_path: Path
) -> None:
    require("java", "maven")
    with RealKafka(release, tmp_path, zookeeper=False, broker_ids=(1,)) as kafka:
        async with MockCluster(brokers=1, profile=profile) as mock:
            targets = {
                "mock": parse_address(mock.addresses[1]),
                "kafka": Address("127.0.0.1", kafka.ports[1]),
            }
            chosen = [each for each in await _both(targets) if each.api_key not in EXCLUDED_APIS]
            aimed = await play(KAFKA, chosen, targets, seed=SEED, cases=CASES)
        kafka.check_running()
    assert aimed.down is None
    assert aimed.cases == CASES
    assert [(str(each.cause), each.case.number) for each in aimed.findings] == []
    assert aimed.known


async def _both(targets: dict[str, Address]) -> list[Base]:
    """What both serve."""
    chosen = bases_of(KAFKA, [], "request")
    for address in targets.values():
        async with await Connection.open(address.host, address.port) as connection:
            served = connection.peer_versions or {}
        chosen = [
            each
            for each in chosen
            if each.api_key in served and each.version in served[each.api_key]
        ]
    return chosen
