"""One log: its batches, its offsets and what is derived from them.

start <= last stable offset <= high watermark <= end holds always. Offsets count records, not
batches; a record that is removed keeps its offset to itself. Records before the local start are in
remote storage only (KIP-405); without tiered storage the log and its local part start together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from operator import attrgetter
from typing import Final, NamedTuple

from mockbroker.simulation.log.batches.batch_header import BatchHeader, Buffer
from mockbroker.simulation.log.batches.batch_storage import BatchStorage, StoredBatch
from mockbroker.simulation.log.batches.repeated_batch import RepeatedBatch
from mockbroker.simulation.log.log_settings import LogSettings
from mockbroker.simulation.log.offset_index import OffsetIndex
from mockbroker.simulation.log.producing.producer_states import Marker, Producers, marker_of
from mockbroker.simulation.log.replicas.leader_epochs import LeaderEpochs

__all__ = ["AbortedTransaction", "PartitionLog", "Segment"]


class AbortedTransaction(NamedTuple):
    """A transaction that was aborted: the first of its records, its marker, and the last stable
    offset when the marker was written."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class Segment(NamedTuple):
    """A segment is a range of offsets, as far as retention and old ListOffsets see it. It holds the
    records from ``base_offset`` to the next segment's. ``modified_ms`` is the time of the last
    append, known once the segment is full."""

    base_offset: int
    created_ms: int
    modified_ms: int = -1


_base_offset: Final = attrgetter("base_offset")


