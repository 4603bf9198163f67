"""Logs as JSON values, for testers who look at them."""

from __future__ import annotations

from typing import Any

from mockbroker.simulation.log.logs import Logs, PartitionData
from mockbroker.simulation.log.producing.producer_states import Producer
from mockbroker.simulation.state.cluster_parts import Partition

__all__ = ["describe_log", "summarize_log"]


def summarize_log(data: PartitionData | None, partition: Partition) -> dict[str, Any]:
    """Return the offsets of a log and the end of each replica; all 0 if nothing was ever
    appended."""
    log = None if data is None else data.log
    return {
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "start_offset": 0 if log is None else log.start_offset,
        "last_stable_offset": 0 if log is None else log.last_stable_offset,
        "high_watermark": 0 if log is None else log.high_watermark,
        "end_offset": 0 if log is None else log.end_offset,
        "bytes": 0 if log is None else log.storage.size,
        "replicas": {str(each): _replica(data, each, partition) for each in partition.hosts},
    }


def _replica(data: PartitionData | None, broker_id: int, partition: Partition) -> dict[str, Any]:
    return {
        "end_offset": 0 if data is None else data.replication.end_of(broker_id, partition),
        "in_sync": broker_id in partition.isr,
        "held": data is not None and broker_id in data.replication.held,
    }


def _producer(known: Producer) -> dict[str, Any]:
    return {
        "producer_id": known.producer_id,
        "epoch": known.epoch,
        "last_sequence": known.last_sequence,
        "transaction_start": known.transaction_start,
    }


def describe_log(logs: Logs, topic: str, partition: Partition) -> dict[str, Any]:
    """Return everything about a log but its records."""
    data = logs.data((topic, partition.index))
    log = data.log
    return {
        "partition": f"{topic}-{partition.index}",
        **summarize_log(data, partition),
        "local_start_offset": log.local_start_offset,
        "highest_remote_offset": log.highest_remote_offset,
        "batches": len(log.storage),
        "watermark_lag": data.replication.watermark_lag,
        "waiting": log.watched,
        "epochs": [each._asdict() for each in log.epochs.starts],
        "segments": [each._asdict() for each in log.segments],
        "aborted": [each._asdict() for each in log.aborted],
        "producers": [_producer(each) for each in log.producers],
    }
