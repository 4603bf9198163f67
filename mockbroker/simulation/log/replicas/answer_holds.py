"""Partitions whose produce requests a tester keeps waiting after they were appended."""

from __future__ import annotations

from collections.abc import Callable, Collection

from mockbroker.errors import ClusterError
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["AnswerHolds"]


class AnswerHolds:
    """The held partitions, and the requests that wait for their release."""

    def __init__(self) -> None:
        self._all = False
        self._held: set[TopicPartition] = set()
        self._waiting: dict[Callable[[], None], Collection[TopicPartition]] = {}

    def __bool__(self) -> bool:
        """Whether any partition is held."""
        return self._all or bool(self._held)

    @property
    def waiting(self) -> int:
        """The number of requests that wait."""
        return len(self._waiting)

    def hold(self, tp: TopicPartition | None) -> None:
        """Hold the answers for a partition, None: for all."""
        if tp is None:
            self._all = True
        else:
            self._held.add(tp)

    def release(self, tp: TopicPartition | None) -> None:
        """Send the answers for a partition, None: for all. Raises ClusterError if those of the
        partition are not held."""
        if tp is None:
            self._all = False
            self._held.clear()
        elif tp in self._held:
            self._held.remove(tp)
        else:
            raise ClusterError(f"the answers for {tp[0]}-{tp[1]} are not held")
        for call, partitions in list(self._waiting.items()):
            if not self.covers(partitions):
                del self._waiting[call]
                call()

    def covers(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether the answer to a request with these partitions waits."""
        return self._all or (bool(self._held) and not self._held.isdisjoint(partitions))

    def when_released(
        self, partitions: Collection[TopicPartition], call: Callable[[], None]
    ) -> None:
        """Call the function once these partitions are not held any more, at once if they are
        not."""
        if self.covers(partitions):
            self._waiting[call] = partitions
        else:
            call()

    def forget(self, call: Callable[[], None]) -> None:
        """The client that waited has gone."""
        self._waiting.pop(call, None)
