"""The reference consumer of a share group (KIP-932), each rule in a method.

A leader gives out records, which are locked for this member until it acknowledges them: by the next
poll, or one by one with ``acknowledgement: explicit``. Acknowledgements go with the next ShareFetch
to that leader, or with a ShareAcknowledge. Both are requests of a share session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias
from uuid import UUID

from kproto.errors import DecodeError
from kspec.reference_client.consumer import Assigned, Consumer, Session
from kspec.reference_client.link import BrokerError, LinkClosedError, TimedOutError
from kspec.reference_client.membership import Membership
from kspec.reference_client.rules import ClientRules
from kspec.reference_client.topics import TopicPartition, message

__all__ = ["ACKNOWLEDGE_TYPES", "Decisions", "ShareConsumer"]

Decisions: TypeAlias = dict[TopicPartition, dict[int, int]]
"""How records are acknowledged, by partition and offset."""

_GAP: Final = 0
ACKNOWLEDGE_TYPES: Final[Mapping[str, int]] = {"accept": 1, "release": 2, "reject": 3}
_FIRST_EPOCH: Final = 0
_FINAL_EPOCH: Final = -1
_LAST_EPOCH: Final = 2**31 - 1
_SESSION_ERRORS: Final = (122, 123)
_SESSION_NOT_FOUND: Final = 122
_MOST_RECORDS: Final = 500
_MAX_BYTES: Final = 50 * 1024 * 1024
_PAUSE: Final = 0.05


class ShareConsumer(Consumer):
    """A consumer of a share group."""

    def __init__(
        self, client: ClientRules, options: Mapping[str, Any], membership: Membership
    ) -> None:
        super().__init__(client, options, membership)
        self.is_explicit = options.get("acknowledgement") == "explicit"
        self.undecided: dict[TopicPartition, dict[int, int]] = {}
        """The broker that delivered each unacknowledged record, by partition and offset."""
        self.decided: dict[int, Decisions] = {}
        """Acknowledgements that wait for the next request, by broker."""

    # ---- the application's part ------------------------------------------------------------------

    async def poll(self, count: int, seconds: float) -> list[dict[str, Any]]:
        """With explicit acknowledgement, the first records end the poll. Raises ValueError if there
        are records that have not been acknowledged."""
        if self.is_explicit and self.undecided:
            raise ValueError("records of the last poll have not been acknowledged")
        return await super().poll(1 if self.is_explicit else count, seconds)

    async def commit_in_time(self) -> None:
        """The next poll accepts what earlier ones returned."""
        self.accept_delivered()

    def accept_delivered(self) -> None:
        if not self.is_explicit:
            for tp in list(self.undecided):
                for offset in list(self.undecided[tp]):
                    self.decide(tp, offset, ACKNOWLEDGE_TYPES["accept"])

    def acknowledge(self, wanted: Decisions) -> None:
        """Raises ValueError for what was not delivered, or is acknowledged already."""
        for tp, types in wanted.items():
            for offset, kind in types.items():
                if offset not in self.undecided.get(tp, ()):
                    raise ValueError(f"{tp[0]}-{tp[1]} has no such record: {offset}")
                self.decide(tp, offset, kind)

    def decide(self, tp: TopicPartition, offset: int, kind: int) -> None:
        broker = self.undecided[tp].pop(offset)
        if not self.undecided[tp]:
            del self.undecided[tp]
        self.keep_decision(broker, tp, offset, kind)

    def keep_decision(self, broker: int, tp: TopicPartition, offset: int, kind: int) -> None:
        self.decided.setdefault(broker, {}).setdefault(tp, {})[offset] = kind

    async def commit(
        self, offsets: Mapping[TopicPartition, int] | None
    ) -> dict[TopicPartition, int]:
        """Acknowledge what has been decided, and learn what became of it."""
        if offsets is not None:
            raise ValueError("a share group has no offsets to commit")
        self.accept_delivered()
        found: dict[TopicPartition, int] = {}
        for broker, decisions in self.taken_decisions().items():
            found |= await self.send_decisions(broker, decisions, is_last=False)
        return found

    def taken_decisions(self) -> dict[int, Decisions]:
        decided, self.decided = self.decided, {}
        return decided

    def last_decisions(self) -> dict[int, Decisions]:
        """What the application has acknowledged and not committed."""
        return self.taken_decisions()

    async def close(self) -> None:
        """End the sessions, so that what is not acknowledged is available to others at once."""
        decided = self.last_decisions()
        for broker in list(self.sessions):
            with suppress(BrokerError, LinkClosedError, TimedOutError):
                await self.send_decisions(broker, decided.get(broker, {}), is_last=True)
        self.sessions, self.undecided = {}, {}
        await self.member.close()
        self.adopt(())

    def follow(self, membership: Membership) -> None:
        """Records that were given out stay locked, whatever becomes of the assignment."""
        membership.has_lost_all = False
        self.adopt(membership.owned)

    # ---- requests --------------------------------------------------------------------------------

    async def fetch_all(self) -> None:
        unknown = any(self.topics.leaders.get(tp, -1) < 0 for tp in self.assigned)
        if unknown or self.topics.are_old:
            await self.topics.refresh(tp[0] for tp in self.assigned)
        by_broker: dict[int, list[TopicPartition]] = {each: [] for each in self.decided}
        for tp in self.assigned:
            leader = self.topics.leaders.get(tp, -1)
            if leader >= 0:
                by_broker.setdefault(leader, []).append(tp)
        if not by_broker:
            await asyncio.sleep(_PAUSE)
        await self.fetch_each(by_broker)

    async def fetch(self, broker: int, partitions: Sequence[TopicPartition]) -> None:
        decisions = self.decided.pop(broker, {})
        session = self.session(broker, await self.topics.link_to(broker))
        if session.epoch == _FIRST_EPOCH:
            decisions = self.without_session(decisions)
        body = self.fetch_body(session, partitions, decisions)
        answer = await session.link.ask(body)
        if not self.keeps(session, answer, broker):
            return
        session.partitions = {tp: self.topics.ids[tp[0]] for tp in partitions}
        failed = False
        for topic in answer.responses:
            name = self.topics.name(topic)
            for row in topic.partitions:
                tp = name, row.partition_index
                failed = failed or bool(row.error_code)
                if tp in self.assigned:
                    self.take_share(broker, tp, row, answer)
        if failed or not answer.responses:
            await asyncio.sleep(_PAUSE)

    def without_session(self, decisions: Decisions) -> Decisions:
        """The first request of a session acknowledges nothing, and the locks of the last session
        are gone."""
        return {}

    def fetch_body(
        self, session: Session, partitions: Sequence[TopicPartition], decisions: Decisions
    ) -> Any:
        row = message("ShareFetchRequest.FetchPartition")
        topic = message("ShareFetchRequest.FetchTopic")
        forgotten_topic = message("ShareFetchRequest.ForgottenTopic")
        ids = {tp: self.topics.ids[tp[0]] for tp in [*partitions, *decisions]}
        named = [tp for tp in ids if tp in decisions or session.partitions.get(tp) != ids[tp]]
        gone = {
            tp: each
            for tp, each in session.partitions.items()
            if tp not in partitions or ids[tp] != each
        }
        return message("ShareFetchRequest")(
            group_id=self.group,
            member_id=self.member.member_id,
            share_session_epoch=session.epoch,
            max_wait_ms=self.max_wait_ms,
            min_bytes=1,
            max_bytes=_MAX_BYTES,
            max_records=_MOST_RECORDS,
            batch_size=_MOST_RECORDS,
            topics=[
                topic(
                    topic_id=topic_id,
                    partitions=[
                        row(
                            partition_index=tp[1],
                            acknowledgement_batches=self.acknowledgement_batches(
                                "ShareFetchRequest", decisions.get(tp, {})
                            ),
                        )
                        for tp in tps
                    ],
                )
                for topic_id, tps in _by_id({tp: ids[tp] for tp in named}).items()
            ],
            forgotten_topics_data=[
                forgotten_topic(topic_id=topic_id, partitions=[tp[1] for tp in tps])
                for topic_id, tps in _by_id(gone).items()
            ],
        )

    def acknowledgement_batches(self, request: str, types: Mapping[int, int]) -> list[Any]:
        """Return ranges of offsets in their order, which do not overlap, with a type for each
        offset."""
        batch = message(f"{request}.AcknowledgementBatch")
        return [
            batch(
                first_offset=offsets[0],
                last_offset=offsets[-1],
                acknowledge_types=[types[each] for each in offsets],
            )
            for offsets in _runs(types)
        ]

    async def send_decisions(
        self, broker: int, decisions: Decisions, *, is_last: bool
    ) -> dict[TopicPartition, int]:
        """Send a ShareAcknowledge, and return the error of each partition."""
        session = self.session(broker, await self.topics.link_to(broker))
        if session.epoch == _FIRST_EPOCH:
            return dict.fromkeys(decisions, _SESSION_NOT_FOUND)
        topic = message("ShareAcknowledgeRequest.AcknowledgeTopic")
        row = message("ShareAcknowledgeRequest.AcknowledgePartition")
        request = message("ShareAcknowledgeRequest")(
            group_id=self.group,
            member_id=self.member.member_id,
            share_session_epoch=self.final_epoch() if is_last else session.epoch,
            topics=[
                topic(
                    topic_id=topic_id,
                    partitions=[
                        row(
                            partition_index=tp[1],
                            acknowledgement_batches=self.acknowledgement_batches(
                                "ShareAcknowledgeRequest", decisions[tp]
                            ),
                        )
                        for tp in tps
                    ],
                )
                for topic_id, tps in _by_id(
                    {tp: self.topics.ids[tp[0]] for tp in decisions}
                ).items()
            ],
        )
        answer = await session.link.ask(request)
        try:
            if not self.keeps(session, answer, broker):
                return dict.fromkeys(decisions, int(answer.error_code))
        except BrokerError as error:
            return dict.fromkeys(decisions, error.code)
        return {
            (self.topics.name(topic), row.partition_index): row.error_code
            for topic in answer.responses
            for row in topic.partitions
        }

    def final_epoch(self) -> int:
        return _FINAL_EPOCH

    def keeps(self, session: Session, answer: Any, broker: int) -> bool:
        """A session that the broker does not know, or is at another epoch, is followed by a new
        one."""
        if answer.error_code in _SESSION_ERRORS:
            self.sessions.pop(broker, None)
            return False
        if answer.error_code:
            raise BrokerError(answer.error_code)
        session.epoch = self.epoch_after(session.epoch)
        return True

    def epoch_after(self, epoch: int) -> int:
        return 1 if epoch == _LAST_EPOCH else epoch + 1

    # ---- answers ---------------------------------------------------------------------------------

    def take_share(self, broker: int, tp: TopicPartition, row: Any, answer: Any) -> None:
        """Deliver the records of a row that this member acquired, and no others."""
        if row.error_code:
            self.take(tp, row, answer)
            return
        acquired = {
            offset: each.delivery_count
            for each in row.acquired_records
            for offset in range(each.first_offset, each.last_offset + 1)
        }
        each, found = self.assigned[tp], set()
        try:
            for batch in self.batches(row.records):
                for record in [] if batch.is_control else self.records(batch):
                    if self.is_acquired(record.offset, acquired):
                        found.add(record.offset)
                        self.deliver(tp, each, record, acquired.get(record.offset, 1))
        except DecodeError as error:
            self.fail(error)
            self.decide_unread(broker, tp, set(acquired) - found, ACKNOWLEDGE_TYPES["reject"])
        else:
            self.decide_unread(broker, tp, set(acquired) - found, _GAP)
        if found:
            self.undecided.setdefault(tp, {}).update(dict.fromkeys(sorted(found), broker))

    def is_acquired(self, offset: int, acquired: Mapping[int, int]) -> bool:
        """A batch comes whole, although others may have records of it."""
        return offset in acquired

    def deliver(self, tp: TopicPartition, each: Assigned, record: Any, times: int) -> None:
        each.queue.append({**self.delivery(tp, record), "delivery_count": times})

    def decide_unread(
        self, broker: int, tp: TopicPartition, offsets: Iterable[int], kind: int
    ) -> None:
        """Offsets without a record for the application are acknowledged, too: they would be given
        out again."""
        for offset in offsets:
            self.keep_decision(broker, tp, offset, kind)


def _by_id(ids: Mapping[TopicPartition, UUID]) -> dict[UUID, list[TopicPartition]]:
    found: dict[UUID, list[TopicPartition]] = {}
    for tp, topic_id in ids.items():
        found.setdefault(topic_id, []).append(tp)
    return found


def _runs(offsets: Iterable[int]) -> list[list[int]]:
    """Return the offsets in runs without a gap."""
    found: list[list[int]] = []
    for offset in sorted(offsets):
        if found and found[-1][-1] == offset - 1:
            found[-1].append(offset)
        else:
            found.append([offset])
    return found
