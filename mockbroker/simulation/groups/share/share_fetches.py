"""ShareFetch and ShareAcknowledge at the leaders of partitions: sessions, acquisition, waiting.

The state of a share partition is the same whichever broker leads the partition: it is kept in
memory, as if the share coordinator had stored it. Another leader forgets who acquired records.

A leader that has loaded a share partition does not notice when its state is altered or deleted: it
goes on with its copy until it has to store something, or a connection of the group closes and there
is no session left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import msgspec

from kproto.error_codes import ErrorCode, message
from mockbroker.errors import ClusterError
from mockbroker.simulation.fetching.fetches import Fetches
from mockbroker.simulation.fetching.query import FetchQuery, PartitionPosition
from mockbroker.simulation.groups.modern.group_topics import GroupTopics
from mockbroker.simulation.groups.modern.partitions import Assignment, TopicIdPartition
from mockbroker.simulation.groups.share.deliveries import DeliveryRules, StoreError, StoreEvent
from mockbroker.simulation.groups.share.share_partition import (
    UNINITIALIZED,
    AckBatch,
    AcquiredRange,
    SharePartition,
    StartedAcknowledgement,
)
from mockbroker.simulation.groups.share.share_sessions import (
    FINAL_EPOCH,
    AnswerEvent,
    SessionEvent,
    SessionRow,
    SessionRules,
    ShareSession,
    begins_with_repetition,
)
from mockbroker.simulation.groups.share.share_settings import ShareSettings, ShareTimes
from mockbroker.simulation.groups.share.share_state_log import ShareStateLog
from mockbroker.simulation.groups.share.stored_batches import StateBatch
from mockbroker.simulation.log.batches.batch_header import HEADER_SIZE, BatchHeader, read_header
from mockbroker.simulation.log.logs import Logs
from mockbroker.simulation.log.partition_log import AbortedTransaction, PartitionLog
from mockbroker.simulation.log.timestamps import first_at_or_after
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first, rules_of_release
from mockbroker.simulation.state.actions import BrokerChanged, Change, PartitionChanged
from mockbroker.simulation.state.cluster_parts import TopicPartition, find_partition
from mockbroker.simulation.state.controller import Controller

__all__ = ["ShareAnswer", "ShareFetches", "ShareQuery", "ShareWait", "StartedShareFetch"]


class ShareQuery(msgspec.Struct):
    """A ShareFetch to one broker. ``partitions`` are those of the session, without those that the
    caller may not read; ``strict``: no more records than ``max_records`` are acquired."""

    broker_id: int
    group_id: str
    member_id: str
    session_epoch: int
    partitions: Sequence[tuple[str, TopicIdPartition]]
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    strict: bool = False


class ShareAnswer(msgspec.Struct):
    """The part of a ShareFetch's response about one partition."""

    partition: TopicIdPartition
    error_code: int = 0
    error_message: str | None = None
    records: bytes = b""
    acquired: Sequence[AcquiredRange] = ()


class _Source(msgspec.Struct):
    """A partition of a fetch, which this broker leads."""

    topic: str
    key: TopicIdPartition
    share: SharePartition
    log: PartitionLog


