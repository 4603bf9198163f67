"""Turn the bytes and gaps of one direction of a TLS connection into records, each byte once.

Behind a gap the number of lost records is unknown, so every possible number is tried, including
those under the next keys; a record's authentication shows which one is right. Until a record can be
decrypted, headers are searched for byte by byte. The trials are limited (``MOST_TRIALS``); after
that, the rest of the direction is not read.

An incomplete record cannot be decrypted at all.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from wiredump.frames import Passed
from wiredump.model import Place
from wiredump.tls.session import Session
from wiredump.unread import Unread

__all__ = ["APPLICATION", "CHANGE_CIPHER_SPEC", "HANDSHAKE", "Opened", "RecordStream"]

CHANGE_CIPHER_SPEC: Final = 20
HANDSHAKE: Final = 22
APPLICATION: Final = 23

MOST_TRIALS: Final = 20_000
"""Trials in a row without decrypting a record."""

_HEADER: Final = 5
_LARGEST: Final = (1 << 14) + 2048
_SHORTEST: Final = _HEADER + 17
"""The least size of an encrypted record, from which the possible number of records in a gap
follows."""

_protected: Final = re.compile(rb"[\x15-\x17]\x03\x03").search


class _Mark(NamedTuple):
    """The packet that brought the bytes between the previous mark and ``end``."""

    end: int
    timestamp_ns: int
    place: Place
    waited_ns: int


class Piece(NamedTuple):
    """A part of a record's plaintext, the packet that brought it, and how long it waited until the
    whole record could be delivered: none of it can be read before."""

    data: bytes
    timestamp_ns: int
    place: Place
    waited_ns: int


class Opened(NamedTuple):
    """A record's ``content`` type, its plaintext by packets, and the number of its other bytes.
    ``lost`` bytes of plaintext are missing in front of it."""

    content: int
    pieces: list[Piece]
    overhead: int
    lost: int
    plaintext: bytes


class RecordStream:
    """``data`` and ``gap`` take the stream, ``next`` returns what can be read: a record, or bytes
    outside of any record. The reader of handshakes reports changes of keys. ``stalled``: keys are
    needed that are not known (yet). ``problem`` is the reason why nothing more will be read."""

    def __init__(self, session: Session) -> None:
        self.from_client = True
        self.stalled = False
        self.problem = ""
        self._protected = False
        self._session = session
        self._keys = 0
        self._number = 0
        self._held = bytearray()
        self._base = 0
        self._marks: deque[_Mark] = deque()
        self._lost = 0
        """Bytes since the last record that are not part of a record that was read."""
        self._skip = 0
        """Bytes that are still to come of a record that a gap has cut."""
        self._searching = False
        self._trials = 0
        self._why = ""
        self._unread: Unread = "missing"
        self._passed: list[Passed] = []
        self._ended = False

    # -- what comes in -----------------------------------------------------------------------

    def data(
        self, raw: bytes | memoryview, timestamp_ns: int, place: Place, waited_ns: int = 0
    ) -> None:
        self._held += raw
        self._marks.append(_Mark(self._base + len(self._held), timestamp_ns, place, waited_ns))
        if self._skip:
            skipped = min(self._skip, len(self._held))
            self._skip -= skipped
            self._pass(skipped)

    def gap(self, size: int, reason: str) -> None:
        """Take a gap. Everything in front of it has been read; the rest is an incomplete record."""
        held = len(self._held)
        self._why, self._unread = f"behind a gap ({reason})", "missing"
        rest = self._skip
        if held >= _HEADER and not self._searching:
            rest = _HEADER + self._length() - held
        if held:
            self._pass(held, f"of a record that a gap cuts ({reason})")
        self._skip = max(0, rest - size)
        if rest < size:
            self._searching = True
        self._lost += size
        self._base += size

    def end(self) -> None:
        """End the stream."""
        self._ended = True
        if self._held:
            self._pass(len(self._held), self._why or "the connection's end cuts a record")

    def passed(self) -> list[Passed]:
        """Return the number of bytes outside of records since the last call; the last of them only
        when they cannot become a record."""
        more = not self._ended and (self._searching or self._skip > 0)
        passed = self._passed[:-1] if more else self._passed
        self._passed = self._passed[-1:] if more else []
        return passed

    # -- what goes out -----------------------------------------------------------------------

    def next(self) -> Opened | None:
        """Return the next record; None if that needs more bytes, or keys."""
        self.stalled = False
        while not self.problem:
            if self._searching and not self._find():
                return None
            if len(self._held) < _HEADER:
                return None
            length = self._length()
            if not CHANGE_CIPHER_SPEC <= self._held[0] <= APPLICATION or self._held[1] != 3 or (
                length > _LARGEST
            ):  # fmt: skip
                self._not_here("not a record")
                continue
            if len(self._held) < _HEADER + length:
                return None
            record = bytes(self._held[: _HEADER + length])
            if not self._searching and not self._is_protected(record):
                return self._plain(record)
            if (
                self._session.keys(self.from_client, self._keys if self._session.is_13 else 1)
                is None
            ):
                self.stalled = True
                return None
            opened = self._open(record)
            if opened is not None:
                return opened
            if self._trials >= MOST_TRIALS:
                self.problem = f"{self._why or 'from the start'} no record was found that opens"
                return None
            self._not_here("a record that the key log's secrets do not open")
        return None

    @property
    def held(self) -> int:
        return len(self._held)

    def change_cipher_spec(self) -> None:
        """In TLS 1.2, start protection. (In TLS 1.3 the message has no meaning.)"""
        self._protected = True
        if not self._session.is_13:
            self._number = 0

    def change_keys(self) -> None:
        """In TLS 1.3, use the next keys from the next record on."""
        self._keys += 1
        self._number = 0

    def _length(self) -> int:
        return int.from_bytes(self._held[3:5])

    def _is_protected(self, record: bytes) -> bool:
        if self._session.is_13:
            return record[0] == APPLICATION
        return self._protected or record[0] == APPLICATION

    def _plain(self, record: bytes) -> Opened:
        self._take(len(record))
        self._lost = 0
        return Opened(record[0], [], len(record), 0, record[_HEADER:])

    def _find(self) -> bool:
        """Move to a possible header of a record; returns False if there is none yet."""
        found = _protected(self._held)
        self._pass(found.start() if found else max(0, len(self._held) - 2))
        return found is not None

    def _not_here(self, why: str) -> None:
        """Continue the search behind a place where no record begins."""
        if not self._searching:
            self._searching, self._why, self._unread = True, why, "tls"
        self._pass(1)

    # -- opening -----------------------------------------------------------------------------

    def _open(self, record: bytes) -> Opened | None:
        for keys, number in self._candidates():
            found = self._session.keys(self.from_client, keys)
            if found is None or self._trials >= MOST_TRIALS:
                break
            self._trials += 1
            opened = found.open(number, record)
            if opened is None:
                continue
            is_same = keys == self._keys
            before = number - self._number if is_same else number
            lost = 0
            if self._lost:
                lost = max(0, self._lost - before * found.overhead) if is_same or before else 0
            pieces = self._pieces(found.before, opened[1], len(record))
            self._take(len(record))
            self._keys, self._number = keys, number + 1
            self._lost = self._trials = 0
            self._searching, self._why, self._unread = False, "", "missing"
            content, plaintext = opened
            size = len(plaintext) if content == APPLICATION else 0
            return Opened(content, pieces, len(record) - size, lost, plaintext)
        return None

    def _candidates(self) -> Iterator[tuple[int, int]]:
        """Yield keys and record numbers to try: the next one or, if some may be missing, every
        possible one."""
        room = self._lost // _SHORTEST
        if self._session.is_13:
            yield from ((self._keys, self._number + more) for more in range(room + 1))
            if self._lost:
                yield from ((self._keys + 1, more) for more in range(room + 1))
        else:
            yield from ((1, self._number + more) for more in range(room + 1))

    def _pieces(self, before: int, plaintext: bytes, size: int) -> list[Piece]:
        """Split the plaintext of a record of ``size`` bytes by packets: these ciphers keep the
        position of every byte."""
        pieces: list[Piece] = []
        at = 0
        start = self._base + before
        last = next(mark for mark in self._marks if mark.end >= self._base + size)
        whole_ns = last.timestamp_ns + last.waited_ns
        for mark in self._marks:
            end = min(mark.end - start, len(plaintext))
            if end > at:
                waited_ns = max(0, whole_ns - mark.timestamp_ns)
                pieces.append(Piece(plaintext[at:end], mark.timestamp_ns, mark.place, waited_ns))
                at = end
            if at == len(plaintext):
                break
        return pieces

    # -- bytes that go -----------------------------------------------------------------------

    def _pass(self, size: int, why: str = "") -> None:
        """Pass over the first ``size`` bytes held, which are not part of a record."""
        if not size:
            return
        why = why or self._why
        while self._marks[0].end <= self._base:
            self._marks.popleft()
        mark = self._marks[0]
        before = self._passed[-1] if self._passed else None
        if before is not None and before.reason == why and (
            before.offset + before.size == self._base
        ):  # fmt: skip
            self._passed[-1] = before._replace(size=before.size + size)
        else:
            self._passed.append(
                Passed(self._base, size, why, mark.timestamp_ns, mark.place, self._unread)
            )
        self._lost += size
        self._take(size)

    def _take(self, size: int) -> None:
        del self._held[:size]
        self._base += size
        while self._marks and self._marks[0].end <= self._base:
            self._marks.popleft()
