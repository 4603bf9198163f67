"""The wait of one request for replicas, which watches the logs of its partitions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from mockbroker.simulation.log.partition_log import PartitionLog

__all__ = ["LogWait"]

PartT = TypeVar("PartT")


class LogWait(ABC, Generic[PartT]):
    """Ends when every part of a request is decided. A part is the answer for one partition."""

    def __init__(self, parts: Iterable[PartT]) -> None:
        self._call: Callable[[], None] = lambda: None
        self._waiting = [(each, self._log_of(each)) for each in parts if not self._is_decided(each)]
        for _, log in self._waiting:
            log.watch(self, self._look)

    @abstractmethod
    def _is_decided(self, part: PartT) -> bool:
        """Look at a part, and complete its answer if it is decided now."""

    @abstractmethod
    def _log_of(self, part: PartT) -> PartitionLog:
        """The log that decides about a part."""

    @abstractmethod
    def _time_out(self, part: PartT) -> None:
        """Complete the answer of a part that was not decided in time."""

    @property
    def is_over(self) -> bool:
        """Whether every partition is decided."""
        return not self._waiting

    def when_over(self, call: Callable[[], None]) -> None:
        """Call a function once every partition is decided, at once if they are."""
        self._call = call
        if self.is_over:
            call()

    def expire(self) -> None:
        """End the wait: partitions that are not decided get REQUEST_TIMED_OUT(7)."""
        for part, _ in self._waiting:
            self._time_out(part)
        self.end()

    def end(self) -> None:
        """Stop watching."""
        self._keep([])

    def _look(self) -> None:
        if not self._waiting:
            return
        self._keep([each for each in self._waiting if not self._is_decided(each[0])])
        if not self._waiting:
            self._call()

    def _keep(self, waiting: list[tuple[PartT, PartitionLog]]) -> None:
        """Wait for these parts, and watch no other logs."""
        before, self._waiting = self._waiting, waiting
        kept = [log for _, log in waiting]
        for _, log in before:
            if log not in kept:
                log.unwatch(self)
