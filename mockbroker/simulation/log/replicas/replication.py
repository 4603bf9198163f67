"""How far each replica of a partition has its log, and the high watermark that follows.

In-sync replicas follow their leader at once, unless a tester holds them. A replica that leaves the
ISR stays where it is until it joins again. So only replicas that lag have a position of their own.
"""

from __future__ import annotations

from collections.abc import Callable

from mockbroker.simulation.log.partition_log import PartitionLog
from mockbroker.simulation.state.cluster_parts import Partition

__all__ = ["Replication"]


class Replication:
    """The replicas of one partition: ``log`` is the leader's."""

    def __init__(self, log: PartitionLog) -> None:
        self._log = log
        self._ends: dict[int, int] = {}
        self._starts: dict[int, int] = {}
        self._held: set[int] = set()
        self.watermark_lag = 0
        """How many records the high watermark stays behind, at least (a tester's step)."""

    @property
    def held(self) -> frozenset[int]:
        """The replicas that a tester holds where they are."""
        return frozenset(self._held)

    def end_of(self, broker_id: int, partition: Partition) -> int:
        """The end offset of a replica: of one that was never in sync, the start of the log."""
        end = self._ends.get(broker_id)
        if end is not None and broker_id != partition.leader:
            return end
        return self._log.end_offset if broker_id in partition.isr else self._log.start_offset

    def start_of(self, broker_id: int, partition: Partition) -> int:
        """The offset at which a replica begins. One that lags does not know that the log begins
        later than it did."""
        start = self._log.start_offset
        if broker_id == partition.leader or broker_id not in self._ends:
            return start
        return self._starts.get(broker_id, start)

    def lacks_records(self, broker_id: int, partition: Partition) -> bool:
        """Whether a replica has less than the leader."""
        return self.end_of(broker_id, partition) < self._log.end_offset

    def low_watermark(self, partition: Partition, live: Callable[[int], bool]) -> int:
        """The least start of all live replicas."""
        starts = [self.start_of(each, partition) for each in partition.hosts if live(each)]
        return min(starts, default=self._log.start_offset)

    # ---- steps of a tester ---------------------------------------------------------------------

    def hold(self, broker_id: int, partition: Partition) -> None:
        """Hold a replica where it is; it stays in the ISR."""
        self._starts[broker_id] = self.start_of(broker_id, partition)
        self._ends[broker_id] = self.end_of(broker_id, partition)
        self._held.add(broker_id)

    def replicate(self, broker_id: int, partition: Partition, offset: int | None) -> None:
        """Advance a held replica up to ``offset``, None: all of it; it stays held."""
        end = self._log.end_offset if offset is None else min(offset, self._log.end_offset)
        self._ends[broker_id] = max(self.end_of(broker_id, partition), end)
        self._starts[broker_id] = self._log.start_offset

    def release(self, broker_id: int, partition: Partition) -> None:
        """Release a replica to follow its leader again, if it is in sync."""
        self._held.discard(broker_id)
        if broker_id in partition.isr:
            self._forget(broker_id)

    def _forget(self, broker_id: int) -> None:
        """Give a replica everything that the leader has."""
        self._ends.pop(broker_id, None)
        self._starts.pop(broker_id, None)

    # ---- what the partition does ---------------------------------------------------------------

    def partition_changed(self, before: Partition, after: Partition) -> None:
        """Follow a change of the ISR or the replicas. ``leader_changed`` comes first."""
        for broker_id in before.isr:
            if broker_id not in after.isr:
                self._starts.setdefault(broker_id, self._log.start_offset)
                self._ends.setdefault(broker_id, self._log.end_offset)
        for broker_id in after.isr:
            if broker_id not in before.isr:
                self._forget(broker_id)
                if broker_id in self._held:
                    self._starts[broker_id] = self._log.start_offset
                    self._ends[broker_id] = self._log.end_offset
        for broker_id in [each for each in self._ends if each not in after.hosts]:
            self._forget(broker_id)
            self._held.discard(broker_id)

    def leader_changed(self, end_offset: int, leader: int) -> None:
        """Cut every replica to the end of the new leader's log."""
        self._held.discard(leader)
        self._forget(leader)
        for broker_id, end in self._ends.items():
            self._ends[broker_id] = min(end, end_offset)

    def log_started(self, start_offset: int) -> None:
        """No replica ends before the log begins."""
        for broker_id, end in self._ends.items():
            self._ends[broker_id] = max(end, start_offset)

    def advance_watermark(self, partition: Partition, min_isr: int | None) -> bool:
        """Raise the high watermark to what all in-sync replicas have, and return whether it rose.

        It stands still while the ISR is smaller than ``min_isr`` (3.7 on; None before).
        """
        log = self._log
        if min_isr is not None and len(partition.isr) < min_isr:
            return False
        if self._ends or self.watermark_lag:
            reached = min(self.end_of(each, partition) for each in partition.isr)
            reached = min(reached, log.end_offset - self.watermark_lag)
        else:
            reached = log.end_offset
        if reached <= log.high_watermark:
            return False
        log.high_watermark = reached
        return True
