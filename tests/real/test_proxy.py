"""Released clients through a proxy, in front of real Kafka.

A run draws one release and one client by the seed, beside kafka-python that sees Kafka 2.4;
``KPROTO_FULL=1`` runs all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kproto.journal import Journal
from mockbroker.proxy.kafka_proxy import KafkaProxy, ProxyOptions
from tests.mockbroker.clients import test_python_clients as python_clients
from tests.mockbroker.clients.programs import run
from tests.mockbroker.clients.scenario import play
from tests.mockbroker.clients.test_go_clients import build
from tests.mockbroker.clients.test_java_clients import run_java
from tests.real.kafka import RealKafka
from tests.support.full import drawn
from tests.support.toolchain import require, require_module

RELEASES = ("3.9.2", "4.4.0")
BROKERS = (1, 2, 3)
TOPICS = (("foo", 4), ("bar", 1))

Scenario = Callable[[str, KafkaProxy, Path], Awaitable[None]]


async def java_round_trip(release: str, proxy: KafkaProxy, _folder: Path) -> None:
    assert await run_java(release, "RoundTrip.java", proxy.bootstrap) == "ok 60"


async def java_transactions(release: str, proxy: KafkaProxy, _folder: Path) -> None:
    assert await run_java(release, "Transactions.java", proxy.bootstrap) == "ok 15"


async def franz_go(_release: str, proxy: KafkaProxy, folder: Path) -> None:
    require("go")
    program = await asyncio.to_thread(build, "franz", folder)
    out = await run(str(program), proxy.bootstrap)
    assert out.split()[-2:] == ["ok", "60"]


async def kafka_python(_release: str, proxy: KafkaProxy, _folder: Path) -> None:
    require_module("kafka")
    await asyncio.to_thread(play, python_clients.KafkaPython(proxy.bootstrap))


async def confluent(_release: str, proxy: KafkaProxy, _folder: Path) -> None:
    require_module("confluent_kafka")
    await asyncio.to_thread(play, python_clients.Confluent(proxy.bootstrap))


SCENARIOS: tuple[Scenario, ...] = (
    java_round_trip, java_transactions, franz_go, kafka_python, confluent
)  # fmt: skip


def prepare(bootstrap: str) -> None:
    """Create the topics anew, and forget the group: by an admin client, through the proxy."""
    kafka_of: Any = require_module("confluent_kafka")
    admin_of: Any = require_module("confluent_kafka.admin")
    admin = admin_of.AdminClient({"bootstrap.servers": bootstrap})
    present = set(admin.list_topics(timeout=30).topics)
    old = [name for name, _ in TOPICS if name in present]
    for each in admin.delete_topics(old).values() if old else ():
        each.result(30)
    groups = [each.group_id for each in admin.list_consumer_groups().result(30).valid]
    for each in admin.delete_consumer_groups(groups).values() if groups else ():
        # It has gone by itself if its offsets went with the topics.
        with contextlib.suppress(kafka_of.KafkaException):
            each.result(30)
    # The clients write records of 2023, which would be deleted.
    kept = {"retention.ms": "-1"}
    new = [admin_of.NewTopic(name, count, 3, config=kept) for name, count in TOPICS]
    for each in admin.create_topics(new).values():
        each.result(30)


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.requirement("DP-PROXY-01", "DP-PROXY-03", "DP-PROXY-20", "DP-PROXY-21", "DP-PROXY-26")
@pytest.mark.parametrize("release", drawn("releases behind the proxy", RELEASES, 1))
async def test_clients_through_the_proxy(release: str, tmp_path: Path) -> None:
    require("java", "maven")
    chosen = drawn(f"clients through the proxy to {release}", SCENARIOS, 1)
    folder = tmp_path / "kafka"
    folder.mkdir()
    kafka = RealKafka(release, folder, zookeeper=False, broker_ids=BROKERS)
    await asyncio.to_thread(kafka.__enter__)
    try:
        upstream = [("127.0.0.1", kafka.ports[1])]
        async with KafkaProxy(ProxyOptions(upstream=upstream, detail="frames")) as proxy:
            assert sorted(proxy.addresses) == list(BROKERS)
            for scenario in chosen:
                await asyncio.to_thread(prepare, proxy.bootstrap)
                await scenario(release, proxy, tmp_path)
            check(proxy.journal)
        old = ProxyOptions(upstream=upstream, detail="frames", profile="kafka-2.4")
        async with KafkaProxy(old) as proxy:
            await asyncio.to_thread(prepare, proxy.bootstrap)
            proxy.journal.clear()
            await kafka_python(release, proxy, tmp_path)
            check(proxy.journal)
            highest = max(each.api_version or 0 for each in
                          proxy.journal.select(api="Fetch", direction="request"))  # fmt: skip
            assert highest <= 11
    finally:
        await asyncio.to_thread(kafka.close)


def check(journal: Journal) -> None:
    """Nothing went wrong, and each answer can be decoded."""
    events = ("malformed", "upstream-malformed", "failed")
    assert [(each.event, each.note) for each in journal if each.event in events] == []
    for entry in journal:
        # librdkafka sends requests with bytes left over, which brokers accept.
        if entry.raw and entry.direction == "response":
            decoded = entry.decode()
            assert decoded.error is None, (entry.api_key, entry.api_version, decoded.error)
