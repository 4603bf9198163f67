"""Which log directory of its broker each replica is in, and which directories have failed.

A broker with one directory has all replicas there, so that placements are kept only for brokers
with several. A failure has two sides: replicas in a failed directory are not served; once the
broker has reported it (``is_reported``), the controller takes them for offline.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from mockbroker.simulation.state.cluster_parts import Broker, TopicPartition

__all__ = ["ReplicaDirs"]


class ReplicaDirs(msgspec.Struct):
    """``failed`` and ``reported`` map broker ids to directories; brokers without one are left out.
    ``placed`` maps (broker id, topic and partition) to a directory."""

    log_dirs: dict[int, tuple[str, ...]] = msgspec.field(default_factory=dict)
    placed: dict[tuple[int, TopicPartition], str] = msgspec.field(default_factory=dict)
    failed: dict[int, frozenset[str]] = msgspec.field(default_factory=dict)
    reported: dict[int, frozenset[str]] = msgspec.field(default_factory=dict)

    def directory(self, broker_id: int, tp: TopicPartition) -> str:
        """The directory of a broker's replica."""
        return self.placed.get((broker_id, tp)) or self.log_dirs[broker_id][0]

    def is_failed(self, broker_id: int, tp: TopicPartition) -> bool:
        """Whether a broker cannot read and write its replica."""
        failed = self.failed.get(broker_id)
        return failed is not None and self.directory(broker_id, tp) in failed

    def is_reported(self, broker_id: int, tp: TopicPartition) -> bool:
        """Whether the controller knows that a broker's replica is in a failed directory."""
        reported = self.reported.get(broker_id)
        return reported is not None and self.directory(broker_id, tp) in reported

    def can_store(self, broker_id: int) -> bool:
        """Whether a directory of the broker works, so that it can take new replicas."""
        failed = self.failed.get(broker_id)
        return failed is None or not failed.issuperset(self.log_dirs[broker_id])

    def copy(self) -> ReplicaDirs:
        """A copy that later changes leave alone; empty while no directory has failed."""
        if not self.failed:
            return ReplicaDirs()
        return ReplicaDirs(
            dict(self.log_dirs), dict(self.placed), dict(self.failed), dict(self.reported)
        )

    # ---- changes -----------------------------------------------------------------------------

    def register(self, broker: Broker) -> None:
        """Note the directories of a broker; replicas that are not placed are in the first."""
        self.log_dirs[broker.broker_id] = broker.log_dirs

    def fail(self, broker_id: int, log_dir: str) -> None:
        """Fail a directory without the controller's knowledge."""
        self.failed[broker_id] = self.failed.get(broker_id, frozenset()) | {log_dir}

    def report(self, broker_id: int, log_dir: str) -> None:
        """Report a failed directory to the controller."""
        self.reported[broker_id] = self.reported.get(broker_id, frozenset()) | {log_dir}

    def mend(self, broker_id: int, log_dir: str) -> None:
        """Repair a directory."""
        for known in (self.failed, self.reported):
            left = known.pop(broker_id, frozenset()) - {log_dir}
            if left:
                known[broker_id] = left

    def forget(self, topic: str, index: int | None, hosts: Iterable[int] = ()) -> None:
        """Drop the placements of a topic or of one partition, except those on ``hosts``."""
        kept = set(hosts)
        for broker_id, tp in [
            (broker_id, tp)
            for broker_id, tp in self.placed
            if tp[0] == topic and index in (None, tp[1]) and broker_id not in kept
        ]:
            del self.placed[broker_id, tp]
