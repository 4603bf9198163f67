"""Fetch sessions (KIP-227, since 1.1): a broker remembers the partitions of a client, and answers
only those with news.

A session belongs to a broker, not to a connection. ``SESSION_RULES`` says what the id and the epoch
of a request mean.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.simulation.fetching.query import (
    FINAL_EPOCH,
    FULL_EPOCH,
    NO_SESSION,
    FetchQuery,
    FetchResult,
    PartitionAnswer,
    PartitionKey,
    PartitionPosition,
)
from mockbroker.simulation.releases import fixes
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import (
    Row,
    always,
    apply_first,
    refuse,
    rows_of_release,
    with_arguments,
)
from mockbroker.simulation.state.timers import Timers

__all__ = ["SESSION_RULES", "STALE_MS", "FetchSession", "FetchSessions", "SessionContext"]

STALE_MS: Final = 120_000
"""A session that is unused for longer gives way to any other one; one that is younger gives way to
brokers only."""
_MAX_EPOCH: Final = 2**31 - 1
_FIRST_EPOCH: Final = 1


def _next_epoch(epoch: int) -> int:
    return _FIRST_EPOCH if epoch == _MAX_EPOCH else epoch + 1


class _CachedPartition(msgspec.Struct):
    """A partition of a session: the client's position, and the offsets of the last answer."""

    position: PartitionPosition
    high_watermark: int = -1
    log_start_offset: int = -1

    def has_news(self, answer: PartitionAnswer) -> bool:
        """Whether the client has to receive this answer. Remembers it as sent."""
        news = (
            answer.size > 0
            or self.high_watermark != answer.high_watermark
            or self.log_start_offset != answer.log_start_offset
            or answer.urgent
            or answer.preferred_replica >= 0
        )
        # After an error the next answer without one is news.
        self.high_watermark = -1 if answer.error_code else answer.high_watermark
        self.log_start_offset = answer.log_start_offset
        return news


class FetchSession(msgspec.Struct):
    """``epoch`` is the one that the next request must have. ``privileged``: it is a broker's.
    ``evictable``: it may give way to a session with more partitions."""

    session_id: int
    privileged: bool
    by_id: bool
    partitions: dict[PartitionKey, _CachedPartition]
    created_ms: int
    used_ms: int
    epoch: int = _FIRST_EPOCH
    evictable: bool = False

    @property
    def size(self) -> int:
        return len(self.partitions)

    @property
    def worth(self) -> tuple[bool, int, int]:
        """Sessions of less worth give way to those of more."""
        return self.privileged, self.size, self.session_id


class SessionContext(msgspec.Struct):
    """What a request means: an error, or the positions to read and how to answer them.

    ``session`` is the one that an incremental fetch belongs to; ``opens``: one is to be made.
    ``fails``: the broker fails to look for the session.
    """

    sessions: FetchSessions
    query: FetchQuery
    found: FetchSession | None
    error_code: int = 0
    session: FetchSession | None = None
    opens: bool = False
    positions: Sequence[PartitionPosition] = ()
    fails: bool = False

    def refuse(self, code: ErrorCode) -> None:
        self.error_code = code

    def finish(self, answers: Iterable[PartitionAnswer]) -> FetchResult:
        """Choose what to tell the client, and remember it."""
        if self.error_code:
            return FetchResult(self.error_code)
        if self.session is not None:
            return self._tell_news(self.session, answers)
        answers = list(answers)
        session_id = self.sessions.open(self.query, answers) if self.opens else NO_SESSION
        return FetchResult(0, session_id, answers)

    def withhold(self) -> FetchResult:
        """Tell the client nothing. No session is opened; the one that there is goes on."""
        if self.error_code or self.session is None:
            return FetchResult(self.error_code)
        if self.session.epoch != _next_epoch(self.query.session_epoch):
            return FetchResult(ErrorCode.INVALID_FETCH_SESSION_EPOCH, self.session.session_id)
        return FetchResult(0, self.session.session_id)

    def _tell_news(self, session: FetchSession, answers: Iterable[PartitionAnswer]) -> FetchResult:
        if session.epoch != _next_epoch(self.query.session_epoch):
            # An equal request came meanwhile.
            return FetchResult(ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.session_id)
        news = []
        for answer in answers:
            key = answer.position.key
            cached = session.partitions.get(key)
            if cached is None or not cached.has_news(answer):
                continue
            news.append(answer)
            apply_first(self.sessions.turns, answer, (session, answer))
        return FetchResult(0, session.session_id, news)


