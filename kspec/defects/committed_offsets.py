"""Defects about committed offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kspec.defects.declaration import defect
from kspec.reference_client.consumer import Assigned, Consumer
from kspec.reference_client.link import BrokerError, Link, LinkClosedError, TimedOutError
from kspec.reference_client.membership import Membership
from kspec.reference_client.topics import Offsets, TopicPartition

__all__: list[str] = []

_REBALANCE_IN_PROGRESS: Final = 27
_OLD_GENERATION: Final = (22, 25)


@defect("commits-the-last-offset")
class CommitsTheLastOffset(Consumer):
    """Commits the offset of the last record that was read, not of the next one."""

    def offset_to_commit(self, position: int) -> int:
        return max(position - 1, 0)


@defect("ignores-committed-offsets")
class IgnoresCommittedOffsets(Consumer):
    """Starts where its reset policy says, whatever the group has committed."""

    def start(self, each: Assigned, offset: int, epoch: int) -> None:
        each.is_committed_known = True


@defect("takes-no-offset-for-zero")
class TakesNoOffsetForZero(Consumer):
    """Starts at the beginning when nothing was committed, whatever its reset policy says."""

    def start(self, each: Assigned, offset: int, epoch: int) -> None:
        super().start(each, max(offset, 0), epoch)


@defect("returns-to-the-committed-offset")
class ReturnsToTheCommittedOffset(Consumer):
    """Asks for the committed offset again when it is out of range."""

    def out_of_range(self, tp: TopicPartition, each: Assigned) -> None:
        super().out_of_range(tp, each)
        each.is_committed_known = False


@defect("commits-no-epoch")
class CommitsNoEpoch(Membership):
    """Commits offsets without the leader epoch of what was read."""

    def commit_body(self, offsets: Offsets) -> Any:
        return super().commit_body({tp: (offset, -1) for tp, (offset, _) in offsets.items()})


@defect("starts-anew-on-an-error")
class StartsAnewOnAnError(Membership):
    """Takes an error of OffsetFetch for a group without offsets."""

    def passing_offset_error(self, answer: Any) -> int:
        return 0

    def check_offsets(self, answer: Any) -> None:
        """Ignored."""

    def offset_topics(self, answer: Any) -> Sequence[Any]:
        failed = any(self.offset_errors(answer))
        return [] if failed else super().offset_topics(answer)


@defect("reads-offsets-without-groups")
class ReadsOffsetsWithoutGroups(Membership):
    """Looks for offsets where answers have them before version 8, and finds none."""

    def offset_topics(self, answer: Any) -> Sequence[Any]:
        return list(getattr(answer, "topics", ()) or ())


@defect("claims-committed")
class ClaimsCommitted(Membership):
    """Reports every commit as done."""

    async def commit(self, offsets: Offsets) -> dict[TopicPartition, int]:
        try:
            await self.topics.refresh({tp[0] for tp in offsets})
            await self.ask(self.commit_body(offsets), self.client.timeout)
        except (LinkClosedError, TimedOutError, BrokerError):
            self.move_coordinator()
        return dict.fromkeys(offsets, 0)


@defect("drops-outcomes-of-partitions")
class DropsOutcomesOfPartitions(Membership):
    """Takes a commit for done if its first partition is."""

    async def commit(self, offsets: Offsets) -> dict[TopicPartition, int]:
        codes = await super().commit(offsets)
        return dict.fromkeys(codes, codes[min(codes)])


@defect("commits-once")
class CommitsOnce(Membership):
    """Does not commit again when the coordinator has moved or is loading."""

    async def ask_again(self, body: Any, code_of: Any) -> Any:
        if callable(body):
            return await super().ask_again(body, code_of)
        return await self.ask(body, self.client.timeout)


@defect("commits-again-in-a-new-generation")
class CommitsAgainInANewGeneration(Membership):
    """Commits once more as soon as it has joined again, whatever has become of its partitions."""

    def on_commit_error(self, code: int) -> None:
        """Ignored."""

    async def commit(self, offsets: Offsets) -> dict[TopicPartition, int]:
        codes = await super().commit(offsets)
        for code in codes.values():
            if code in _OLD_GENERATION:
                self.on_error(code)
        if self.needs_to_join:
            await self.join_until_done()
            codes = await super().commit(offsets)
        return codes


@defect("never-commits-backwards")
class NeverCommitsBackwards(Membership):
    """Keeps an offset that is before the last one it committed to itself."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.latest: dict[TopicPartition, int] = {}

    def commit_body(self, offsets: Offsets) -> Any:
        for tp, (offset, _) in offsets.items():
            self.latest[tp] = max(offset, self.latest.get(tp, 0))
        return super().commit_body(
            {tp: (self.latest[tp], epoch) for tp, (_, epoch) in offsets.items()}
        )


@defect("takes-no-ids-of-topics")
class TakesNoIdsOfTopics(Membership):
    """Leaves out the ids of topics that OffsetCommit has from version 10 on."""

    def commit_body(self, offsets: Offsets) -> Any:
        body = super().commit_body(offsets)
        for topic in body.topics:
            topic.topic_id = type(topic)().topic_id
        return body


@defect("takes-unstable-offsets")
class TakesUnstableOffsets(Membership):
    """Asks for committed offsets without requiring stable ones."""

    def offsets_body(self, link: Link, wanted: Mapping[str, list[int]]) -> Any:
        body = super().offsets_body(link, wanted)
        body.require_stable = False
        return body


@defect("takes-a-rebalance-for-a-commit")
class TakesARebalanceForACommit(Membership):
    """Reports a commit as done that was refused because the group rebalances."""

    def on_commit_error(self, code: int) -> None:
        if code != _REBALANCE_IN_PROGRESS:
            super().on_commit_error(code)

    async def commit(self, offsets: Offsets) -> dict[TopicPartition, int]:
        codes = await super().commit(offsets)
        return {tp: 0 if code == _REBALANCE_IN_PROGRESS else code for tp, code in codes.items()}


@defect("takes-one-offset-for-all")
class TakesOneOffsetForAll(Membership):
    """Goes on in every partition at the highest offset that the group has."""

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, tuple[int, int]]:
        found = await super().committed(partitions)
        return dict.fromkeys(found, max(found.values(), default=(-1, -1)))


@defect("commits-one-topic")
class CommitsOneTopic(Membership):
    """Commits the offsets of one topic, and reports success for all."""

    async def commit(self, offsets: Offsets) -> dict[TopicPartition, int]:
        first = min(tp[0] for tp in offsets)
        found = await super().commit({tp: offsets[tp] for tp in offsets if tp[0] == first})
        return {**dict.fromkeys(offsets, 0), **found}


@defect("commits-32-bits")
class Commits32Bits(Membership):
    """Commits the lower 32 bits of an offset."""

    async def commit(self, offsets: Offsets) -> dict[TopicPartition, int]:
        return await super().commit(
            {tp: (offset % 2**32, epoch) for tp, (offset, epoch) in offsets.items()}
        )
