"""Retention: which segments at the beginning of a log are too old, or too much.

Whole segments go, the newest one too once all of its records are past retention: a broker rolls it
first. Records that are not replicated stay.
"""

from __future__ import annotations

from typing import NamedTuple

from mockbroker.simulation.log.log_settings import LogSettings
from mockbroker.simulation.log.partition_log import PartitionLog

__all__ = ["SegmentSize", "retained_from", "segment_sizes"]


class SegmentSize(NamedTuple):
    """A segment: its offsets, its bytes, and its largest timestamp. Without a timestamp that is the
    time of the last append."""

    base_offset: int
    end_offset: int
    size: int
    newest_ms: int


def segment_sizes(log: PartitionLog) -> list[SegmentSize]:
    """Return the segments of a log, oldest first."""
    storage = log.storage
    ends = [each.base_offset for each in log.segments[1:]] + [log.end_offset]
    found = []
    for segment, end_offset in zip(log.segments, ends, strict=True):
        first, last = storage.index_of(segment.base_offset), storage.index_of(end_offset)
        newest = storage.newest_index(first, last)
        newest_ms = -1 if newest is None else storage.header(newest).max_timestamp
        if newest_ms < 0:
            newest_ms = log.appended_ms if segment.modified_ms < 0 else segment.modified_ms
        size = storage.position(last) - storage.position(first)
        found.append(SegmentSize(segment.base_offset, end_offset, size, newest_ms))
    return found


def retained_from(log: PartitionLog, settings: LogSettings, now_ms: int) -> int:
    """Return the offset at which retention lets a log begin: first by size, then by age. A topic
    that is only compacted keeps everything."""
    segments = segment_sizes(log)
    if settings.deleted and settings.retention_bytes >= 0:
        excess = sum(each.size for each in segments) - settings.retention_bytes
        while _may_go(log, segments) and excess >= segments[0].size:
            excess -= segments.pop(0).size
    if settings.deleted and settings.retention_ms >= 0:
        oldest_ms = now_ms - settings.retention_ms
        while _may_go(log, segments) and segments[0].newest_ms < oldest_ms:
            segments.pop(0)
    return max(segments[0].base_offset if segments else log.end_offset, log.start_offset)


def _may_go(log: PartitionLog, segments: list[SegmentSize]) -> bool:
    """Whether the oldest segment is not an empty newest one, and all of it is replicated."""
    if not segments or (len(segments) == 1 and not segments[0].size):
        return False
    return segments[0].end_offset <= log.high_watermark