class PartitionLog:
    """The log of a partition, which its leader appends to.

    ``epoch`` is the leader's if it begins with the leader, and not with its first batch.
    ``now_ms`` is the time at which the log is made.
    """

    def __init__(self, epoch: int | None, now_ms: int) -> None:
        self.storage = BatchStorage()
        self.epochs: Final = LeaderEpochs()
        if epoch is not None:
            self.epochs.assign(epoch, 0)
        self.producers: Final = Producers()
        self.start_offset = 0
        self.end_offset = 0
        self.high_watermark = 0
        self.aborted: list[AbortedTransaction] = []
        self.segments = [Segment(0, now_ms)]
        self.highest_remote_offset = -1
        """The last offset that was ever copied to remote storage; -1 if none was."""
        self._local_start = 0
        self.compacted_end = 0
        """The offset below which the log was compacted."""
        self.appended_ms = now_ms
        """When the last batch was appended."""
        self._segment_position = 0
        self._segment_timestamp: int | None = None
        """The largest timestamp of the newest segment's first batch; None if that is to be read."""
        self._indexes: dict[int, OffsetIndex] = {}
        """The index of segments that were asked for, by base offset."""
        self._watchers: dict[object, Callable[[], None]] = {}

    @property
    def last_stable_offset(self) -> int:
        """Where a reader of committed records stops: at the oldest transaction that is open, or
        whose marker is not replicated."""
        first = self.producers.first_unstable(self.high_watermark)
        if first is None:
            return self.high_watermark
        return min(self.high_watermark, max(first, self.start_offset))

    @property
    def local_start_offset(self) -> int:
        """The first offset that the disks of brokers still have."""
        return max(self._local_start, self.start_offset)

    # ---- appending -----------------------------------------------------------------------------

    def append(
        self, batch: Buffer, header: BatchHeader, epoch: int, now_ms: int, settings: LogSettings
    ) -> int:
        """Append a checked batch of magic 2 and return the offset of its first record."""
        self._roll_if_full(len(batch), header.max_timestamp, now_ms, settings)
        base_offset = self.end_offset
        self.epochs.assign(epoch, base_offset)
        self.storage.append(batch, base_offset, epoch)
        self.end_offset = base_offset + header.last_offset_delta + 1
        if header.producer_id >= 0:  # nothing is kept of others, even if they end a transaction
            if header.is_control:
                self._end_transaction(batch, header._replace(base_offset=base_offset))
            else:
                self.producers.appended(header, base_offset)
        self.appended_ms = now_ms
        return base_offset

    def _end_transaction(self, batch: Buffer, header: BatchHeader) -> None:
        marker = marker_of(StoredBatch(header, memoryview(batch)))
        if marker is None:
            return
        start = self.producers.ended(marker)
        if start is not None and not marker.is_commit:
            following = self.producers.first_open
            stable = marker.offset + 1 if following is None else following
            self.aborted.append(
                AbortedTransaction(marker.producer_id, start, marker.offset, stable)
            )

    def _roll_if_full(
        self, size: int, max_timestamp: int, now_ms: int, settings: LogSettings
    ) -> None:
        """Begin a segment before a batch that does not fit the newest one by its size, or by its
        timestamp: it is counted from that of the segment's first batch (KIP-33)."""
        held = self.storage.end - self._segment_position
        if not held:
            self._segment_timestamp = max_timestamp
            return
        if self._segment_timestamp is None:
            first = self.storage.index_at(self._segment_position)
            if first == len(self.storage):  # the log begins behind all batches of the segment
                self._segment_timestamp = max_timestamp
            else:
                self._segment_timestamp = self.storage.header(first).max_timestamp
        if self._segment_timestamp >= 0:
            age_ms = max_timestamp - self._segment_timestamp
        else:
            age_ms = now_ms - self.segments[-1].created_ms
        if held + size > settings.segment_bytes or age_ms > settings.segment_ms:
            self.roll(now_ms)
            self._segment_timestamp = max_timestamp

    def roll(self, now_ms: int) -> bool:
        """Begin a new segment, unless the newest one is empty. Returns whether one began."""
        if self.segments[-1].base_offset == self.end_offset:
            return False
        self.segments[-1] = self.segments[-1]._replace(modified_ms=self.appended_ms)
        self.segments.append(Segment(self.end_offset, now_ms))
        self._segment_position = self.storage.end
        self._segment_timestamp = None
        return True

    def become_source(self, storage: RepeatedBatch, now_ms: int) -> None:
        """Hold one batch for ever in place of all others."""
        self.storage = storage
        self.start_offset = 0
        self.end_offset = self.high_watermark = len(storage) * storage.step
        self.aborted = []
        self.segments = [Segment(0, now_ms)]
        self._segment_position = 0
        self._segment_timestamp = None
        self.forget_remote()
        self.changed()

    # ---- reading -------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        end_offset: int,
        most_bytes: int,
        *,
        at_least_one: bool,
        cut_first: bool = False,
        cut_last: bool = False,
    ) -> list[memoryview]:
        """Return whole batches from the one that holds ``offset`` on, as slices.

        Batches that reach ``end_offset`` or behind it, or would exceed ``most_bytes``, are left
        out; ``at_least_one``: the first one is not left out for its size. ``cut_last``: of a later
        batch that would exceed ``most_bytes``, the beginning that fits comes too; ``cut_first``: of
        the first one.
        """
        storage = self.storage
        first = storage.index_of(offset)
        behind = storage.index_of(end_offset) if end_offset < self.end_offset else len(storage)
        if first >= behind:
            return []
        last = storage.index_at(storage.position(first) + most_bytes + 1)
        if last <= behind and storage.position(last) - storage.position(first) > most_bytes:
            last -= 1
        last = min(last, behind)
        if last == first:
            if not at_least_one:
                return storage.read_bytes(first, most_bytes) if cut_first else []
            last = first + 1
        elif cut_last and last < behind:
            return storage.read_bytes(first, most_bytes)
        return storage.read(first, last)

    def readable_bytes(self, offset: int, end_offset: int) -> int:
        """Bytes of the batches between two offsets, without a limit."""
        storage = self.storage
        first = storage.index_of(offset)
        behind = storage.index_of(end_offset) if end_offset < self.end_offset else len(storage)
        return max(storage.position(behind) - storage.position(first), 0)

    def batch_of(self, offset: int) -> StoredBatch | None:
        """Return the first batch that ends at or behind this offset; None if there is none."""
        index = self.storage.index_of(offset)
        return self.storage.batch(index) if index < len(self.storage) else None

    def indexed_end(self, offset: int, size: int, interval: int) -> int:
        """Return the offset where ``size`` bytes from ``offset`` on end, as far as the index of
        their segment says (``OffsetIndex``, with an entry every ``interval`` bytes). Without an
        entry behind the bytes it is the end of the segment."""
        storage = self.storage
        behind = storage.position(storage.index_of(offset)) + size
        place = bisect_right(self.segments, offset, key=_base_offset)
        end = self.segments[place].base_offset if place < len(self.segments) else self.end_offset
        base_offset = self.segments[max(place - 1, 0)].base_offset
        found = self._indexes.get(base_offset)
        if found is None or found.interval != interval:
            begins = storage.position(storage.index_of(base_offset))
            found = self._indexes[base_offset] = OffsetIndex(begins, interval)
        found.read_until(end, storage)
        last_offset = found.last_offset_at(behind)
        return end if last_offset is None else last_offset

    # ---- cutting -------------------------------------------------------------------------------

    def truncate(self, end_offset: int) -> None:
        """Remove the records from this offset on. A batch that reaches behind it goes whole."""
        if end_offset >= self.end_offset:
            return
        storage = self.storage
        index = storage.index_of(end_offset)
        if index < len(storage):
            end_offset = min(end_offset, storage.base_offset(index))
        storage.truncate(index)
        self._indexes.clear()
        self.end_offset = max(end_offset, self.start_offset)
        self.high_watermark = min(self.high_watermark, self.end_offset)
        self.compacted_end = min(self.compacted_end, self.end_offset)
        self.highest_remote_offset = min(self.highest_remote_offset, self.end_offset - 1)
        self._local_start = min(self._local_start, self.end_offset)
        self.epochs.truncate_end(self.end_offset)
        self.aborted = [each for each in self.aborted if each.last_offset < self.end_offset]
        self.producers.truncate(self.end_offset, self._history())
        while len(self.segments) > 1 and self.segments[-1].base_offset > self.end_offset:
            self.segments.pop()
        position = storage.index_of(self.segments[-1].base_offset)
        self._segment_position = storage.position(position)
        self._segment_timestamp = None
        self.changed()

    def producers_before(self, end_offset: int) -> Producers:
        """The producers as a replica knows them whose log ends at this offset."""
        if end_offset >= self.end_offset:
            return self.producers
        known = Producers()
        known.replay(takewhile(lambda each: each[0].base_offset < end_offset, self._history()))
        return known

    def _history(self) -> Iterator[tuple[BatchHeader, Marker | None]]:
        """Yield the headers of all batches, with what those of markers say."""
        for index, header in enumerate(self.storage.headers()):
            marker = marker_of(self.storage.batch(index)) if header.is_control else None
            yield header, marker

    def advance_start(self, start_offset: int) -> int:
        """Raise the log start offset, at most to the high watermark, and return the bytes
        that were released. Batches that lie whole before it go."""
        start_offset = min(start_offset, self.high_watermark)
        if start_offset <= self.start_offset:
            return 0
        self.start_offset = start_offset
        released = self.storage.drop(self.storage.index_of(start_offset))
        self._indexes.clear()
        self.epochs.truncate_start(start_offset)
        self.aborted = [each for each in self.aborted if each.last_offset >= start_offset]
        while len(self.segments) > 1 and self.segments[1].base_offset <= start_offset:
            self.segments.pop(0)
        self.changed()
        return released

    def replace(
        self,
        batches: Iterable[Buffer],
        aborted: Iterable[AbortedTransaction],
        segments: Iterable[Segment],
    ) -> int:
        """Store these batches in place of all others, with the index of aborted transactions and
        the segments that belong to them, as compaction does. Returns the bytes released."""
        before = self.storage.size
        self.storage.replace(batches)
        self._indexes.clear()
        self.aborted = list(aborted)
        self.segments = list(segments)
        self._segment_position = self.storage.position(
            self.storage.index_of(self.segments[-1].base_offset)
        )
        self._segment_timestamp = None
        self.changed()
        return before - self.storage.size

    # ---- remote storage ------------------------------------------------------------------------

    def copy_to_remote(self, end_offset: int, now_ms: int) -> None:
        """Let remote storage have what lies before this offset, or before the batch that holds it.
        A segment begins there, because whole segments are copied."""
        end_offset = self._split(end_offset, now_ms)
        self.highest_remote_offset = max(self.highest_remote_offset, end_offset - 1)

    def advance_local_start(self, offset: int, now_ms: int) -> None:
        """As ``copy_to_remote``, and keep only remote storage's copy."""
        self.copy_to_remote(offset, now_ms)
        self._local_start = max(self._local_start, self._split(offset, now_ms))
        self.changed()

    def forget_remote(self) -> None:
        """Take remote storage for empty, as that of a topic that has none."""
        self.highest_remote_offset = -1
        self._local_start = 0

    def _split(self, offset: int, now_ms: int) -> int:
        """Let a segment begin at the batch that holds this offset, and return where that is."""
        storage = self.storage
        index = storage.index_of(offset)
        if index < len(storage):
            offset = max(min(offset, storage.base_offset(index)), self.start_offset)
        place = bisect_right(self.segments, offset, key=_base_offset)
        segment = self.segments[place - 1]
        if segment.base_offset >= offset:
            return offset
        self._indexes.clear()
        if place == len(self.segments):
            self.segments[-1] = segment._replace(modified_ms=self.appended_ms)
            self.segments.append(Segment(offset, now_ms))
            self._segment_position = storage.position(index)
            self._segment_timestamp = None
        else:
            self.segments.insert(place, segment._replace(base_offset=offset))
        return offset

    # ---- watching ------------------------------------------------------------------------------

    def watch(self, key: object, call: Callable[[], None]) -> None:
        """Call a function whenever an offset of the log changes, until ``unwatch(key)``."""
        self._watchers[key] = call

    def unwatch(self, key: object) -> None:
        self._watchers.pop(key, None)

    @property
    def watched(self) -> int:
        """The number of watchers: fetches and produces that wait."""
        return len(self._watchers)

    def changed(self) -> None:
        """Call the watchers. They may end their watch."""
        if self._watchers:
            for call in tuple(self._watchers.values()):
                call()