class ShareWait:
    """A ShareFetch that waits for records: new ones, or some that become available."""

    def __init__(self, fetch: StartedShareFetch) -> None:
        self._fetch = fetch
        self._call: Callable[[], None] = lambda: None
        self.done = False

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions that it waits for."""
        return tuple((source.topic, source.key[1]) for source in self._fetch.sources)

    def begin(self, call: Callable[[], None]) -> None:
        """Call ``call`` once when the fetch is to be answered, perhaps now. ``end`` must follow."""
        self._call = call
        for source in self._fetch.sources:
            source.log.watch(self, self.check)
            source.share.watch(self, self.check)
        self.check()

    def check(self) -> None:
        if not self.done and self._fetch.is_ready():
            self.finish()

    def finish(self) -> None:
        """Answer the fetch with the available records."""
        if not self.done:
            self.done = True
            self._call()

    def end(self) -> None:
        """Stop watching."""
        self.done = True
        for source in self._fetch.sources:
            source.log.unwatch(self)
            source.share.unwatch(self)


class StartedShareFetch:
    """A fetch whose partitions have been looked up. ``wait`` is there if it has to wait; ``answer``
    acquires records."""

    def __init__(self, fetches: ShareFetches, query: ShareQuery) -> None:
        self._fetches = fetches
        self._query = query
        self._failed: list[ShareAnswer] = []
        self.sources: list[_Source] = []
        self.wait: ShareWait | None = None
        if not query.max_records or not query.max_bytes:
            return
        for name, key in _rotated(query.partitions, query.session_epoch):
            source = fetches.source(query, name, key)
            if isinstance(source, ShareAnswer):
                self._failed.append(source)
            else:
                self.sources.append(source)
        if self.sources and query.max_wait_ms > 0 and not self.is_ready():
            self.wait = ShareWait(self)

    def is_ready(self) -> bool:
        """Whether there are records enough, or an error."""
        query, total, any_open = self._query, 0, False
        acquirable = self._acquirable()
        for source in acquirable:
            any_open = True
            waiting = self._fetches.reader.waiting_bytes(*self._read_query(source, len(acquirable)))
            if waiting is None:
                return True
            total += waiting
        return any_open and total >= min(query.min_bytes, query.max_bytes)

    def _acquirable(self) -> list[_Source]:
        return [source for source in self.sources if source.share.can_acquire]

    def _read_query(self, source: _Source, count: int) -> tuple[FetchQuery, PartitionPosition]:
        query = self._query
        position = PartitionPosition(
            source.topic,
            source.key[0],
            source.key[1],
            source.share.next_offset(),
            query.max_bytes // count,
        )
        return (
            FetchQuery(
                query.broker_id,
                [position],
                query.max_bytes,
                read_committed=self._fetches.times(query.group_id).read_committed,
                by_id=True,
            ),
            position,
        )

    def answer(self) -> list[ShareAnswer]:
        """Acquire records, as many as there are, and return them with the errors."""
        query, answers = self._query, list(self._failed)
        acquirable = self._acquirable()
        if query.max_bytes < 0:
            failed = [_failure(each.key, ErrorCode.UNKNOWN_SERVER_ERROR) for each in acquirable]
            return answers + failed
        room, left = min(query.max_bytes, self._fetches.max_bytes), query.max_records
        for source in acquirable:
            fetch, position = self._read_query(source, len(acquirable))
            first = room == min(query.max_bytes, self._fetches.max_bytes)
            read = self._fetches.reader.read(fetch, position, room, first=first)
            room = max(room - read.size, 0)
            answer = ShareAnswer(source.key, read.error_code)
            answers.append(answer)
            if read.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                source.share.log_starts_at(source.log.start_offset)
                answer.error_code = 0
            elif not read.error_code:
                data = b"".join(read.records or ())
                self._acquire(source, position.offset, data, read.aborted or (), left, answer)
                left -= sum(span.last - span.first + 1 for span in answer.acquired)
        return answers

    def _acquire(
        self,
        source: _Source,
        offset: int,
        data: bytes,
        aborted: Sequence[AbortedTransaction],
        most: int,
        answer: ShareAnswer,
    ) -> None:
        query, headers = self._query, _headers(data)
        answer.acquired = source.share.acquire(
            query.member_id,
            headers,
            _aborted_batches(headers, aborted),
            offset,
            most=most,
            batch_size=query.batch_size,
            strict=query.strict,
        )
        if answer.acquired:
            answer.records = _slice(data, headers, answer.acquired)


class ShareFetches:
    """The share partitions and share sessions of a cluster. ``times`` returns what a group may set
    for itself."""

    def __init__(
        self,
        controller: Controller,
        logs: Logs,
        fetches: Fetches,
        topics: GroupTopics,
        release: Release,
        settings: Callable[[], ShareSettings],
        times: Callable[[str], ShareTimes],
        log: ShareStateLog,
    ) -> None:
        self._log = log
        self.times = times
        self.reader = fetches.reader
        self.max_bytes = fetches.max_bytes
        self._controller = controller
        self._logs = logs
        self._topics = topics
        self._settings = settings
        release.follow(self._use_release)
        self._partitions: dict[tuple[str, TopicIdPartition], SharePartition] = {}
        self._copies: dict[tuple[str, TopicIdPartition], SharePartition] = {}
        """The states that leaders have loaded and that were altered or deleted since."""
        self._loaded: dict[tuple[str, TopicIdPartition], int] = {}
        """The leader epoch at which a leader has loaded a share partition."""
        self._sessions: dict[int, dict[tuple[str, str], ShareSession]] = {}
        self._last_begun: dict[tuple[int, int], ShareSession] = {}
        """By broker and connection, unless a session that began there has ended since."""
        self._waits: dict[ShareWait, None] = {}
        controller.add_hooks((BrokerChanged, PartitionChanged), after=self._cluster_changed)

    def _use_release(self, release: Release) -> None:
        self._rules = rules_of_release(DeliveryRules, release)
        self.batch_rules = self._rules.batch
        self._session_rules = rules_of_release(SessionRules, release)

    # ---- states of share partitions --------------------------------------------------------------

    def initialize(
        self,
        group_id: str,
        partitions: Assignment,
        state_epoch: int = 0,
        start_offset: int = UNINITIALIZED,
    ) -> None:
        """Make the states of share partitions."""
        for key in partitions:
            self._keep_copy(group_id, key)
            self._partitions[group_id, key] = self._new(group_id, key, state_epoch, start_offset)
            self._log.begin(group_id, key, state_epoch, start_offset)

    def replace(
        self,
        group_id: str,
        key: TopicIdPartition,
        start_offset: int,
        complete: int,
        batches: Iterable[StateBatch],
    ) -> None:
        """Put another state in place of one that there is."""
        former = self._partitions[group_id, key]
        self._keep_copy(group_id, key)
        share = self._new(group_id, key, former.state_epoch, start_offset)
        share.leader_epoch = former.leader_epoch
        share.load(start_offset, complete, batches)
        self._partitions[group_id, key] = share

    def _new(
        self, group_id: str, key: TopicIdPartition, state_epoch: int, start_offset: int
    ) -> SharePartition:
        return SharePartition(
            group_id,
            (self._topics.name_of(key[0]) or "", key[1]),
            self._controller.timers,
            self._rules,
            partial(self.times, group_id),
            start_offset,
            state_epoch,
            partial(self._storing, (group_id, key)),
            partial(self._log.write, group_id, key),
        )

    def forget(self, group_id: str, partitions: Assignment) -> None:
        """Delete the states of share partitions."""
        for key in partitions:
            self._keep_copy(group_id, key)
            self._log.delete(group_id, key)

    def _keep_copy(self, group_id: str, key: TopicIdPartition) -> None:
        """Remove a state, of which the leader of the partition may have a copy."""
        removed = self._partitions.pop((group_id, key), None)
        if removed is not None and (group_id, key) in self._loaded:
            self._copies.setdefault((group_id, key), removed)

    def _drop_copy(self, group_id: str, key: TopicIdPartition) -> None:
        """Let the leader load the state anew."""
        copy = self._copies.pop((group_id, key), None)
        if copy is not None:
            self._loaded.pop((group_id, key))
            self._reload(group_id, key, copy)

    def _storing(
        self, name: tuple[str, TopicIdPartition], share: SharePartition
    ) -> StoreError | None:
        """A leader stores what it knows: an error if that is of an older epoch than the state, or
        there is none."""
        if self._copies.get(name) is not share:
            return None
        stored = self._partitions.get(name)
        is_older = stored is not None and stored.state_epoch > share.state_epoch
        event = StoreEvent(stored is None, is_older)
        apply_first(self._rules.store, event, event)
        if is_older:
            self._drop_copy(*name)
        elif event.error is None:
            self._partitions[name] = self._copies.pop(name)
        return event.error

    def _unload(self, broker_id: int, group_id: str) -> None:
        """A broker forgets what it has loaded of a group, without any session of which it is."""
        for group, key in list(self._loaded):
            if group == group_id and self._leader(key) == broker_id:
                self._drop_copy(group, key)
                self._loaded.pop((group, key), None)
                share = self._partitions.get((group, key))
                if share is not None:
                    self._reload(group, key, share)

    def _reload(self, group_id: str, key: TopicIdPartition, share: SharePartition) -> None:
        """Let a share partition be what the share coordinator has stored."""
        stored = self._log.state(group_id, key)
        if stored is None:
            share.reload(UNINITIALIZED, 0, [])
        else:
            share.reload(stored.start_offset, stored.complete, stored.batches)

    def _leader(self, key: TopicIdPartition) -> int | None:
        partition = find_partition(
            self._controller.state.topics, (self._topics.name_of(key[0]) or "", key[1])
        )
        return None if partition is None else partition.leader

    def _at_leader(self, group_id: str, key: TopicIdPartition) -> SharePartition | None:
        """The state that the leader of a partition has loaded."""
        copy = self._copies.get((group_id, key))
        return self._partitions.get((group_id, key)) if copy is None else copy

    def partition(self, group_id: str, key: TopicIdPartition) -> SharePartition | None:
        """Return a share partition; None if it has no state."""
        return self._partitions.get((group_id, key))

    def partitions_of(self, group_id: str) -> list[SharePartition]:
        """The share partitions of a group, in the order of names."""
        shares = [share for (group, _), share in self._partitions.items() if group == group_id]
        return sorted(shares, key=lambda each: each.tp)

    def end_offset(self, tp: TopicPartition) -> int:
        """The high watermark of a partition, by which lag is counted."""
        return self._logs.log(tp).high_watermark

    def _cluster_changed(self, _cause: str, change: Change) -> None:
        if isinstance(change, BrokerChanged):
            if not change.after.live:
                for member in list(self._sessions.get(change.after.broker_id, ())):
                    self.end_session(change.after.broker_id, *member)
            return
        assert isinstance(change, PartitionChanged)
        if change.before.leader == change.after.leader:
            return
        tp = (change.topic, change.after.index)
        for group_id, key in [name for name, each in self._copies.items() if each.tp == tp]:
            self._drop_copy(group_id, key)
        for (group_id, key), share in self._partitions.items():
            if share.tp == tp:
                self._reload(group_id, key, share)

    # ---- fetching --------------------------------------------------------------------------------

    def source(self, query: ShareQuery, topic: str, key: TopicIdPartition) -> _Source | ShareAnswer:
        """Return a partition to fetch from, or its error."""
        partition = find_partition(self._controller.state.topics, (topic, key[1]))
        if partition is None:
            return _failure(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if partition.leader != query.broker_id:
            return _failure(key, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        share = self._at_leader(query.group_id, key)
        if share is None:
            return _failure(key, ErrorCode.UNKNOWN_SERVER_ERROR)
        log = self._logs.log((topic, key[1]))
        if self._loaded.get((query.group_id, key)) != partition.leader_epoch:
            start = self._start_offset(query.group_id, share, log)
            if start is None:
                return _failure(key, ErrorCode.OFFSET_NOT_AVAILABLE)
            self._loaded[query.group_id, key] = partition.leader_epoch
            share.begin_at(start, partition.leader_epoch)
            self._log.lead(query.group_id, key, partition.leader_epoch)
        return _Source(topic, key, share, log)

    def _start_offset(self, group_id: str, share: SharePartition, log: PartitionLog) -> int | None:
        """The offset at which the group begins; None if no record is as new as the configured
        duration."""
        if share.start_offset != UNINITIALIZED:
            return share.start_offset
        strategy = self.times(group_id).offset_reset
        if strategy == "earliest":
            return log.start_offset
        if strategy.startswith("by_duration:"):
            at_ms = self._controller.timers.now_ms - duration_ms(strategy.partition(":")[2])
            first = first_at_or_after(log, at_ms, log.high_watermark)
            return None if first is None else first.offset
        return log.high_watermark

    def start(self, query: ShareQuery) -> StartedShareFetch:
        """Look up what a request fetches. If ``wait`` is set, ``begin_wait`` comes before the
        answer."""
        return StartedShareFetch(self, query)

    def begin_wait(self, wait: ShareWait, call: Callable[[], None]) -> None:
        """Let a fetch wait, and call ``call`` once it is to be answered. ``end_wait`` must follow
        in any case."""
        self._waits[wait] = None
        wait.begin(call)

    def end_wait(self, wait: ShareWait) -> None:
        """Forget a fetch that has waited."""
        self._waits.pop(wait, None)
        wait.end()

    def waiting(self) -> tuple[ShareWait, ...]:
        """Return the fetches that wait, oldest first."""
        return tuple(self._waits)

    # ---- acknowledging ---------------------------------------------------------------------------

    def acknowledge(
        self,
        broker_id: int,
        group_id: str,
        member_id: str,
        key: TopicIdPartition,
        batches: Iterable[AckBatch],
    ) -> StartedAcknowledgement:
        """Check acknowledgements of one partition."""
        name = self._topics.name_of(key[0])
        partition = find_partition(self._controller.state.topics, (name or "", key[1]))
        share = self._at_leader(group_id, key)
        loaded = None if partition is None else partition.leader_epoch
        led = partition is not None and partition.leader == broker_id
        if share is None or not led or self._loaded.get((group_id, key)) != loaded:
            # The broker knows only share partitions that were fetched from it.
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return StartedAcknowledgement(code, message(code))
        return share.acknowledge(member_id, batches)

    # ---- sessions --------------------------------------------------------------------------------

    def session(self, broker_id: int, group_id: str, member_id: str) -> ShareSession | None:
        """Return a session; None if the broker has none for the member."""
        return self._sessions.get(broker_id, {}).get((group_id, member_id))

    def sessions(self) -> Iterator[tuple[int, ShareSession]]:
        """Yield every session with the id of its broker."""
        for broker_id, sessions in sorted(self._sessions.items()):
            for session in sessions.values():
                yield broker_id, session

    def open(
        self,
        broker_id: int,
        group_id: str,
        member_id: str,
        epoch: int,
        connection_id: int,
        *,
        acknowledges: bool,
        added: Sequence[TopicIdPartition],
        forgotten: Sequence[TopicIdPartition],
    ) -> tuple[ErrorCode, ShareSession | None]:
        """Begin or continue the session of a ShareFetch; None with the last request of one."""
        event, code = self._session_event(
            self._session_rules.fetch,
            broker_id,
            group_id,
            member_id,
            epoch,
            acknowledges,
            repeats=len(set(added)) < len(added),
        )
        if begins_with_repetition(event) and not acknowledges and event.session is not None:
            # The session before has ended by then; what it acquired stays locked.
            del self._sessions[broker_id][group_id, member_id]
            self._last_begun.pop((broker_id, event.session.connection_id), None)
        if code or epoch == FINAL_EPOCH:
            return code, None
        session = event.session
        if event.begins:
            if session is not None:
                self._last_begun.pop((broker_id, session.connection_id), None)
            session = ShareSession(group_id, member_id, connection_id, dict.fromkeys(added, False))
            self._sessions.setdefault(broker_id, {})[group_id, member_id] = session
            self._last_begun[broker_id, connection_id] = session
            return code, session
        assert session is not None, "rows refuse unknown sessions"
        session.update(added, forgotten)
        session.advance()
        return code, session

    def continue_session(
        self, broker_id: int, group_id: str, member_id: str, epoch: int
    ) -> ErrorCode:
        """Continue the session of a ShareAcknowledge."""
        event, code = self._session_event(
            self._session_rules.acknowledge, broker_id, group_id, member_id, epoch, True
        )
        if not code and epoch != FINAL_EPOCH and event.session is not None:
            event.session.advance()
        return code

    def _session_event(
        self,
        rows: tuple[SessionRow, ...],
        broker_id: int,
        group_id: str,
        member_id: str,
        epoch: int,
        acknowledges: bool,
        *,
        repeats: bool = False,
    ) -> tuple[SessionEvent, ErrorCode]:
        sessions = self._sessions.get(broker_id, {})
        event = SessionEvent(
            epoch,
            sessions.get((group_id, member_id)),
            acknowledges,
            len(sessions) >= self._settings().max_sessions,
            repeats,
        )
        apply_first(rows, event, event)
        return event, event.code

    def answer_error(self, *, names_unknown_topic: bool) -> ErrorCode:
        """Return the error that a ShareFetch has instead of its answer."""
        event = AnswerEvent(names_unknown_topic)
        apply_first(self._session_rules.answer, event, event)
        return event.code

    def end_session(self, broker_id: int, group_id: str, member_id: str) -> bool:
        """End a session: what the member has acquired is available again. Returns whether there
        was one."""
        session = self._sessions.get(broker_id, {}).pop((group_id, member_id), None)
        if session is None:
            return False
        self._last_begun.pop((broker_id, session.connection_id), None)
        for key in session.partitions:
            share = self._at_leader(group_id, key)
            if share is not None:
                share.release(member_id)
        return True

    def connection_closed(self, broker_id: int, connection_id: int, group_id: str) -> None:
        """End the session that began last on a connection, unless a session that began there has
        ended since; if the group then has no session, unload its partitions. ``group_id`` is that
        of the session. Sessions that began on other connections go on, also those that requests on
        this one continued."""
        session = self._last_begun.get((broker_id, connection_id))
        if session is not None:
            self.end_session(broker_id, session.group_id, session.member_id)
        if all(each != group_id for each, _ in self._sessions.get(broker_id, ())):
            self._unload(broker_id, group_id)

    # ---- steps of a tester -----------------------------------------------------------------------

    def expire_locks(self, group_id: str, tp: TopicPartition | None = None) -> int:
        """Expire the locks of a group, of one partition or of all. Returns how many records were
        locked."""
        return sum(each.end_locks() for each in self._existing(group_id, tp))

    def expire_session(self, group_id: str, member_id: str) -> int:
        """Drop the share sessions of a member from all brokers. Returns how many there were."""
        return sum(
            self.end_session(broker_id, group_id, member_id) for broker_id in list(self._sessions)
        )

    def set_delivery_count(
        self, group_id: str, tp: TopicPartition, offset: int, count: int
    ) -> None:
        """Let a record that is in flight have been delivered this often."""
        (share,) = self._existing(group_id, tp)
        if not share.set_count(offset, count):
            raise ClusterError(
                f"offset {offset} of {tp[0]}-{tp[1]} is not in flight in group {group_id!r}"
            )

    def _existing(self, group_id: str, tp: TopicPartition | None) -> list[SharePartition]:
        shares = [share for share in self.partitions_of(group_id) if tp in (None, share.tp)]
        if not shares:
            what = "partition" if tp is None else f"{tp[0]}-{tp[1]}"
            raise ClusterError(f"group {group_id!r} shares no {what}")
        return shares


def _failure(key: TopicIdPartition, code: ErrorCode) -> ShareAnswer:
    return ShareAnswer(key, code)


def _rotated(
    partitions: Sequence[tuple[str, TopicIdPartition]], epoch: int
) -> list[tuple[str, TopicIdPartition]]:
    """Let each request of a session begin with another partition."""
    if len(partitions) < 2 or epoch < 1:
        return list(partitions)
    at = epoch % len(partitions)
    return [*partitions[at:], *partitions[:at]]


def _headers(data: bytes) -> list[BatchHeader]:
    """The headers of the whole batches. A limit may have cut the last one, which is left out."""
    headers, at = [], 0
    while len(data) - at >= HEADER_SIZE:
        header = read_header(data, at)
        if header.size > len(data) - at:
            break
        headers.append(header)
        at += header.size
    return headers


def _aborted_batches(
    headers: Sequence[BatchHeader], aborted: Sequence[AbortedTransaction]
) -> list[BatchHeader]:
    """The batches of transactions that were aborted; their markers are behind them."""
    spans = [(each.producer_id, each.first_offset, each.last_offset) for each in aborted]
    return [
        header
        for header in headers
        if header.is_transactional
        and not header.is_control
        and any(
            producer == header.producer_id and first <= header.last_offset < last
            for producer, first, last in spans
        )
    ]


def _slice(data: bytes, headers: Sequence[BatchHeader], acquired: Sequence[AcquiredRange]) -> bytes:
    """The batches that hold acquired records, and those between them."""
    if len(headers) == 1:
        return data
    first, last = acquired[0].first, acquired[-1].last
    begin = end = at = 0
    for number, header in enumerate(headers):
        following = headers[number + 1].base_offset if number + 1 < len(headers) else None
        if following is not None and following <= first:
            begin = at + header.size
        if header.base_offset <= last:
            end = at + header.size
        at += header.size
    return data[begin:end]


_DURATION: Final = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


def duration_ms(text: str) -> int:
    """The milliseconds of a duration in ISO 8601, as far as Java's Duration reads it: ``PT1H``."""
    match = _DURATION.fullmatch(text.strip().upper())
    if match is None:
        raise ClusterError(f"{text!r} is not a duration such as PT1H")
    days, hours, minutes, seconds = (float(group or 0) for group in match.groups())
    return int((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
