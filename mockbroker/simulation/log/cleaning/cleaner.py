"""What a broker's cleaning threads would do to its logs. Time is the virtual clock, and the caller
decides when they run.
"""

from __future__ import annotations

from kproto.errors import DecodeError, MissingExtraError
from mockbroker.errors import ClusterError
from mockbroker.simulation.log.batches.corruption import damaged
from mockbroker.simulation.log.cleaning.compaction import compact_log, compaction_end
from mockbroker.simulation.log.cleaning.retention import retained_from
from mockbroker.simulation.log.log_events import BatchCorrupted, Compacted
from mockbroker.simulation.log.logs import Logs
from mockbroker.simulation.releases import facts
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["apply_retention", "compact", "corrupt_batch"]


def apply_retention(
    logs: Logs, tp: TopicPartition | None, now_ms: int, *, cause: str = "apply_retention"
) -> None:
    """Drop the segments of a partition, None: of all, that are past ``retention.ms`` or
    ``retention.bytes``. Records that are not replicated stay. Raises UnknownPartitionError."""
    for each in _partitions(logs, tp):
        if logs.is_source(each[0]):
            continue
        log = logs.log(each)
        start_offset = retained_from(log, logs.settings(each[0]), now_ms)
        if start_offset > log.start_offset:
            if start_offset == log.end_offset:
                log.roll(now_ms)
            logs.advance_start(cause, each, start_offset)


def compact(logs: Logs, tp: TopicPartition | None, now_ms: int) -> None:
    """Compact a partition, None: those of all compacted topics. Raises ClusterError if the topic is
    not compacted, or if a batch cannot be decoded."""
    for each in _partitions(logs, tp):
        if logs.settings(each[0]).compacted:
            _compact(logs, each, now_ms)
        elif tp is not None:
            raise ClusterError(
                f"{_name(tp)} cannot be compacted: the cleanup.policy of the topic is delete; "
                f"set-topic-config {tp[0]} cleanup.policy compact changes that"
            )


def _compact(logs: Logs, tp: TopicPartition, now_ms: int) -> None:
    log, settings = logs.log(tp), logs.settings(tp[0])
    end_offset = compaction_end(log, settings, now_ms)
    try:
        found = compact_log(
            log,
            settings,
            now_ms,
            keeps_end=logs.release.has(facts.COMPACTION_KEEPS_LOG_END),
            sets_horizons=logs.release.has(facts.DELETE_HORIZONS),
        )
    except (DecodeError, MissingExtraError) as error:
        raise ClusterError(f"{_name(tp)} cannot be compacted: {error}") from None
    size = logs.replace(tp, found.batches, found.aborted, found.segments)
    log.compacted_end = max(log.compacted_end, end_offset)
    logs.events.append(Compacted(now_ms, tp, end_offset, found.removed, size))


def corrupt_batch(logs: Logs, tp: TopicPartition, offset: int, how: str, now_ms: int) -> None:
    """Damage the stored batch that holds this offset, as ``corruption.damaged`` does. Raises
    ClusterError if there is no such batch."""
    log = logs.log(tp)
    index = log.storage.index_of(offset)
    if offset < log.start_offset or index == len(log.storage):
        raise ClusterError(f"{_name(tp)} has no record at offset {offset}")
    log.storage.write(index, 0, damaged(log.storage.batch(index), how))
    logs.events.append(BatchCorrupted(now_ms, tp, log.storage.base_offset(index), how))


def _partitions(logs: Logs, tp: TopicPartition | None) -> list[TopicPartition]:
    if tp is not None:
        logs.log(tp)
        return [tp]
    return [each for each, _ in logs]


def _name(tp: TopicPartition) -> str:
    return f"{tp[0]}-{tp[1]}"
