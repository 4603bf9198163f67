"""Controllers of real Kafka and of the mock, asked the same: every field of their answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

from kproto.error_codes import ErrorCode
from mockbroker import MockCluster
from tests.mockbroker.wire import connected
from tests.real.kafka import RealKafka
from tests.real.quorum_kafka import QuorumKafka
from tests.support.toolchain import require

COMBINED = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
}
APART: Final = 3000
"""The id of the mock's first controller apart from brokers."""
QUORUM = {"topic_name": "__cluster_metadata", "partition_index": 0}
FOO = {"name": "foo", "num_partitions": 1, "replication_factor": 1}
_OWN: Final = {
    "clusterId", "host", "port", "topicId", "logEndOffset", "highWatermark", "leaderEpoch",
    "lastFetchTimestamp", "lastCaughtUpTimestamp", "replicaDirectoryId", "finalizedFeaturesEpoch",
}  # fmt: skip
"""Fields that each cluster has its own values of."""


def requests(node_id: int) -> list[tuple[str, int, dict[str, Any]]]:
    """What a controller of this id is asked, by name, version and fields."""
    nobody = {"resource_type": 4, "resource_name": "9", "configuration_keys": None}
    some = ["log.retention.ms", "num.partitions", "metadata.max.idle.interval.ms",
            "controller.quorum.election.timeout.ms"]  # fmt: skip
    own = {"resource_type": 4, "resource_name": str(node_id), "configuration_keys": some}
    software = {"client_software_name": "w", "client_software_version": "1"}
    return [
        ("ApiVersions", 3, software),
        ("ApiVersions", 4, software),
        *(("DescribeCluster", 1, {"endpoint_type": kind}) for kind in (2, 1, 3)),
        ("DescribeQuorum", 1, {"topics": [QUORUM]}),
        ("DescribeQuorum", 2, {"topics": [QUORUM]}),
        ("CreateTopics", 7, {"topics": [FOO]}),
        ("CreateTopics", 7, {"topics": [FOO]}),
        ("AlterPartitionReassignments", 0, {}),
        *(("DescribeConfigs", 4, {"resources": [each]}) for each in (nobody, own)),
        ("UpdateFeatures", 1, {"feature": "nothing", "max_version_level": 1, "upgrade_type": 1}),
    ]


def shown(value: Any) -> Any:
    """An answer as JSON, without what is each cluster's own and without the order of names."""
    if isinstance(value, dict):
        return {key: shown(each) for key, each in value.items() if key not in _OWN}
    if not isinstance(value, list):
        return value
    return sorted(map(shown, value), key=lambda each: each.get("name", ""))


async def answers(mock: MockCluster, address: str, node_id: int) -> list[Any]:
    found = []
    async with connected(mock, address) as wire:
        for name, version, fields in requests(node_id):
            answer = await wire.ask(name, version, **fields)
            found.append((name, shown(answer.to_json_value(version))))
    return found


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.parametrize(("release", "apart"), [("3.9.2", False), ("4.4.0", True)])
async def test_a_controller_answers_as_kafkas(release: str, apart: bool, tmp_path: Path) -> None:
    require("java", "maven")
    profile = f"kafka-{release.rpartition('.')[0]}"
    kafka = (
        QuorumKafka(release, tmp_path, broker_ids=(1,), controller_ids=(APART,))
        if apart
        else RealKafka(release, tmp_path, zookeeper=False, broker_ids=(1,))
    )
    # The voters of that cluster are in its properties, which goes with level 0 (KIP-853).
    options: dict[str, Any] = {"broker_configs": COMBINED}
    if apart:
        options = {"controllers": 1, "features": {"kraft.version": 0}}
    node_id = APART if apart else 1
    async with MockCluster(1, profile=profile, **options) as mock:
        own = await answers(mock, mock.bootstrap_of("CONTROLLER"), node_id)
        await asyncio.to_thread(kafka.__enter__)
        try:
            address = (
                kafka.controllers if isinstance(kafka, QuorumKafka) else kafka.zookeeper_address
            )
            real = await answers(mock, address, node_id)
        finally:
            await asyncio.to_thread(kafka.close)
    differences = [(ours, theirs) for ours, theirs in zip(own, real, strict=True) if ours != theirs]
    assert differences == []
    assert own[3][1]["errorCode"] == ErrorCode.MISMATCHED_ENDPOINT_TYPE
