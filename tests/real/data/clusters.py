"""The two clusters that sessions are played on: two brokers each, equal configs, wall clock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mockbroker import MockCluster
from tests.real.kafka import COMMON_CONFIGS, RealKafka
from tests.real.single_kafka import ONE_BROKER

__all__ = ["BROKER_IDS", "DATA_CONFIGS", "DataKafka", "data_mock"]

BROKER_IDS: Final = (1, 2)

DATA_CONFIGS: Final[Mapping[str, str]] = {
    **ONE_BROKER,
    "group.min.session.timeout.ms": "100",
    "group.max.size": "4",
    "max.incremental.fetch.session.cache.slots": "1000",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "5",
}
"""Broker configs of both sides, besides ``COMMON_CONFIGS``. One partition of each internal topic
gives every group and every transactional id the same coordinator."""

KAFKA_CONFIGS: Final[Mapping[str, str]] = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.delivery.count.limit": "2",
    "group.share.min.partition.max.record.locks": "100",
}
"""What the mock does not need: the topic of the share coordinator, which Kafka creates on two
brokers only with another replication factor than 3 (without it share groups get no partitions), and
limits of what share groups may set for themselves."""

_WALK_CONFIGS: Final[Mapping[str, str]] = {
    "group.consumer.session.timeout.ms": "1800000",
    "group.consumer.max.session.timeout.ms": "1800000",
}
"""No member of a program's groups goes while others of the batch are played."""


class DataKafka(RealKafka):
    """Real brokers with ``DATA_CONFIGS``. ``walks``: as those of ``data_mock``."""

    def __init__(self, release: str, folder: Path, *, walks: bool = False) -> None:
        super().__init__(release, folder, zookeeper=False, broker_ids=BROKER_IDS)
        self._own = {**DATA_CONFIGS, **KAFKA_CONFIGS, **(_WALK_CONFIGS if walks else {})}

    def _kraft_configs(self, broker_id: int) -> dict[str, str]:
        return {**super()._kraft_configs(broker_id), **self._own}


def data_mock(profile: str, *, walks: bool = False) -> MockCluster:
    """A mock of the same cluster. Its clock follows wall time, as Kafka's does. ``walks``: replicas
    that are added to a partition catch up by themselves, and sessions of consumer groups are
    long."""
    return MockCluster(
        len(BROKER_IDS),
        profile=profile,
        broker_configs={**COMMON_CONFIGS, **DATA_CONFIGS, **(_WALK_CONFIGS if walks else {})},
        cut_last_batch=True,
        auto_progress_ms=20 if walks else None,
    )