# ---- rules ---------------------------------------------------------------------------------------


def _move_to_end(subject: tuple[FetchSession, PartitionAnswer]) -> None:
    """Read the partition last from now on, so that each gets its turn at the limits."""
    session, answer = subject
    key = answer.position.key
    session.partitions[key] = session.partitions.pop(key)


SESSION_TURNS: Final[tuple[Row[PartitionAnswer, tuple[FetchSession, PartitionAnswer]], ...]] = (
    Row("DP-FETCH-09", always, (_move_to_end,), until=fixes.KAFKA_12330),
    Row("DP-FETCH-09", lambda answer: answer.size > 0, (_move_to_end,), since=fixes.KAFKA_12330),
)
"""What becomes of a partition that is answered."""


_SHARDS: Final = 8
_IDS_OF_SHARD: Final = _MAX_EPOCH // _SHARDS
"""Since 3.8 a broker keeps its sessions in parts, which it finds by dividing the id."""


def _has_no_shard(subject: SessionContext) -> bool:
    """Whether the id, divided as Java does, is the number of no part."""
    return not -_IDS_OF_SHARD < subject.query.session_id < _SHARDS * _IDS_OF_SHARD


def _fail(subject: SessionContext) -> None:
    subject.fails = True


def _close_session(subject: SessionContext) -> None:
    """End the session that the request names, if there is one."""
    subject.sessions.remove(subject.query.session_id)


@with_arguments
def _read_all(subject: SessionContext, *, opens: bool) -> None:
    """Read what the request lists. ``opens``: the answer opens a session."""
    unique = {each.key: each for each in subject.query.positions}
    subject.positions = tuple(unique.values())
    subject.opens = opens


def _continue_session(subject: SessionContext) -> None:
    """Change the session's partitions as the request says, and read all of them. A session
    without partitions ends."""
    session, query = subject.found, subject.query
    assert session is not None, "the rows above refuse requests without a session"
    for position in query.positions:
        cached = session.partitions.get(position.key)
        if cached is None:
            session.partitions[position.key] = _CachedPartition(position)
        else:
            known = cached.position.topic
            cached.position = position if known is None else replace(position, topic=known)
    for key in query.forgotten:
        session.partitions.pop(key, None)
    if not session.partitions:
        subject.sessions.remove(session.session_id)
        subject.positions = tuple(query.positions)
        return
    subject.sessions.touch(session)
    session.epoch = _next_epoch(session.epoch)
    subject.session = session
    subject.positions = subject.sessions.resolved(session)


SESSION_RULES: Final[tuple[Row[SessionContext, SessionContext], ...]] = (
    Row("DP-SESSION-13", _has_no_shard, (_fail,), since=(3, 8)),
    Row(
        "DP-SESSION-01",
        lambda at: at.query.session_epoch == FINAL_EPOCH,
        (_close_session, _read_all(opens=False)),
    ),
    Row(
        "DP-SESSION-02",
        lambda at: at.query.session_epoch == FULL_EPOCH,
        (_close_session, _read_all(opens=True)),
    ),
    Row(
        "DP-SESSION-03",
        lambda at: at.found is None,
        (refuse(ErrorCode.FETCH_SESSION_ID_NOT_FOUND),),
    ),
    Row(
        "DP-SESSION-04",
        lambda at: at.found is not None and at.found.epoch != at.query.session_epoch,
        (refuse(ErrorCode.INVALID_FETCH_SESSION_EPOCH),),
    ),
    Row(
        "DP-SESSION-05",
        lambda at: at.found is not None and at.found.by_id != at.query.by_id,
        (refuse(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),),
        since=(3, 1),
    ),
    Row("DP-SESSION-06", lambda at: at.found is not None, (_continue_session,)),
)


