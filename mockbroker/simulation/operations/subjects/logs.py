"""Operations on the logs of partitions: their records, segments and producers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec.structs import replace

from mockbroker.errors import ClusterError
from mockbroker.simulation.log.batches.record_documents import BatchDocument, parse_batch
from mockbroker.simulation.operations.arguments import (
    COUNT,
    AnyPartitionArgument,
    Argument,
    CorruptionArgument,
    OffsetArgument,
    PartitionArgument,
    RecordsArgument,
)
from mockbroker.simulation.operations.operation import operation
from mockbroker.simulation.operations.partitions import change_partition, check_led, name_of
from mockbroker.simulation.state.cluster_parts import TopicPartition

if TYPE_CHECKING:
    from mockbroker.simulation.cluster import Cluster

# Modules that import codecs of records are imported by the effects: `mockbroker ctl` has none.


@operation
def append(cluster: Cluster, partition: PartitionArgument, records: RecordsArgument) -> None:
    """Append records without a producer.

    RECORDS is the value of one record, or JSON: a record with key, value, headers and timestamp,
    whose bytes may be {"hex": "00ff"} or {"zeros": 1000}, a list of records, an object with
    records, codec, producer_id, producer_epoch, base_sequence and transactional, or {"batch":
    "HEX"}. The checks of Produce do not apply. A batch with a producer id and a sequence counts for
    that producer, unless the producer has a newer epoch or has sent later ones.
    """
    append_batch(cluster, partition, parse_batch(records))


def append_batch(cluster: Cluster, tp: TopicPartition, batch: BatchDocument) -> int:
    """Append a batch without the checks of Produce; return the offset of its first record."""
    from mockbroker.simulation.log.seeding import batch_of

    check_led(cluster, tp)
    append_time = cluster.logs.settings(tp[0]).append_time
    data, header = batch_of(batch, cluster.timers.now_ms, append_time=append_time)
    return cluster.logs.append(tp, data, header)


@operation
def truncate(cluster: Cluster, partition: PartitionArgument, offset: OffsetArgument) -> None:
    """Truncate a log on all replicas.

    The log ends at OFFSET, or at the start of the batch that holds it, and the leader epoch rises.
    Acknowledged records may be lost.
    """
    check_led(cluster, partition)
    log = cluster.logs.log(partition)
    if not log.start_offset <= offset <= log.end_offset:
        raise ClusterError(
            f"{name_of(partition)} has offsets {log.start_offset} to {log.end_offset}; it cannot "
            f"end at {offset}"
        )
    cluster.logs.truncate("truncate", partition, offset)
    before = cluster.controller.partition(partition)
    after = replace(
        before, leader_epoch=before.leader_epoch + 1, partition_epoch=before.partition_epoch + 1
    )
    change_partition(cluster, "truncate", partition, after)


@operation
def jump_log_start(cluster: Cluster, partition: PartitionArgument, offset: OffsetArgument) -> None:
    """Raise the log start offset.

    The records before OFFSET disappear at once, as if retention had removed them.
    """
    log = cluster.logs.log(partition)
    if not log.start_offset <= offset <= log.high_watermark:
        raise ClusterError(
            f"the log of {name_of(partition)} can begin at {log.start_offset} to "
            f"{log.high_watermark}, its high watermark, and not at {offset}"
        )
    cluster.logs.advance_start("jump_log_start", partition, offset)


@operation
def copy_to_remote(cluster: Cluster, partition: PartitionArgument, offset: OffsetArgument) -> None:
    """Copy the records before OFFSET to remote storage.

    The topic needs remote.storage.enable, and the brokers remote.log.storage.system.enable. Whole
    batches are copied, and a segment begins behind them; brokers keep their copy.
    """
    _check_tiered(cluster, partition, offset)
    cluster.logs.copy_to_remote("copy_to_remote", partition, offset)


@operation
def jump_local_log_start(
    cluster: Cluster, partition: PartitionArgument, offset: OffsetArgument
) -> None:
    """Raise the local log start offset.

    Only remote storage has the whole batches before OFFSET from now on, as if local.retention.ms
    had removed them from brokers. They are copied there first if necessary.
    """
    _check_tiered(cluster, partition, offset)
    cluster.logs.advance_local_start("jump_local_log_start", partition, offset)


def _check_tiered(cluster: Cluster, tp: TopicPartition, offset: int) -> None:
    """Raise ClusterError if remote storage cannot have the records before an offset."""
    log = cluster.logs.log(tp)
    if not cluster.logs.settings(tp[0]).is_tiered:
        raise ClusterError(f"{tp[0]} is not a topic with tiered storage: see remote.storage.enable")
    if not log.start_offset <= offset <= log.last_stable_offset:
        raise ClusterError(
            f"remote storage can have {name_of(tp)} up to {log.start_offset} to "
            f"{log.last_stable_offset}, its last stable offset, and not up to {offset}"
        )


@operation
def roll_segment(cluster: Cluster, partition: PartitionArgument) -> None:
    """Roll the active segment of a log.

    Compaction does not touch the active segment.
    """
    if not cluster.logs.log(partition).roll(cluster.timers.now_ms):
        raise ClusterError(f"the newest segment of {name_of(partition)} is empty")


@operation
def apply_retention(cluster: Cluster, partition: AnyPartitionArgument = None) -> None:
    """Delete the segments that exceed the retention limits.

    The topic's retention.ms and retention.bytes decide, by the virtual clock. Whole segments go;
    records above the high watermark stay. Without PARTITION, all logs.
    """
    from mockbroker.simulation.log.cleaning import cleaner

    cleaner.apply_retention(cluster.logs, partition, cluster.timers.now_ms)


@operation
def compact(cluster: Cluster, partition: AnyPartitionArgument = None) -> None:
    """Compact a log: keep only the newest record of each key.

    The active segment and everything after the start of an open transaction stay. Without
    PARTITION, the logs of all compacted topics.
    """
    from mockbroker.simulation.log.cleaning import cleaner

    cleaner.compact(cluster.logs, partition, cluster.timers.now_ms)


@operation
def corrupt_batch(
    cluster: Cluster, partition: PartitionArgument, offset: OffsetArgument, how: CorruptionArgument
) -> None:
    """Damage a stored batch.

    HOW is bit (of the records), crc, count (of records) or codec (the bytes of a compressed batch);
    with the last two, the checksum stays valid.
    """
    from mockbroker.simulation.log.cleaning import cleaner

    cleaner.corrupt_batch(cluster.logs, partition, offset, how, cluster.timers.now_ms)


@operation
def forget_producer(
    cluster: Cluster,
    partition: PartitionArgument,
    producer_id: Annotated[int | None, Argument(COUNT, "None for all.")] = None,
) -> None:
    """Forget the idempotent producers of a log.

    Sequence numbers start over, as after producer.id.expiration.ms.
    """
    cluster.logs.forget_producer(partition, producer_id)
