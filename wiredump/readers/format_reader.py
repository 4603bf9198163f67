"""What readers of pcap and pcapng have in common: bytes of any size in, whole records out.

Where no record can begin, a capture is damaged. The reader then searches for the next place at
which several records follow each other, and continues there. What it skips is counted in the
``lost`` of an anomaly. Results do not depend on how the bytes were cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from wiredump.readers.model import Anomaly, AnomalyKind, Interface, Packet, Secrets

__all__ = ["CHAIN", "TO_THE_END", "FormatReader"]

TO_THE_END: Final = 2**63 - 1

CHAIN: Final = 4
"""So many records in a row show where reading continues, or those up to the end of the file."""


class FormatReader:
    """Feed it the file's bytes; each call returns the packets that are complete.

    ``walk`` goes through packets in bulk: what it takes comes as an object of its own in place of
    the packets. Records that begin at ``stop`` of the file or behind it are not read. Without
    ``resume``, reading ends at the first damage.

    ``contexts`` are the places and lengths of the records on which later packets depend.
    ``untimed``: something took the time of the packet before it, and there was none. ``lost``
    counts the bytes that belong to no record.
    """

    least: int
    """The bytes of a record that show its length."""
    what = "a record"
    kept = 0
    """The number of records, read last, in which the search begins: if the length of one is wrong,
    true records begin inside it."""

    def __init__(self, capture: int, walk: Any, stop: int, needed: int, resume: bool) -> None:
        self.capture = capture
        self.interfaces: list[Interface] = []
        self.secrets: list[Secrets] = []
        self.contexts: list[tuple[int, int]] = []
        self.untimed = False
        self.stopped = False
        self.lost = 0
        self._walk = walk
        self._stop_at = stop
        self._resume = resume
        self._parts: list[bytes] = []
        self._held = 0
        self._needed = needed
        """The bytes of the next record that are needed to go on."""
        self._position = 0  # of the first byte held
        self._next = 0  # of the bytes held, the first that was not read
        self._recent: list[int] = []  # where in the file the last records begin
        self._resumed = -1  # where in the file the last search ended
        self._damage: Anomaly | None = None
        """The damage, while what follows it is searched for."""
        self._search = 0  # where in the file the search goes on

    @property
    def position(self) -> int:
        """Where in the file the first record begins that was not read."""
        return self._position + self._next

    def feed(self, data: bytes) -> list[Packet | Anomaly]:
        """Read bytes. Nothing is joined before the next record is complete, so that a long one
        costs no more."""
        if self.stopped:
            return []
        self._parts.append(data)
        self._held += len(data)
        if self._held - self._next < self._needed:
            return []
        found: list[Packet | Anomaly] = []
        self._go_on(found, is_end=False)
        return found

    def _go_on(self, found: list[Packet | Anomaly], *, is_end: bool) -> None:
        """Read what is held; at the end of a file also what only that makes certain."""
        chunk = b"".join(self._parts) if len(self._parts) != 1 else self._parts[0]
        at = self._next
        while not self.stopped:
            if self._damage is None:
                at = self._read(chunk, at, found)
                self._note_recent(found)
                if not self._begin_search(found):
                    break
            place = self._record_behind(chunk, is_end)
            if place is None:
                break
            at = place - self._position
            self._end_search(place, found)
        self._keep(chunk, at)

    def _begin_search(self, found: list[Packet | Anomaly]) -> bool:
        """Return whether there is damage, and reading resumes behind it."""
        damage = self._damage
        if damage is None:
            return False
        if not self._resume:
            self.stopped, self._damage = True, None
            found.append(damage)
            return False
        before = self._recent[0] if self._recent else damage.offset
        self._search = max(before, self._resumed) + 1
        return True

    def _keep(self, chunk: bytes, at: int) -> None:
        """Hold the bytes that are needed with the next ones."""
        first = at if not self._recent else min(at, max(0, self._recent[0] - self._position))
        if self._damage is not None:
            first = at = min(len(chunk), self._search - self._position)
        self._position += first
        self._next = at - first
        self._held = len(chunk) - first
        self._parts = [chunk[first:]] if self._held else []

    def _note_recent(self, found: Sequence[Any]) -> None:
        if not self.kept:
            return
        recent: list[int] = []
        for each in reversed(found):
            if isinstance(each, Packet):
                recent.append(each.offset)
            elif isinstance(each, Anomaly):
                if each.kind == "damaged":
                    break
            else:
                last = len(each) - 1
                recent += [each[last - n][0] for n in range(min(self.kept, last + 1))]
            if len(recent) >= self.kept:
                break
        else:
            recent += reversed(self._recent)
        self._recent = recent[: self.kept][::-1]

    def _damaged(self, reason: str, at: int) -> None:
        """Note that no record begins at a place of the chunk."""
        self._damage = Anomaly("damaged", reason, self.capture, self._position + at)

    def _record_behind(self, chunk: bytes, is_end: bool) -> int | None:
        """Return where in the file the next record begins; None if that needs more bytes, or if
        there is none."""
        begin, found = self._search - self._position, -1
        for at in self._candidates(chunk, begin):
            if found >= 0 and at >= found + self._length(chunk, found):
                break
            needed = self._chain(chunk, at, is_end)
            if needed == 0:
                # Bytes that look like a record, and lead to one by chance, cover true records.
                found = at
            elif needed > 0:
                self._search = self._position + (at if found < 0 else found)
                self._needed = self._position + at + needed - self._search
                return None
        if found >= 0:
            return self._position + found
        self._search = self._position + max(begin, len(chunk) - self.least + 1)
        self._needed = self.least
        return None

    def _end_search(
        self, place: int, found: list[Packet | Anomaly], kind: AnomalyKind = "damaged"
    ) -> None:
        """Report the damage, behind which a record or the end of the file is at ``place``."""
        damage = self._damage
        assert damage is not None
        lost = max(0, place - damage.offset)
        reason = damage.reason
        if kind == "damaged":
            what = f"{lost} bytes are lost" if lost else "another record begins inside the last one"
            reason = f"{reason}; {what}"
        self.lost += lost
        found.append(Anomaly(kind, reason, self.capture, damage.offset, lost=lost))
        self._damage, self._recent, self._resumed = None, [], place

    def _read(self, chunk: bytes, at: int, found: list[Packet | Anomaly]) -> int:
        """Append the packets of every whole record from ``at`` on; return where the first other
        begins."""
        raise NotImplementedError

    def _candidates(self, chunk: bytes, begin: int) -> Iterator[int]:
        """Yield where records may begin, from ``begin`` on."""
        raise NotImplementedError

    def _chain(self, chunk: bytes, at: int, is_end: bool) -> int:
        """Return 0 if a record begins there, -1 if none does, or how many bytes from there on show
        which it is."""
        raise NotImplementedError

    def _length(self, chunk: bytes, at: int) -> int:
        """Return the length of the record there."""
        raise NotImplementedError

    def go_to(self, position: int) -> None:
        """Continue at this byte of the file, where a record begins."""
        self._parts, self._held, self._needed = [], 0, self.least
        self._position, self._next, self._recent = position, 0, []

    def finish(self) -> list[Packet | Anomaly]:
        """End the file; returns what only its end makes certain, and an anomaly if a record is
        cut."""
        found: list[Packet | Anomaly] = []
        while not self.stopped and (self._damage is not None or self._held > self._next):
            end, held = self._position + self._held, self._held - self._next
            if self._damage is None:
                reason = f"ends inside {self.what}: {held} of at least {self._needed} bytes"
                # A wrong length looks the same; then records follow.
                self._damage = Anomaly("truncated", reason, self.capture, self.position)
                self._search = max(self.position, self._resumed) + 1
            if self.interfaces:
                self._go_on(found, is_end=True)
            if self._damage is not None:
                self._end_search(end, found, self._damage.kind)
                self.stopped = True
        self.stopped = True
        return found
