"""A fetch that waits for records. It watches the logs of its partitions; time is its caller's.

It is done when its partitions have ``min_bytes`` together, when one of them has an error or lies in
an older segment, or when a tester or its caller says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from mockbroker.simulation.fetching.query import FetchQuery, PartitionPosition
from mockbroker.simulation.fetching.reading import PartitionReader
from mockbroker.simulation.log.partition_log import PartitionLog
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["FetchWait"]


class FetchWait:
    """``positions`` are those that can be read. ``min_bytes`` is at most the fetch's limit."""

    def __init__(
        self,
        reader: PartitionReader,
        query: FetchQuery,
        positions: Sequence[PartitionPosition],
        min_bytes: int,
    ) -> None:
        self.query = query
        self.positions = positions
        self.min_bytes = min_bytes
        self.done = False
        self._reader = reader
        self._call: Callable[[], None] = lambda: None
        self._bytes = [0] * len(positions)
        self._sum = 0
        self._logs: list[PartitionLog] = []

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions that it waits for."""
        return tuple((each.topic or "", each.partition) for each in self.positions)

    @property
    def waiting_bytes(self) -> int:
        """The bytes that it would get now."""
        return self._sum

    def begin(self, call: Callable[[], None]) -> None:
        """Watch the logs, and call ``call`` once when the fetch is to be answered, perhaps now.
        ``end`` must follow."""
        self._call = call
        for number, position in enumerate(self.positions):
            log = self._reader.log_of(position)
            if log is not None:
                log.watch(self, partial(self._changed, number))
                self._logs.append(log)
        self.check()

    def end(self) -> None:
        """Stop watching."""
        for log in self._logs:
            log.unwatch(self)
        self._logs.clear()
        self.done = True

    def finish(self) -> None:
        """Answer the fetch with the available records."""
        if not self.done:
            self.done = True
            self._call()

    def check(self) -> None:
        """Look at every partition again."""
        for number in range(len(self.positions)):
            self._changed(number)

    def _changed(self, number: int) -> None:
        if self.done:
            return
        found = self._reader.waiting_bytes(self.query, self.positions[number])
        if found is None:
            return self.finish()
        self._sum += found - self._bytes[number]
        self._bytes[number] = found
        if self._sum >= self.min_bytes:
            self.finish()
        return None
