"""Defects about what an application chooses: positions, pauses and automatic commits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kspec.defects.consumers import Buffering
from kspec.defects.declaration import defect
from kspec.reference_client.consumer import Assigned, Consumer
from kspec.reference_client.link import BrokerError
from kspec.reference_client.topics import TopicPartition

__all__: list[str] = []


@defect("seeks-nowhere")
class SeeksNowhere(Consumer):
    """Goes on where it was after a seek."""

    def move(self, each: Assigned, offset: int) -> None:
        """Nothing."""


@defect("seeks-to-the-start")
class SeeksToTheStart(Consumer):
    """Begins at the start of the log after a seek, wherever it leads."""

    def move(self, each: Assigned, offset: int) -> None:
        super().move(each, 0)


@defect("seeks-and-keeps-its-buffer")
class SeeksAndKeepsItsBuffer(Buffering):
    """Delivers what it has fetched before a seek."""

    def move(self, each: Assigned, offset: int) -> None:
        queue = each.queue
        super().move(each, offset)
        each.queue = queue


@defect("keeps-its-first-seek")
class KeepsItsFirstSeek(Consumer):
    """Ignores a seek of a partition that it has not polled since the one before."""

    def __init__(self, client: Any, options: Mapping[str, Any], *more: Any) -> None:
        super().__init__(client, options, *more)
        self.moved: list[Assigned] = []

    def move(self, each: Assigned, offset: int) -> None:
        if each not in self.moved:
            self.moved.append(each)
            super().move(each, offset)

    async def fetch_all(self) -> None:
        self.moved = []
        await super().fetch_all()


@defect("seeks-in-every-partition")
class SeeksInEveryPartition(Consumer):
    """Moves every partition of a topic with one."""

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        (offset,) = offsets.values()
        super().seek(dict.fromkeys(self.assigned, offset))


@defect("seeks-in-any-partition")
class SeeksInAnyPartition(Consumer):
    """Reads a partition from a seek on that it does not have."""

    def owned(self, tp: TopicPartition) -> Assigned:
        return self.assigned.setdefault(tp, Assigned(None))


@defect("commits-the-position-before-the-seek")
class CommitsThePositionBeforeTheSeek(Consumer):
    """Commits the highest position that it has had."""

    highest = 0

    def offset_to_commit(self, position: int) -> int:
        return max(self.highest, position)

    def move(self, each: Assigned, offset: int) -> None:
        self.highest = max(self.highest, each.position or 0)
        super().move(each, offset)


@defect("pauses-nothing")
class PausesNothing(Consumer):
    """Goes on with paused partitions."""

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Nothing."""


@defect("pauses-everything")
class PausesEverything(Consumer):
    """Pauses every partition with one."""

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        super().pause(list(self.assigned))


