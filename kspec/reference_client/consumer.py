"""The reference consumer: positions, fetches and what of their records is delivered, each rule in a
method.

It has partitions assigned, and fetches from one leader after the other, with a session each
(KIP-227). A request names every partition that it fetches, and those that the session is to forget.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from kproto.errors import DecodeError, RemoteProtocolError
from kproto.records import ControlRecordType, Record, RecordBatches, read_control_record
from kproto.records.batch import Batch
from kspec.reference_client.coordinators import GroupMetadata
from kspec.reference_client.link import BrokerError, Link, LinkClosedError, TimedOutError
from kspec.reference_client.membership import Membership
from kspec.reference_client.rules import ClientRules
from kspec.reference_client.topics import TopicPartition, Topics, message

__all__ = ["Consumer", "Interrupted", "Session"]

_OFFSET_OUT_OF_RANGE: Final = 1
_LOG_TRUNCATION: Final = 1
_SESSION_ERRORS: Final = (70, 71, 100, 103, 106)
_PASSING: Final = (3, 5, 6, 9, 56, 74, 75, 78, 100, 103)
"""Errors of a partition that a new look at its leader mends."""
_EARLIEST: Final = -2
_LATEST: Final = -1
_MAX_BYTES: Final = 50 * 1024 * 1024
_PARTITION_BYTES: Final = 1024 * 1024
_PAUSE: Final = 0.05
_FETCH: Final = 1
_TOPIC_IDS_SINCE: Final = 13
"""Fetch names topics by id since then (KIP-516)."""


class Interrupted(Exception):
    """A poll that failed after it had returned these records."""

    def __init__(self, error: Exception, records: list[dict[str, Any]]) -> None:
        super().__init__(str(error))
        self.error = error
        self.records = records


@dataclass(slots=True)
class Session:
    """A fetch session with a broker, and its partitions with the ids of their topics. Epoch 0 asks
    for a new one."""

    link: Link
    session_id: int = 0
    epoch: int = 0
    partitions: dict[TopicPartition, UUID] = field(default_factory=dict)


@dataclass(slots=True)
class Assigned:
    """A partition: the position, None before it is known, and the epoch of the record before it."""

    position: int | None
    epoch: int = -1
    leader_epoch: int = -1
    replica: int = -1
    is_committed_known: bool = False
    is_paused: bool = False
    queue: list[dict[str, Any]] = field(default_factory=list)


class Consumer:
    """A consumer of one client. ``options`` are those of docs/reference/adapters.md."""

    metadata: type[Topics] = Topics

    def __init__(
        self, client: ClientRules, options: Mapping[str, Any], membership: Membership | None = None
    ) -> None:
        self.client = client
        self.membership = membership
        self.topics = self.metadata(client, options.get("metadata_age_ms", 300_000) / 1000)
        self.policy = options.get("offset_reset", "latest")
        self.committed_only = options.get("isolation") == "read_committed"
        self.max_wait_ms = options.get("max_wait_ms", 500)
        self.partition_bytes = options.get("partition_max_bytes", _PARTITION_BYTES)
        self.rack = options.get("rack", "")
        self.group = options.get("group", "")
        self.assigned: dict[TopicPartition, Assigned] = {}
        self.sessions: dict[int, Session] = {}
        self.problem: Exception | None = None
        self.lost_in_turn = 0
        """How often in turn a connection was lost or a request timed out."""
        self.auto_commit_ms: int | None = options.get("auto_commit_ms")
        self.committed_at = time.monotonic()
        self.returned: dict[TopicPartition, tuple[int, int]] = {}
        """What earlier polls returned: offsets to commit, with leader epochs."""

    # ---- positions -------------------------------------------------------------------------------

    def assign(self, positions: Mapping[TopicPartition, int | None]) -> None:
        self.assigned = {tp: Assigned(offset) for tp, offset in positions.items()}

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Go on at these offsets. Raises ValueError for what is not assigned, or no offset."""
        for tp, offset in offsets.items():
            each = self.owned(tp)
            if offset < 0:
                raise ValueError(f"{offset} is not an offset")
            self.move(each, offset)

    def move(self, each: Assigned, offset: int) -> None:
        """What was read before belongs to the old position."""
        each.position, each.epoch, each.is_committed_known = offset, -1, True
        each.queue = []

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these until they are resumed. Raises ValueError."""
        for each in [self.owned(tp) for tp in partitions]:
            each.is_paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        for each in [self.owned(tp) for tp in partitions]:
            each.is_paused = False

    def owned(self, tp: TopicPartition) -> Assigned:
        """Raises ValueError."""
        if tp not in self.assigned:
            raise ValueError(f"{tp[0]}-{tp[1]} is not assigned")
        return self.assigned[tp]

    def group_metadata(self) -> GroupMetadata:
        return GroupMetadata(self.group) if self.membership is None else self.membership.metadata()

    # ---- the group -------------------------------------------------------------------------------

    @property
    def member(self) -> Membership:
        """Raises ValueError without a group."""
        if self.membership is None:
            raise ValueError("the consumer has no group")
        return self.membership

    def subscribe(self, topics: Sequence[str], pattern: str | None) -> None:
        self.member.subscribe(topics, pattern)

    async def unsubscribe(self) -> None:
        await self.member.unsubscribe()
        self.adopt(())

    def adopt(self, partitions: Iterable[TopicPartition]) -> None:
        """Replace the assignment; partitions that stay keep their positions."""
        wanted = sorted(partitions)
        if wanted != sorted(self.assigned):
            self.assigned = {tp: self.assigned.get(tp) or Assigned(None) for tp in wanted}

    def follow(self, membership: Membership) -> None:
        """Read what the member owns. A partition that it lost and has again begins anew."""
        if membership.has_lost_all:
            membership.has_lost_all = False
            self.adopt(())
        self.adopt(membership.owned)

    async def commit(
        self, offsets: Mapping[TopicPartition, int] | None
    ) -> dict[TopicPartition, int]:
        """Commit offsets, or the positions with the epochs of the records before them."""
        if offsets is not None:
            return await self.member.commit({tp: (each, -1) for tp, each in offsets.items()})
        return await self.member.commit(self.progress())

    def progress(self) -> dict[TopicPartition, tuple[int, int]]:
        return {
            tp: (self.offset_to_commit(each.position), each.epoch)
            for tp, each in self.assigned.items()
            if each.position is not None
        }

    def offset_to_commit(self, position: int) -> int:
        """The offset of the next record to read."""
        return position

    async def commit_in_time(self) -> None:
        """Commit what earlier polls returned, if that is due (enable.auto.commit). The application
        learns nothing of a failure: the next poll tries again."""
        self.returned = self.progress()
        if self.auto_commit_ms is None or self.membership is None:
            return
        if time.monotonic() - self.committed_at >= self.auto_commit_ms / 1000:
            await self.commit_quietly()

    async def take_part(self, seconds: float) -> None:
        """Take part in the group. Another member may go on with what is given up."""
        if self.auto_commit_ms is not None and self.gives_up_partitions():
            await self.commit_quietly()
        await self.member.take_part(seconds)

    def gives_up_partitions(self) -> bool:
        """Whether the group is about to rebalance, after which another member may go on."""
        return self.member.needs_to_join and self.member.joining is None

    async def commit_quietly(self) -> bool:
        """Return False if it failed."""
        if not self.returned:
            return True
        with suppress(BrokerError, LinkClosedError, TimedOutError):
            if not any((await self.member.commit(self.returned)).values()):
                self.committed_at = time.monotonic()
                return True
        return False

    async def close(self) -> None:
        if self.membership is not None:
            if self.auto_commit_ms is not None:
                self.returned = self.progress()
                await self.commit_quietly()
            await self.membership.close()
        self.adopt(())

    async def abandon(self) -> None:
        """End what runs beside the application, and tell no broker."""
        if self.membership is not None:
            await self.membership.stop()
            await self.membership.coordinators.close()

    async def poll(self, count: int, seconds: float) -> list[dict[str, Any]]:
        """Return at least ``count`` records, or what there is when time is up.

        Raises Interrupted with the records that came before an error.
        """
        ends = time.monotonic() + seconds
        await self.commit_in_time()
        found = self.delivered()
        while len(found) < count and time.monotonic() < ends:
            if self.problem is not None:
                problem, self.problem = self.problem, None
                raise Interrupted(problem, found)
            try:
                if self.membership is not None and self.membership.is_subscribed:
                    try:
                        await self.take_part(ends - time.monotonic())
                    finally:
                        self.follow(self.membership)
                await self.fetch_all()
                self.lost_in_turn = 0
            except (LinkClosedError, TimedOutError, RemoteProtocolError):
                self.topics.leaders.clear()
                self.lost_in_turn += 1
                await asyncio.sleep(self.client.pause(self.lost_in_turn))
            except (BrokerError, DecodeError) as error:
                self.problem = error
            found += self.delivered()
        return found

    def delivered(self) -> list[dict[str, Any]]:
        read = [each for each in self.assigned.values() if not each.is_paused]
        found = [record for each in read for record in each.queue]
        for each in read:
            each.queue = []
        return found

    async def positions(self, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        await self.prepare()
        return {tp: self.assigned[tp].position for tp in wanted}

    # ---- before a fetch --------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Find leaders and positions. Raises BrokerError, or what a connection does."""
        unknown = any(self.topics.leaders.get(tp, -1) < 0 for tp in self.assigned)
        if unknown or self.topics.are_old:
            await self.topics.refresh(tp[0] for tp in self.assigned)
        await self.find_committed()
        for tp, each in list(self.assigned.items()):
            if self.topics.leaders.get(tp, -1) < 0:
                continue
            if each.position is None:
                await self.reset(tp, self.policy)
            epoch = self.topics.epochs.get(tp, -1)
            if epoch > each.leader_epoch:
                if each.leader_epoch >= 0 and each.epoch >= 0:
                    await self.validate(tp, each)
                each.leader_epoch = epoch

    async def find_committed(self) -> None:
        """Go on where the group is, which is asked once; without an offset the policy decides."""
        wanted = [
            tp
            for tp, each in self.assigned.items()
            if each.position is None and not each.is_committed_known
        ]
        if self.membership is None or not wanted:
            return
        found = await self.membership.committed(wanted)
        for tp in wanted:
            if tp in self.assigned:
                self.start(self.assigned[tp], *found.get(tp, (-1, -1)))

    def start(self, each: Assigned, offset: int, epoch: int) -> None:
        """Take a committed offset; -1 is none. Its epoch is validated if the leader has a later
        one (KIP-320)."""
        each.is_committed_known = True
        if offset >= 0:
            each.position, each.epoch, each.leader_epoch = offset, epoch, epoch

    async def reset(self, tp: TopicPartition, policy: str) -> None:
        """Start where the policy says; without one it is an error."""
        if policy == "none":
            raise BrokerError(_OFFSET_OUT_OF_RANGE, "the position is out of range")
        timestamp = _EARLIEST if policy == "earliest" else _LATEST
        row = message("ListOffsetsRequest.ListOffsetsPartition")
        topic = message("ListOffsetsRequest.ListOffsetsTopic")
        request = message("ListOffsetsRequest")(
            replica_id=-1,
            isolation_level=self.isolation_of_offsets(),
            topics=[
                topic(name=tp[0], partitions=[row(partition_index=tp[1], timestamp=timestamp)])
            ],
        )
        link = await self.topics.link_to(self.topics.leader(tp))
        found = (await link.ask(request)).topics[0].partitions[0]
        if found.error_code in _PASSING:
            self.topics.leaders.pop(tp, None)
            await asyncio.sleep(_PAUSE)
        elif found.error_code:
            raise BrokerError(found.error_code)
        else:
            self.assigned[tp].position, self.assigned[tp].epoch = found.offset, -1

    async def validate(self, tp: TopicPartition, each: Assigned) -> None:
        """With another leader, ask where the epoch of what was read ends: if before the position,
        records that were read are gone (KIP-320)."""
        row = message("OffsetForLeaderEpochRequest.OffsetForLeaderPartition")
        topic = message("OffsetForLeaderEpochRequest.OffsetForLeaderTopic")
        rows = [
            row(
                partition=tp[1],
                current_leader_epoch=self.topics.epochs[tp],
                leader_epoch=each.epoch,
            )
        ]
        request = message("OffsetForLeaderEpochRequest")(
            replica_id=-1, topics=[topic(topic=tp[0], partitions=rows)]
        )
        link = await self.topics.link_to(self.topics.leader(tp))
        found = (await link.ask(request)).topics[0].partitions[0]
        if found.error_code:
            self.topics.leaders.pop(tp, None)
            raise LinkClosedError("the leader epoch could not be validated")
        if each.position is None or found.end_offset >= each.position:
            return
        if self.policy == "none":
            each.leader_epoch = self.topics.epochs[tp]
            raise BrokerError(_LOG_TRUNCATION, "records that were read are gone")
        if found.end_offset < 0:  # the leader knows nothing of the epoch, nor of one before it
            each.position = None
        else:
            each.position = found.end_offset

    # ---- fetches ---------------------------------------------------------------------------------

    async def fetch_all(self) -> None:
        await self.prepare()
        by_broker: dict[int, list[TopicPartition]] = {}
        for tp, each in self.assigned.items():
            leader = self.topics.leaders.get(tp, -1)
            if leader >= 0 and each.position is not None and not each.is_paused:
                by_broker.setdefault(self.source(each, leader), []).append(tp)
        if not by_broker:
            await asyncio.sleep(_PAUSE)
        await self.fetch_each(by_broker)

    async def fetch_each(self, by_broker: Mapping[int, Sequence[TopicPartition]]) -> None:
        """Fetch from each broker, also if another cannot be reached."""
        problem: Exception | None = None
        for broker, partitions in by_broker.items():
            try:
                await self.fetch(broker, partitions)
            except (LinkClosedError, TimedOutError, RemoteProtocolError) as error:
                problem = error
        if problem is not None:
            raise problem

    def fetch_version(self, newest: int) -> int | None:
        """Return the version of Fetch; None is the highest common one."""
        return None

    def isolation_of_offsets(self) -> int:
        """The end of the log is that of what may be read (KIP-98)."""
        return int(self.committed_only)

    def source(self, each: Assigned, leader: int) -> int:
        """The broker to fetch from: the leader, or the replica that it named (KIP-392)."""
        return each.replica if each.replica >= 0 else leader

    async def fetch(self, broker: int, partitions: Sequence[TopicPartition]) -> None:
        try:
            link = await self.topics.link_to(broker)
            session = self.session(broker, link)
            newest = link.codec.apis[_FETCH].valid_versions.highest
            version = self.fetch_version(newest)
            by_id = (version or link.choose_version(_FETCH)) >= _TOPIC_IDS_SINCE
            body = self.body(session, partitions, self.forgotten(session, partitions, by_id=by_id))
            answer = await link.ask(body, version)
        except (LinkClosedError, TimedOutError, RemoteProtocolError):
            for tp in partitions:
                self.assigned[tp].replica = -1
            raise
        if not self.keeps(session, answer, broker):
            return
        kept = partitions if session.session_id else ()
        session.partitions = {tp: self.topics.ids[tp[0]] for tp in kept}
        before = [self.assigned[tp].position for tp in partitions]
        for topic in answer.responses:
            name = self.topics.name(topic)
            for row in topic.partitions:
                if (name, row.partition_index) in self.assigned:
                    self.take((name, row.partition_index), row, answer)
        failed = any(row.error_code for topic in answer.responses for row in topic.partitions)
        if failed or before == [self.assigned[tp].position for tp in partitions]:
            await asyncio.sleep(_PAUSE)  # the same fetch at once would get the same answer

    def session(self, broker: int, link: Link) -> Session:
        """A session ends with its connection."""
        known = self.sessions.get(broker)
        if known is None or known.link is not link:
            known = self.sessions[broker] = Session(link)
        return known

    def keeps(self, session: Session, answer: Any, broker: int) -> bool:
        """Bring the session up to date; return whether the answer has partitions.

        A session that the broker does not know is followed by a new one.
        """
        code = getattr(answer, "error_code", 0)
        if code in _SESSION_ERRORS:
            del self.sessions[broker]
            return False
        if code:
            raise BrokerError(code)
        session.session_id = getattr(answer, "session_id", 0)
        session.epoch = session.epoch + 1 if session.session_id else 0
        return True

    def forgotten(
        self, session: Session, partitions: Sequence[TopicPartition], *, by_id: bool
    ) -> list[tuple[TopicPartition, UUID]]:
        """Return what the session still has and is not fetched any more, with the ids of the
        topics: also a topic of the same name and another id, unless it is named by name."""
        return [
            (tp, topic_id)
            for tp, topic_id in session.partitions.items()
            if tp not in partitions or (by_id and self.topics.ids[tp[0]] != topic_id)
        ]

    def body(
        self,
        session: Session,
        partitions: Sequence[TopicPartition],
        forgotten: Sequence[tuple[TopicPartition, UUID]] = (),
    ) -> Any:
        topics: dict[str, list[Any]] = {}
        row = message("FetchRequest.FetchPartition")
        for tp in partitions:
            topics.setdefault(tp[0], []).append(
                row(
                    partition=tp[1],
                    current_leader_epoch=self.known_epoch(tp),
                    fetch_offset=self.assigned[tp].position,
                    partition_max_bytes=self.partition_bytes,
                )
            )
        topic = message("FetchRequest.FetchTopic")
        forgotten_topic = message("FetchRequest.ForgottenTopic")
        return message("FetchRequest")(
            max_wait_ms=self.max_wait_ms,
            min_bytes=1,
            max_bytes=_MAX_BYTES,
            isolation_level=int(self.committed_only),
            session_id=session.session_id,
            session_epoch=session.epoch,
            rack_id=self.rack,
            topics=[
                topic(topic=name, topic_id=self.topics.ids[name], partitions=rows)
                for name, rows in topics.items()
            ],
            forgotten_topics_data=[
                forgotten_topic(topic=tp[0], topic_id=topic_id, partitions=[tp[1]])
                for tp, topic_id in forgotten
            ],
        )

    def known_epoch(self, tp: TopicPartition) -> int:
        """The leader epoch that the broker has to share (KIP-320)."""
        return self.topics.epochs.get(tp, -1)

    # ---- answers ---------------------------------------------------------------------------------

    def take(self, tp: TopicPartition, row: Any, answer: Any) -> None:
        """Decide what a partition's row means."""
        code, each = row.error_code, self.assigned[tp]
        if code == _OFFSET_OUT_OF_RANGE:
            self.out_of_range(tp, each)
        elif code in _PASSING:
            self.look_again(tp, row, answer)
        elif code:
            self.fail(BrokerError(code))
        else:
            preferred = getattr(row, "preferred_read_replica", -1)
            if preferred >= 0:
                each.replica = preferred
            self.read(tp, each, row)

    def out_of_range(self, tp: TopicPartition, each: Assigned) -> None:
        if each.replica >= 0:  # a follower may be behind; the leader decides
            each.replica = -1
        elif self.policy == "none":
            self.fail(BrokerError(_OFFSET_OUT_OF_RANGE))
        else:
            each.position = None

    def look_again(self, tp: TopicPartition, row: Any, answer: Any) -> None:
        self.assigned[tp].replica = -1
        if not self.topics.learn_hint(tp, row, getattr(answer, "node_endpoints", ())):
            self.topics.leaders.pop(tp, None)

    def fail(self, problem: Exception) -> None:
        """Report an error with the poll, behind the records that came before it."""
        self.problem = self.problem or problem

    def read(self, tp: TopicPartition, each: Assigned, row: Any) -> None:
        """Deliver the records of a row, up to a batch that is damaged."""
        aborted = self.aborted(row)
        try:
            for batch in self.batches(row.records):
                self.read_batch(tp, each, batch, aborted)
        except DecodeError as error:
            self.fail(error)

    def batches(self, data: bytes | None) -> Iterable[Batch]:
        """The last batch may be cut off; it comes whole with the next fetch."""
        return RecordBatches(data, allow_partial=True)

    def aborted(self, row: Any) -> Aborted:
        rows = getattr(row, "aborted_transactions", None) or ()
        return Aborted([(each.first_offset, each.producer_id) for each in rows])

    def read_batch(
        self, tp: TopicPartition, each: Assigned, batch: Batch, aborted: Aborted
    ) -> None:
        assert each.position is not None
        if batch.last_offset < each.position:
            return
        hidden = self.is_hidden(batch, aborted)
        records = [] if hidden else self.records(batch)
        for record in records:
            if self.is_wanted(record.offset, each.position):
                each.queue.append(self.delivery(tp, record))
        each.epoch = batch.partition_leader_epoch
        each.position = self.next_position(batch, each.position, [one.offset for one in records])

    def delivery(self, tp: TopicPartition, record: Record) -> dict[str, Any]:
        """The record as the application gets it."""
        return {
            "topic": tp[0],
            "partition": tp[1],
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": _text(record.key),
            "value": _text(record.value),
            "headers": self.headers(record),
        }

    def records(self, batch: Batch) -> list[Record]:
        """The records with the offsets and times that they have in the log, whatever the format."""
        return batch.records()

    def headers(self, record: Record) -> list[list[Any]]:
        """Every header in its order: a name may come again, and a value be null (KIP-82)."""
        return [[name, _text_or_hex(value)] for name, value in record.headers]

    def is_wanted(self, offset: int, position: int) -> bool:
        """A batch comes whole, although records before the position may be in it."""
        return offset >= position

    def is_hidden(self, batch: Batch, aborted: Aborted) -> bool:
        """Control batches are not for applications, and aborted ones only if they may be read."""
        is_aborted = aborted.covers(batch)
        return batch.is_control or (self.committed_only and is_aborted)

    def next_position(self, batch: Batch, position: int, offsets: Sequence[int]) -> int:
        """Behind the batch, whatever of it was delivered or is left after compaction."""
        return batch.next_offset


class Aborted:
    """The transactions that an answer lists as aborted: which batches are theirs (KIP-98)."""

    def __init__(self, listed: Sequence[tuple[int, int]]) -> None:
        self.listed = sorted(listed)
        self.open_ids: set[int] = set()

    def covers(self, batch: Batch) -> bool:
        """To be asked about each batch once, in their order."""
        while self.listed and self.listed[0][0] <= batch.last_offset:
            self.open_ids.add(self.listed.pop(0)[1])
        if batch.is_control:
            if read_control_record(batch.records()[0]).type == ControlRecordType.ABORT:
                self.open_ids.discard(batch.producer_id)
            return False
        return batch.is_transactional and batch.producer_id in self.open_ids


def _text_or_hex(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")
