"""Produce to partition foo-0 of a ``Cluster`` in tests, without messages."""

from collections.abc import Mapping
from typing import Any

from kproto.records import Record, build_batch
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.log.batches.batch_header import BatchHeader, read_header, with_header
from mockbroker.simulation.log.partition_log import PartitionLog
from mockbroker.simulation.log.producing.appender import AppendOutcome
from mockbroker.simulation.log.producing.produce_rules import RequestFacts
from tests.mockbroker.simulated import simulated_cluster

__all__ = ["FOO", "NOW_MS", "batch", "changed", "new_cluster", "produce", "stored"]

FOO = ("foo", 0)
NOW_MS = 1_000_000


def new_cluster(
    release: tuple[int, ...] = (4, 4),
    configs: Mapping[str, str] | None = None,
    static: Mapping[str, str] | None = None,
) -> Cluster:
    """Three brokers, of which broker 1 leads foo-0. ``configs`` are the topic's, ``static`` those
    of the brokers."""
    cluster = simulated_cluster(
        3, topics=["foo=1,2,3"], release=release, now_ms=NOW_MS, broker_configs=static or {}
    )
    if configs:
        cluster.config_changes.alter_incrementally(
            [(2, "foo", [(name, 0, value) for name, value in configs.items()])]
        )
    return cluster


def batch(*values: bytes | None, timestamp: int = NOW_MS, **settings: Any) -> bytes:
    return build_batch([Record(timestamp=timestamp, value=each) for each in values], **settings)


def changed(data: bytes, **fields: int) -> bytes:
    """The batch with other fields of its header, and the right checksum."""
    header: BatchHeader = read_header(data)._replace(**fields)
    return with_header(data, header)


def produce(
    cluster: Cluster,
    data: bytes | None,
    *,
    broker_id: int = 1,
    topic: str | None = "foo",
    index: int = 0,
    acks: int = 1,
    version: int = 9,
    may_write: bool = True,
    is_known: bool = True,
    knows_topic: bool = False,
    **facts: Any,
) -> AppendOutcome:
    return cluster.appender.append(
        broker_id, topic, index, data, RequestFacts(acks, version, **facts),
        may_write=may_write, is_known=is_known, knows_topic=knows_topic,
    )  # fmt: skip


def stored(log: PartitionLog) -> bytes:
    """All bytes of a log."""
    return b"".join(log.read(log.start_offset, log.end_offset, 1 << 30, at_least_one=True))