@defect("never-resumes")
class NeverResumes(Consumer):
    """Leaves partitions paused."""

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Nothing."""


@defect("loses-what-it-has-paused")
class LosesWhatItHasPaused(Consumer):
    """Fetches paused partitions, and drops what comes."""

    def __init__(self, client: Any, options: Mapping[str, Any], *more: Any) -> None:
        super().__init__(client, options, *more)
        self.silent: set[TopicPartition] = set()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self.silent |= set(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self.silent -= set(partitions)

    def delivered(self) -> list[dict[str, Any]]:
        for tp in self.silent & set(self.assigned):
            self.assigned[tp].queue = []
        return super().delivered()


@defect("joins-again-to-pause")
class JoinsAgainToPause(Consumer):
    """Has the group rebalance when it pauses."""

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        super().pause(partitions)
        self.member.join_again("partitions are paused")


@defect("resumes-by-a-seek")
class ResumesByASeek(Consumer):
    """Takes a seek for the end of a pause."""

    def move(self, each: Assigned, offset: int) -> None:
        each.is_paused = False
        super().move(each, offset)


@defect("begins-anew-when-resumed")
class BeginsAnewWhenResumed(Consumer):
    """Forgets the position of a partition that is resumed."""

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        for each in map(self.owned, partitions):
            each.position, each.is_paused = None, False


@defect("refuses-to-resume")
class RefusesToResume(Consumer):
    """Takes the resumption of what is not paused for an error."""

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        wanted = list(partitions)
        if not all(self.owned(tp).is_paused for tp in wanted):
            raise ValueError("it is not paused")
        super().resume(wanted)


# ---- automatic commits ---------------------------------------------------------------------------


@defect("never-commits-by-itself")
class NeverCommitsByItself(Consumer):
    """Leaves every commit to the application."""

    async def commit_quietly(self) -> bool:
        return True


@defect("always-commits-by-itself")
class AlwaysCommitsByItself(Consumer):
    """Commits although the application has chosen to do so itself."""

    def __init__(self, client: Any, options: Mapping[str, Any], *more: Any) -> None:
        super().__init__(client, {"auto_commit_ms": 100, **options}, *more)


@defect("commits-what-it-has-fetched")
class CommitsWhatItHasFetched(Consumer):
    """Fetches paused partitions ahead, and commits a position behind what polls returned."""

    def __init__(self, client: Any, options: Mapping[str, Any], *more: Any) -> None:
        super().__init__(client, options, *more)
        self.ahead: set[TopicPartition] = set()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self.ahead |= set(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self.ahead -= set(partitions)

    def delivered(self) -> list[dict[str, Any]]:
        kept = {tp: self.assigned[tp].queue for tp in self.ahead & set(self.assigned)}
        for tp in kept:
            self.assigned[tp].queue = []
        found = super().delivered()
        for tp, queue in kept.items():
            self.assigned[tp].queue = queue
        return found


@defect("closes-without-a-commit")
class ClosesWithoutACommit(Consumer):
    """Drops the progress since the last automatic commit when it is closed."""

    async def close(self) -> None:
        self.auto_commit_ms = None
        await super().close()


@defect("commits-by-itself-once")
class CommitsByItselfOnce(Consumer):
    """Gives automatic commits up when one fails."""

    async def commit_quietly(self) -> bool:
        if not await super().commit_quietly():
            self.auto_commit_ms = None
        return True


@defect("raises-automatic-commits")
class RaisesAutomaticCommits(Consumer):
    """Reports an automatic commit that failed to the application."""

    async def commit_quietly(self) -> bool:
        is_done = await super().commit_quietly()
        if not is_done:
            self.fail(BrokerError(-1, "the offsets could not be committed"))
        return is_done


@defect("commits-only-forward")
class CommitsOnlyForward(Consumer):
    """Commits the highest position that it has had, also after a seek."""

    highest = 0

    def offset_to_commit(self, position: int) -> int:
        self.highest = max(self.highest, position)
        return self.highest


@defect("gives-up-partitions-without-a-commit")
class GivesUpPartitionsWithoutACommit(Consumer):
    """Rejoins without committing what it has read."""

    def gives_up_partitions(self) -> bool:
        return False


@defect("keeps-positions-beyond-its-membership")
class KeepsPositionsBeyondItsMembership(Consumer):
    """Goes on at its own position in a partition that it has lost and got again."""

    def __init__(self, client: Any, options: Mapping[str, Any], *more: Any) -> None:
        super().__init__(client, options, *more)
        self.kept: dict[TopicPartition, Assigned] = {}

    def adopt(self, partitions: Iterable[TopicPartition]) -> None:
        self.kept |= {tp: each for tp, each in self.assigned.items() if each.position is not None}
        super().adopt(partitions)
        self.assigned = {tp: self.kept.get(tp, each) for tp, each in self.assigned.items()}


@defect("seeks-to-the-batch")
class SeeksToTheBatch(Consumer):
    """Delivers the whole batch that holds the offset of a seek."""

    has_moved = False

    def move(self, each: Assigned, offset: int) -> None:
        self.has_moved = True
        super().move(each, offset)

    def is_wanted(self, offset: int, position: int) -> bool:
        return self.has_moved or super().is_wanted(offset, position)


@defect("forgets-aborts-by-a-seek")
class ForgetsAbortsByASeek(Consumer):
    """Delivers aborted records behind the offset of a seek."""

    def move(self, each: Assigned, offset: int) -> None:
        self.committed_only = False
        super().move(each, offset)


@defect("commits-one-offset-for-all")
class CommitsOneOffsetForAll(Consumer):
    """Commits the lowest position for every partition."""

    def progress(self) -> dict[TopicPartition, tuple[int, int]]:
        found = super().progress()
        return dict.fromkeys(found, min(found.values(), default=(0, -1)))


@defect("seeks-in-32-bits")
class SeeksIn32Bits(Consumer):
    """Seeks to the lower 32 bits of an offset."""

    def move(self, each: Assigned, offset: int) -> None:
        super().move(each, offset % 2**32)
