"""A running Kafka and a running mock as the clusters of a comparison, and what both serve."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from kproto.messages import ApiVersionsRequest, MetadataRequest
from kproto.schema.versions import Versions
from mockbroker import MockCluster
from mockbroker.apis.common.dialect_handlers import dialect_handlers
from tests.real.data.clusters import BROKER_IDS, DataKafka
from tests.real.data.side import CLOSED, Cluster, Failed, Side

__all__ = ["PROFILES", "clusters_of", "real_cluster"]

PROFILES: Final = {"3.9.2": "kafka-3.9", "4.4.0": "kafka-4.4"}
PATIENCE: Final = 60.0


async def real_cluster(kafka: DataKafka) -> tuple[Cluster, dict[int, Versions]]:
    """Kafka once both brokers list each other, with its internal topics, and what it serves."""
    cluster = Cluster({i: ("127.0.0.1", port) for i, port in kafka.ports.items()})
    side = Side(cluster, "warm-up", 18, 0, {})
    try:
        deadline = time.monotonic() + PATIENCE
        for broker in BROKER_IDS:
            while True:
                answer = await side.exchange(MetadataRequest(topics=[]), 4, broker, "main")
                if answer is not CLOSED and len(answer.brokers) == len(BROKER_IDS):
                    break
                if time.monotonic() > deadline:
                    raise Failed(f"broker {broker} does not list {BROKER_IDS}")
                await asyncio.sleep(0.05)
        listed = await side.exchange(ApiVersionsRequest(), 0, 1, "main")
    finally:
        side.close()
    await cluster.find_coordinator()
    return cluster, {
        row.api_key: Versions(row.min_version, row.max_version) for row in listed.api_keys
    }


async def clusters_of(
    kafka: DataKafka, mock: MockCluster
) -> tuple[Cluster, Cluster, dict[int, Versions]]:
    """Both sides, and the versions of each API that both serve and the mock implements."""
    real, theirs = await real_cluster(kafka)
    addresses = {}
    for broker_id, address in mock.addresses.items():
        host, port = address.rsplit(":", 1)
        addresses[broker_id] = (host, int(port))
    mocked = Cluster(addresses)
    await mocked.find_coordinator()
    handlers = dialect_handlers(mock.dialect)
    served = {
        key: both
        for key, versions in theirs.items()
        if key in handlers and key in mock.served
        and (both := versions.intersect(mock.served[key]))
    }  # fmt: skip
    return real, mocked, served
