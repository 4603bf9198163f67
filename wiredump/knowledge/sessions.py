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

from wiredump.knowledge.excerpts import FETCH, Excerpt
from wiredump.rows.exchanges import Row
from wiredump.rows.fields import NO_TOPIC_ID, NameOf

__all__ = ["MOST_PARTITIONS", "Fetches"]

MOST_PARTITIONS: Final = 1_000_000
"""The most partitions remembered, of all sessions; beyond that, the session silent for longest is
forgotten."""

_SESSIONS_SINCE: Final = 7
_NO_SESSION: Final = 0
_INITIAL, _FINAL = 0, -1
_LAST_EPOCH: Final = 2**31 - 1


_Place: TypeAlias = tuple[str | None, str | None, int]
"""Topic name, topic id, partition index."""


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
        body = excerpt.request
        if excerpt.api_key != FETCH or body is None:
            return
        if self.is_alone(excerpt):
            yield from (("fetches", row) for row in self.rows_alone(excerpt))
            return
        asked = _asked(body)
        session_id, epoch = body.get("sessionId", _NO_SESSION), body.get("sessionEpoch", _FINAL)
        key = (excerpt.broker, session_id)
        if epoch in (_INITIAL, _FINAL):
            self._forget(key)
            yield from self._pairs(excerpt, (session_id, epoch), True, asked, asked)
            self._begin(excerpt, epoch, asked)
            return
        before = self._take(key)
        known = before is not None and before.complete and before.epoch == epoch
        offsets = before.offsets.copy() if before is not None else {}
        for place in _forgotten(body):
            offsets.pop(place, None)
        offsets.update(asked)
        yield from self._pairs(excerpt, (session_id, epoch), known, offsets, asked)
        if excerpt.response is None:  # it is unknown whether the broker processed it
            if before is not None:
                self._keep(key, before)
        elif not excerpt.response.get("errorCode"):
            self._keep(key, _Session(_after(epoch), known, offsets))

    @staticmethod
    def is_alone(excerpt: Excerpt) -> bool:
        """Whether the rows of a Fetch depend on no other: it has no session, nor ends one."""
        body = excerpt.request
        return body is not None and (
            excerpt.api_version < _SESSIONS_SINCE
            or (body.get("sessionId"), body.get("sessionEpoch")) == (_NO_SESSION, _FINAL)
        )

    def rows_alone(self, excerpt: Excerpt) -> list[tuple[Any, ...]]:
        """Return the rows of such a Fetch."""
        has_session = excerpt.api_version >= _SESSIONS_SINCE
        asked = _asked(excerpt.request or {})
        session = (_NO_SESSION, _FINAL) if has_session else (None, None)
        return self._rows(excerpt, session, True, asked, asked)

    def end(self) -> Iterator[Row]:
        """Return nothing: each request has its rows at once."""
        return iter(())

    def _begin(self, excerpt: Excerpt, epoch: int, asked: dict[_Place, int]) -> None:
        answer = excerpt.response or {}
        begun = answer.get("sessionId", _NO_SESSION)
        if epoch == _INITIAL and begun != _NO_SESSION and not answer.get("errorCode"):
            self._forget((excerpt.broker, begun))
            self._keep((excerpt.broker, begun), _Session(1, True, asked))

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

    def _pairs(self, *of: Any) -> Iterator[Row]:
        return (("fetches", row) for row in self._rows(*of))

    def _rows(
        self,
        excerpt: Excerpt,
        session: tuple[int | None, int | None],
        complete: bool,
        offsets: dict[_Place, int],
        asked: dict[_Place, int],
    ) -> list[tuple[Any, ...]]:
        who = (
            excerpt.connection, excerpt.request_offset, excerpt.requested_ns, excerpt.broker,
            excerpt.client_id, *session, complete,
        )  # fmt: skip
        rows: list[tuple[Any, ...]] = []
        for place, offset in offsets.items():
            topic, topic_id, partition = place
            if topic is None and topic_id is not None:
                topic = self._name_of(topic_id, excerpt.completed_ns)
            rows.append((*who, topic, topic_id, partition, offset, place not in asked))
        return rows or [(*who, None, None, None, None, None)]


def _after(epoch: int) -> int:
    return 1 if epoch == _LAST_EPOCH else epoch + 1


def _asked(body: dict[str, Any]) -> dict[_Place, int]:
    """Return the offsets of the partitions that a request names."""
    found: dict[_Place, int] = {}
    for topic in body.get("topics") or ():
        name, topic_id = topic.get("topic"), topic.get("topicId")
        if topic_id == NO_TOPIC_ID:
            topic_id = None
        for each in topic.get("partitions") or ():
            found[name, topic_id, each.get("partition", -1)] = each.get("fetchOffset", -1)
    return found


def _forgotten(body: dict[str, Any]) -> Iterable[_Place]:
    for topic in body.get("forgottenTopicsData") or ():
        for partition in topic.get("partitions") or ():
            yield _place(topic, partition)


def _place(topic: dict[str, Any], partition: int) -> _Place:
    topic_id = topic.get("topicId")
    return topic.get("topic"), None if topic_id == NO_TOPIC_ID else topic_id, partition
