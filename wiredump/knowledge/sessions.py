"""Fetch sessions (KIP-227): the partitions that an incremental Fetch omits because the broker
remembers them.

A full request (epoch 0) names every partition, and its response has the id of the new session. Each
request of the session then names the partitions that changed and those to forget; the others keep
their offsets. Epoch -1 ends a session. A session belongs to the broker, not to a connection.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

import msgspec

from wiredump.knowledge.excerpts import FETCH, Excerpt, FetchRequest
from wiredump.rows.exchanges import Row
from wiredump.rows.fields import NO_TOPIC_ID, NameOf
from wiredump.rows.schema import TABLES

__all__ = ["MOST_PARTITIONS", "Fetches", "is_alone", "rows_alone"]

MOST_PARTITIONS: Final = 1_000_000
"""The most partitions remembered, of all sessions; beyond that, the session silent for longest is
forgotten."""

_SESSIONS_SINCE: Final = 7
_NO_SESSION: Final = 0
_INITIAL, _FINAL = 0, -1
_LAST_EPOCH: Final = 2**31 - 1


_Place: TypeAlias = tuple[str | None, str | None, int]
"""Topic name, topic id, partition index."""
_Id: TypeAlias = tuple[int | None, int | None]
"""The id and epoch of a session."""
_Who: TypeAlias = tuple[Any, ...]
"""The first columns of a row, up to ``client_id``."""
_Values: TypeAlias = tuple[Any, ...]

_TOPIC, _TOPIC_ID = (
    [column.name for column in TABLES["fetches"].columns].index(name)
    for name in ("topic", "topic_id")
)


class _Session(msgspec.Struct):
    """``epoch`` is that of the next request. ``complete``: all partitions of the session are
    known."""

    epoch: int
    complete: bool
    offsets: dict[_Place, int]


class Fetches:
    """Takes Fetch exchanges in the order of requests; returns rows of ``fetches``."""

    def __init__(self, name_of: NameOf, most_partitions: int = MOST_PARTITIONS) -> None:
        self._name_of = name_of
        self._most = most_partitions
        self._sessions: OrderedDict[tuple[str, int], _Session] = OrderedDict()
        self._partitions = 0

    def feed(self, excerpt: Excerpt) -> Iterator[Row]:
        """Return the partitions that this request fetches."""
        request = excerpt.fetch
        if excerpt.api_key != FETCH or request is None:
            return
        requested = _requested(request)
        who = (
            excerpt.connection, excerpt.request_offset, excerpt.requested_ns, excerpt.broker,
            excerpt.client_id,
        )  # fmt: skip
        if is_alone(excerpt.api_version, request):
            session = _session_of(excerpt.api_version, request)
            yield from self._named(excerpt, _rows(who, session, True, requested, requested))
            return
        session_id, epoch = session = request.session_id, request.session_epoch
        key = (excerpt.broker, session_id)
        if epoch in (_INITIAL, _FINAL):
            self._forget(key)
            yield from self._named(excerpt, _rows(who, session, True, requested, requested))
            self._begin(excerpt, epoch, requested)
            return
        before = self._take(key)
        known = before is not None and before.complete and before.epoch == epoch
        offsets = before.offsets.copy() if before is not None else {}
        for place in _forgotten(request):
            offsets.pop(place, None)
        offsets.update(requested)
        yield from self._named(excerpt, _rows(who, session, known, offsets, requested))
        if excerpt.response is None:  # it is unknown whether the broker processed it
            if before is not None:
                self._keep(key, before)
        elif not excerpt.response.get("errorCode"):
            self._keep(key, _Session(_after(epoch), known, offsets))

    def end(self) -> Iterator[Row]:
        """Return nothing: each request has its rows at once."""
        return iter(())

    def _begin(self, excerpt: Excerpt, epoch: int, requested: dict[_Place, int]) -> None:
        answer = excerpt.response or {}
        begun = answer.get("sessionId", _NO_SESSION)
        if epoch == _INITIAL and begun != _NO_SESSION and not answer.get("errorCode"):
            self._forget((excerpt.broker, begun))
            self._keep((excerpt.broker, begun), _Session(1, True, requested))

    # -- what is remembered ------------------------------------------------------------------

    def _take(self, key: tuple[str, int]) -> _Session | None:
        session = self._sessions.pop(key, None)
        if session is not None:
            self._partitions -= len(session.offsets)
        return session

    def _forget(self, key: tuple[str, int]) -> None:
        self._take(key)

    def _keep(self, key: tuple[str, int], session: _Session) -> None:
        self._sessions[key] = session
        self._partitions += len(session.offsets)
        while self._partitions > self._most and len(self._sessions) > 1:
            self._take(next(iter(self._sessions)))

    # -- rows --------------------------------------------------------------------------------

    def _named(self, excerpt: Excerpt, rows: list[_Values]) -> Iterator[Row]:
        for row in rows:
            topic, topic_id = row[_TOPIC], row[_TOPIC_ID]
            if topic is None and topic_id is not None:
                topic = self._name_of(topic_id, excerpt.completed_ns)
                row = (*row[:_TOPIC], topic, *row[_TOPIC + 1 :])
            yield "fetches", row


def rows_alone(
    version: int, request: FetchRequest, who: _Who, name_of: NameOf, at_ns: int
) -> list[_Values] | None:
    """Return the rows of a Fetch that depend on no other exchange: it has no session and ends none,
    and its topics have names, or known ones. Otherwise None."""
    if not is_alone(version, request):
        return None
    who = (*who, *_session_of(version, request), True)
    rows: dict[_Place, _Values] = {}
    for topic in request.topics or ():
        name, topic_id = topic.topic, topic.topic_id
        if topic_id == NO_TOPIC_ID:
            topic_id = None
        if name is None:
            name = None if topic_id is None else name_of(topic_id, at_ns)
            if name is None:
                return None
        for each in topic.partitions or ():
            place = name, topic_id, each.partition
            rows[place] = (*who, *place, each.fetch_offset, False)
    return [*rows.values()] or [(*who, None, None, None, None, None)]


def is_alone(version: int, request: FetchRequest) -> bool:
    """Whether the rows of a Fetch depend on no other but for names."""
    return version < _SESSIONS_SINCE or (
        request.session_epoch == _FINAL and request.session_id == _NO_SESSION
    )


def _session_of(version: int, request: FetchRequest) -> _Id:
    has_session = version >= _SESSIONS_SINCE
    return (request.session_id, request.session_epoch) if has_session else (None, None)


def _rows(
    who: _Who,
    session: _Id,
    complete: bool,
    offsets: dict[_Place, int],
    requested: dict[_Place, int],
) -> list[_Values]:
    who = (*who, *session, complete)
    return [
        (*who, *place, offset, place not in requested) for place, offset in offsets.items()
    ] or [(*who, None, None, None, None, None)]  # fmt: skip


def _after(epoch: int) -> int:
    return 1 if epoch == _LAST_EPOCH else epoch + 1


def _requested(request: FetchRequest) -> dict[_Place, int]:
    """Return the offsets of the partitions that a request names."""
    found: dict[_Place, int] = {}
    for topic in request.topics or ():
        name, topic_id = topic.topic, topic.topic_id
        if topic_id == NO_TOPIC_ID:
            topic_id = None
        for each in topic.partitions or ():
            found[name, topic_id, each.partition] = each.fetch_offset
    return found


def _forgotten(request: FetchRequest) -> Iterable[_Place]:
    for topic in request.forgotten_topics_data or ():
        topic_id = topic.get("topicId")
        for partition in topic.get("partitions") or ():
            yield topic.get("topic"), None if topic_id == NO_TOPIC_ID else topic_id, partition
