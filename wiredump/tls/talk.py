"""Read a TLS connection, around the conversation of its plaintext: the interface is the same, and
bytes that are not plaintext are counted.

A connection without TLS passes through. With TLS, the offsets of frames are those in the plaintext;
anomalies of kind ``tls`` have the bytes that could not be decrypted, with offsets in the TCP
stream. ``overhead`` is called with the number of all other bytes that are not plaintext: headers
and tags of records, handshakes, alerts.

The amount of plaintext in a gap follows from the missing bytes and the number of records, so that
later frames have the right offsets; padding (TLS 1.3), which no Kafka client uses, would make it
too large. ``missing`` counts the bytes of TCP that were not captured.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from wiredump.conversation import Conversation, Event, gap_anomaly
from wiredump.frames import Passed
from wiredump.model import Anomaly, Direction, Item, Place
from wiredump.tls.handshake import (
    CLIENT_HELLO,
    FINISHED,
    KEY_UPDATE,
    SERVER_HELLO,
    Messages,
    client_random,
    server_hello,
)
from wiredump.tls.keylog import KeyLog
from wiredump.tls.records import APPLICATION, CHANGE_CIPHER_SPEC, HANDSHAKE, Opened, RecordStream
from wiredump.tls.session import Session

__all__ = ["TlsTalk"]

MOST_WAITING: Final = 1 << 18
"""Bytes of a connection that are kept while its keys are unknown."""

_NO_HANDSHAKE: Final = "its handshake was not captured, or its secrets came too late"


class _Half:
    """One direction, and what waits in front of it."""

    def __init__(self, session: Session) -> None:
        self.records = RecordStream(session)
        self.messages = Messages()
        self.gap: Event | None = None
        """The last one."""
        self._waiting: deque[Event] = deque()
        self._size = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def held(self) -> int:
        """The bytes that were not read yet."""
        return self.records.held + self._size

    def add(self, event: Event) -> None:
        self._waiting.append(event)
        self._size += event.size

    def pop(self) -> Event:
        event = self._waiting.popleft()
        self._size -= event.size
        return event


class TlsTalk:
    """The same as ``Conversation``; it is given the one of the plaintext."""

    def __init__(self, talk: Conversation, log: KeyLog, overhead: Callable[[int], object]) -> None:
        self._talk = talk
        self._overhead = overhead
        self._session = Session(log)
        self._halves = {forward: _Half(self._session) for forward in (True, False)}
        self._sniffed: list[Event] | None = []
        self._heads: dict[bool, bytes] = {}
        """The first bytes of each direction."""
        self._is_tls = False
        self._concluded = False
        self._unread: dict[bool, Passed] = {}
        """The bytes that could not be read at all, by direction."""

    @property
    def flipped(self) -> bool:
        return self._talk.flipped

    def data(
        self, forward: bool, raw: bytes, timestamp_ns: int, place: Place, waited_ns: int = 0
    ) -> list[Item]:
        return self._take(Event(forward, raw, 0, "", timestamp_ns, place, waited_ns))

    def gap(
        self, forward: bool, size: int, reason: str, timestamp_ns: int, place: Place
    ) -> list[Item]:
        return self._take(Event(forward, None, size, reason, timestamp_ns, place))

    def finish(self) -> list[Item]:
        """Read what is left, since no more bytes will come."""
        items = self._decide(False) if self._sniffed is not None else []
        if self._is_tls and not self._concluded:
            items += self._end_of_records()
        self._concluded = True
        return items

    def conclude(self) -> list[Item]:
        """Decide, before the end, what the connection is and which end is the broker."""
        return self.finish() + self._plain(self._talk.conclude())

    @property
    def is_doubtful(self) -> bool:
        """As in ``Conversation``, of the plaintext."""
        return self._talk.is_doubtful

    @property
    def held(self) -> int:
        return self._talk.held

    @property
    def server_ports(self) -> frozenset[int]:
        return self._talk.server_ports

    def consider(self, ports: frozenset[int]) -> list[Item]:
        return self._plain(self._talk.consider(ports))

    def end(self, why: str) -> list[Item]:
        """End the connection; ``why`` becomes part of the anomalies of incomplete frames."""
        items = self.conclude()
        items += self._plain(self._talk.end(why))
        if self._unread and self._talk.connection.protocol == "unknown":
            self._talk.connection.protocol = "tls"
        return items + [self._anomaly(*unread) for unread in self._unread.items()]

    def _end_of_records(self) -> list[Item]:
        if self._stalled():
            self._session.problem = self._session.problem or _NO_HANDSHAKE
        items = self._read()
        for forward, half in self._halves.items():
            half.records.end()
            items += self._passed(forward, half)
        return items

    # -- is it TLS? --------------------------------------------------------------------------

    def _take(self, event: Event) -> list[Item]:
        if self._sniffed is not None:
            self._sniffed.append(event)
            head = self._heads.get(event.forward, b"")
            head = self._heads[event.forward] = (head + (event.raw or b"")[:3])[:3]
            is_tls = _looks_like_tls(head)
            return [] if is_tls is None else self._decide(is_tls)
        if not self._is_tls:
            return self._inside(event)
        self._halves[event.forward].add(event)
        return self._read()

    def _decide(self, is_tls: bool) -> list[Item]:
        events, self._sniffed = self._sniffed or [], None
        self._is_tls = is_tls
        items: list[Item] = []
        for event in events:
            items += self._take(event)
        return items

    def _inside(self, event: Event) -> list[Item]:
        if event.raw is None:
            return self._talk.gap(
                event.forward, event.missing, event.reason, event.timestamp_ns, event.place
            )
        return self._talk.data(
            event.forward, event.raw, event.timestamp_ns, event.place, event.waited_ns
        )

    # -- records -----------------------------------------------------------------------------

    def _read(self) -> list[Item]:
        """Read everything that can be read: one direction may wait for what the other one has."""
        items: list[Item] = []
        while any(self._read_half(*each, items) for each in self._halves.items()):
            pass
        if not self._session.problem and self._stalled() > MOST_WAITING:
            self._session.problem = _NO_HANDSHAKE
            return items + self._read()
        return items

    def _stalled(self) -> int:
        """The number of bytes that wait for keys."""
        return sum(half.held for half in self._halves.values() if half.records.stalled)

    def _read_half(self, forward: bool, half: _Half, items: list[Item]) -> bool:
        """Read one direction; returns whether there was anything."""
        some = False
        records = half.records
        while True:
            opened = records.next()
            items += self._passed(forward, half)
            if opened is not None:
                items += self._record(forward, half, opened)
                some = True
            elif self._problem(half):
                items += self._give_up(forward, half)
                return some
            elif records.stalled or not half:
                return some
            else:
                items += self._feed(half, half.pop())

    def _feed(self, half: _Half, event: Event) -> list[Item]:
        if event.raw is not None:
            half.records.data(event.raw, event.timestamp_ns, event.place, event.waited_ns)
            return []
        half.gap = event
        half.records.gap(event.missing, event.reason)
        half.messages.clear()
        return [self._gap(event)]

    def _problem(self, half: _Half) -> str:
        return half.records.problem or (self._session.problem if half.records.stalled else "")

    def _record(self, forward: bool, half: _Half, record: Opened) -> list[Item]:
        items: list[Item] = []
        if record.lost:
            items += self._lost(forward, half, record)
        self._overhead(record.overhead)
        if record.content == APPLICATION:
            for piece in record.pieces:
                items += self._plain(self._talk.data(forward, *piece))
        elif record.content == CHANGE_CIPHER_SPEC:
            half.records.change_cipher_spec()
        elif record.content == HANDSHAKE:
            for kind, body in half.messages.feed(record.plaintext):
                self._message(half, kind, body)
        return items

    def _message(self, half: _Half, kind: int, body: bytes) -> None:
        if kind == CLIENT_HELLO:
            for each in self._halves.values():
                each.records.from_client = each is half
            self._session.hello(client_random=client_random(body))
        elif kind == SERVER_HELLO:
            self._session.hello(server=server_hello(body))
        elif kind in (FINISHED, KEY_UPDATE) and self._session.is_13:
            half.records.change_keys()

    # -- what is not there -------------------------------------------------------------------

    def _lost(self, forward: bool, half: _Half, record: Opened) -> list[Item]:
        """Report plaintext that is missing in front of a record."""
        if half.gap is not None:
            where = half.gap.timestamp_ns, half.gap.place
        elif record.pieces:
            where = record.pieces[0].timestamp_ns, record.pieces[0].place
        else:
            return []
        return self._plain(self._talk.gap(forward, record.lost, "within TLS", *where))

    def _plain(self, items: list[Item]) -> list[Item]:
        """Return the items of the plaintext; gaps count the bytes that the capture lacks."""
        if not self._is_tls:
            return items
        return [each for each in items if not isinstance(each, Anomaly) or each.kind != "gap"]

    def _passed(self, forward: bool, half: _Half) -> list[Item]:
        return [self._anomaly(forward, passed) for passed in half.records.passed()]

    def _give_up(self, forward: bool, half: _Half) -> list[Item]:
        """Count everything that waits: nothing more of this direction is read."""
        items: list[Item] = []
        reason = self._problem(half)
        half.records.end()
        for passed in half.records.passed():
            self._count(forward, passed._replace(reason=reason, unread="tls"))
        while half:
            event = half.pop()
            if event.raw is None:
                items.append(self._gap(event))
            else:
                passed = Passed(0, event.size, reason, event.timestamp_ns, event.place, "tls")
                self._count(forward, passed)
        return items

    def _count(self, forward: bool, passed: Passed) -> None:
        before = self._unread.get(forward, passed._replace(size=0))
        self._unread[forward] = before._replace(size=before.size + passed.size)

    def _gap(self, event: Event) -> Anomaly:
        return gap_anomaly(event, self._talk.connection, self._direction(event.forward))

    def _anomaly(self, forward: bool, passed: Passed) -> Anomaly:
        return Anomaly(
            "tls", f"TLS: {passed.reason}", passed.place, passed.timestamp_ns,
            self._talk.connection, self._direction(forward), passed.offset, passed.size,
            unread=passed.unread,
        )  # fmt: skip

    def _direction(self, forward: bool) -> Direction:
        return "request" if forward != self._talk.flipped else "response"


def _looks_like_tls(head: bytes) -> bool | None:
    """Whether the first bytes of a direction are a record's; None if there are too few."""
    if head and not 0x14 <= head[0] <= 0x17:
        return False
    return None if len(head) < 3 else head[1] == 3 and head[2] <= 4
