"""Where every captured TCP payload byte went, and the check that none went nowhere.

``payload`` and ``packets`` are counted where packets come in, the rest where each byte is decided
on, so that the check says something.
"""

from __future__ import annotations

import msgspec

from kproto.errors import KprotoError

__all__ = ["Account", "AccountError"]


class AccountError(KprotoError):
    """The sums do not agree, which is a bug: no capture can cause it."""


class Account(msgspec.Struct):
    """Counts of bytes unless their names say otherwise.

    ``payload == data + retransmitted + anomalous + buffered`` at any time, and ``buffered`` is 0
    after the end. ``missing`` is apart, for it counts what is *not* in the capture.
    """

    packets: int = 0
    """Records that were read; each is one of the four that follow."""
    segments: int = 0
    """Packets that completed a TCP segment, an empty one included."""
    fragments: int = 0
    """Packets that were kept as part of a datagram, complete or not by now."""
    malformed: int = 0
    """Packets with headers that cannot be; each has an anomaly."""
    others: dict[str, int] = msgspec.field(default_factory=dict)
    """Packets that carry no TCP, by what they are: ``arp``, ``udp``, ``link type 105``."""

    payload: int = 0
    """TCP payload that was captured."""
    data: int = 0
    """Handed out as Data."""
    retransmitted: int = 0
    """Captured before."""
    differing: int = 0
    """Of these, not what was captured before."""
    anomalous: int = 0
    """The lengths of anomalies."""
    buffered: int = 0
    """Waiting for bytes in front of them, or for fragments."""
    missing: int = 0
    """The lengths of gaps."""
    stream: int = 0
    """The lengths of all directions: ``data + missing``."""

    def check(self) -> None:
        """Raise AccountError unless the sums agree."""
        placed = self.data + self.retransmitted + self.anomalous + self.buffered
        if self.payload != placed:
            raise AccountError(f"{self.payload} bytes of payload, but {placed} accounted for")
        if self.stream != self.data + self.missing:
            raise AccountError(
                f"streams of {self.stream} bytes, but {self.data} data and {self.missing} missing"
            )
        read = self.segments + self.fragments + self.malformed + sum(self.others.values())
        if self.packets != read:
            raise AccountError(f"{self.packets} packets, but {read} accounted for")
