"""Where each leader epoch of a log begins (KIP-101)."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["UNKNOWN_END", "EpochEnd", "EpochStart", "LeaderEpochs"]


class EpochStart(NamedTuple):
    """An epoch of leaders, and the offset of its first record."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """An epoch, and the offset at which it ends: that of the next epoch's first record."""

    epoch: int
    end_offset: int


UNKNOWN_END: Final = EpochEnd(-1, -1)


class LeaderEpochs:
    """The epochs of one log, ascending in both members."""

    def __init__(self) -> None:
        self._starts: list[EpochStart] = []
        self._pretended: dict[int, int] = {}

    @property
    def starts(self) -> tuple[EpochStart, ...]:
        """All known epochs, oldest first."""
        return tuple(self._starts)

    @property
    def latest(self) -> int:
        """The newest epoch; -1 if none is known."""
        return self._starts[-1].epoch if self._starts else -1

    @property
    def oldest(self) -> int:
        """The oldest epoch; -1 if none is known."""
        return self._starts[0].epoch if self._starts else -1

    @property
    def latest_start(self) -> int:
        """The first offset of the newest epoch; 0 if none is known."""
        return self._starts[-1].start_offset if self._starts else 0

    def assign(self, epoch: int, start_offset: int) -> None:
        """Begin an epoch at this offset. An epoch that has no record is replaced by the next one;
        an epoch that is not newer than the latest changes nothing."""
        if self._starts and epoch <= self._starts[-1].epoch:
            return
        while self._starts and self._starts[-1].start_offset >= start_offset:
            self._starts.pop()
        self._starts.append(EpochStart(epoch, start_offset))

    def epoch_of(self, offset: int) -> int:
        """Return the epoch of the record at this offset; -1 if no epoch is known there."""
        for start in reversed(self._starts):
            if start.start_offset <= offset:
                return start.epoch
        return -1

    def pretend_end(self, epoch: int, end_offset: int | None) -> None:
        """Make an epoch end at this offset for all who ask (a tester's step); None: where it
        does."""
        if end_offset is None:
            self._pretended.pop(epoch, None)
        else:
            self._pretended[epoch] = end_offset

    def end_of(self, epoch: int, end_offset: int) -> EpochEnd:
        """Return where an epoch ends in a log that ends at ``end_offset``: of an epoch that is not
        known, where the largest smaller one does; (-1, -1) for an epoch from the future, or -1.

        Below all known epochs it is the requested epoch, and the first known offset.
        """
        if epoch in self._pretended:
            return EpochEnd(epoch, min(self._pretended[epoch], end_offset))
        if epoch == -1 or not self._starts or epoch > self.latest:
            return UNKNOWN_END
        if epoch == self.latest:
            return EpochEnd(epoch, end_offset)
        found = epoch
        for start in self._starts:
            if start.epoch > epoch:
                return EpochEnd(found, start.start_offset)
            found = start.epoch
        raise AssertionError("the latest epoch is larger")

    def truncate_end(self, end_offset: int) -> None:
        """Forget the epochs that begin at or behind this offset."""
        while self._starts and self._starts[-1].start_offset >= end_offset:
            self._starts.pop()

    def truncate_start(self, start_offset: int) -> None:
        """Start at this offset: the epoch there begins with it."""
        last = None
        while self._starts and self._starts[0].start_offset <= start_offset:
            last = self._starts.pop(0)
        if last is not None:
            self._starts.insert(0, EpochStart(last.epoch, start_offset))
