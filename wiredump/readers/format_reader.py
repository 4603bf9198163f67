"""What readers of pcap and pcapng have in common: bytes of any size in, whole records out."""

from __future__ import annotations

from typing import Any, Final

from wiredump.readers.model import Anomaly, Interface, Packet, Secrets

__all__ = ["TO_THE_END", "FormatReader"]

TO_THE_END: Final = 2**63 - 1


class FormatReader:
    """Feed it the file's bytes; each call returns the packets that are complete.

    ``walk`` goes through packets in bulk: what it takes comes as an object of its own in place of
    the packets. Records that begin at ``stop`` of the file or behind it are not read.

    ``contexts`` are the places and lengths of the records on which later packets depend.
    ``untimed``: something took the time of the packet before it, and there was none.
    """

    least: int
    """The bytes of a record that show its length."""
    what = "a record"

    def __init__(self, capture: int, walk: Any, stop: int, needed: int) -> None:
        self.capture = capture
        self.interfaces: list[Interface] = []
        self.secrets: list[Secrets] = []
        self.contexts: list[tuple[int, int]] = []
        self.untimed = False
        self.stopped = False
        self._walk = walk
        self._stop_at = stop
        self._parts: list[bytes] = []
        self._held = 0
        self._needed = needed
        self._position = 0  # of the first byte held

    @property
    def position(self) -> int:
        """Where in the file the first record begins that was not read."""
        return self._position

    def feed(self, data: bytes) -> list[Packet | Anomaly]:
        """Read bytes. Nothing is joined before the next record is complete, so that a long one
        costs no more."""
        if self.stopped:
            return []
        self._parts.append(data)
        self._held += len(data)
        if self._held < self._needed:
            return []
        chunk = b"".join(self._parts) if len(self._parts) > 1 else data
        found: list[Packet | Anomaly] = []
        start = self._read(chunk, found)
        self._position += start
        self._held = len(chunk) - start
        self._parts = [chunk[start:]] if self._held else []
        return found

    def _read(self, chunk: bytes, found: list[Packet | Anomaly]) -> int:
        """Append the packets of every whole record; return where the first other begins."""
        raise NotImplementedError

    def go_to(self, position: int) -> None:
        """Continue at this byte of the file, where a record begins."""
        self._parts, self._held, self._needed = [], 0, self.least
        self._position = position

    def finish(self) -> list[Packet | Anomaly]:
        """End the file; returns an anomaly if a record is cut."""
        if self.stopped or not self._held:
            return []
        self.stopped = True
        reason = f"ends inside {self.what}: {self._held} of at least {self._needed} bytes"
        return [Anomaly("truncated", reason, self.capture, self._position)]