class FetchSessions:
    """The sessions of one broker, at most ``slots``. ``name_of`` looks up a topic by its id;
    ``seed`` determines the ids."""

    def __init__(
        self,
        timers: Timers,
        release: Release,
        slots: int,
        seed: int,
        name_of: Callable[[uuid.UUID], str | None],
    ) -> None:
        self.slots = slots
        self._timers = timers
        release.follow(self._use_release)
        self._ids = random.Random(seed)
        self._name_of = name_of
        self._sessions: dict[int, FetchSession] = {}

    def _use_release(self, release: Release) -> None:
        self._rules = rows_of_release(SESSION_RULES, release)
        self.turns = rows_of_release(SESSION_TURNS, release)

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[FetchSession]:
        """Yield the sessions, oldest first."""
        return iter(tuple(self._sessions.values()))

    def context(self, query: FetchQuery) -> SessionContext:
        """Find out what a request means, and change its session accordingly."""
        context = SessionContext(self, query, self._sessions.get(query.session_id))
        apply_first(self._rules, context, context)
        return context

    def open(self, query: FetchQuery, answers: Sequence[PartitionAnswer]) -> int:
        """Make a session for a client that has got these answers, and return its id; 0 if there is
        no room."""
        now_ms, privileged = self._timers.now_ms, query.from_replica
        if len(self._sessions) >= self.slots and not self._evict(privileged, len(answers)):
            return NO_SESSION
        partitions = {
            each.position.key: _CachedPartition(
                each.position, each.high_watermark, each.log_start_offset
            )
            for each in answers
        }
        session_id = self._new_id()
        self._sessions[session_id] = FetchSession(
            session_id, privileged, query.by_id, partitions, now_ms, now_ms
        )
        return session_id

    def _new_id(self) -> int:
        while True:
            session_id = self._ids.randrange(1, _MAX_EPOCH)
            if session_id not in self._sessions:
                return session_id

    def _evict(self, privileged: bool, size: int) -> bool:
        """Remove a session that is worth less than a new one. Returns whether there is one."""
        if not self._sessions:
            return False
        oldest = min(self._sessions.values(), key=lambda each: (each.used_ms, each.session_id))
        if self._timers.now_ms - oldest.used_ms > STALE_MS:
            self.remove(oldest.session_id)
            return True
        candidates = [
            each
            for each in self._sessions.values()
            if each.evictable or (privileged and not each.privileged)
        ]
        least = min(candidates, key=lambda each: each.worth, default=None)
        if least is None or (privileged, size, NO_SESSION) < least.worth:
            return False
        self.remove(least.session_id)
        return True

    def touch(self, session: FetchSession) -> None:
        """Note that a session is used."""
        session.used_ms = self._timers.now_ms
        session.evictable = session.used_ms - session.created_ms > STALE_MS

    def resolved(self, session: FetchSession) -> tuple[PartitionPosition, ...]:
        """Return the positions of a session in its order, after looking up names of topics that
        were unknown when the client added them."""
        if session.by_id:
            for cached in session.partitions.values():
                if cached.position.topic is None:
                    name = self._name_of(cached.position.topic_id)
                    cached.position = replace(cached.position, topic=name)
        return tuple(cached.position for cached in session.partitions.values())

    def remove(self, session_id: int) -> None:
        """Forget a session, if there is one of this id."""
        self._sessions.pop(session_id, None)

    def clear(self) -> None:
        """Forget all sessions."""
        self._sessions.clear()
