"""Count every captured byte of TCP payload by where it went, and check that none is missing.

``payload`` and ``packets`` are counted where packets come in, everything else where the decision
about a byte is made, so that the check is meaningful.
"""

from __future__ import annotations

import msgspec

from kproto.errors import KprotoError

__all__ = ["Account", "AccountError"]


class AccountError(KprotoError):
    """The sums do not agree, which is a bug: no capture can cause it."""


class Account(msgspec.Struct):
    """Counts of bytes unless their names say otherwise.

    ``payload == data + retransmitted + anomalous + buffered`` holds at any time, and ``buffered``
    is 0 at the end. ``missing`` is separate, since it counts bytes that are not in the capture.
    """

    packets: int = 0
    """Records read; each is counted in one of the next four."""
    segments: int = 0
    """Packets that completed a TCP segment, including empty segments."""
    fragments: int = 0
    """Packets with a fragment of a datagram, whether or not it was completed."""
    malformed: int = 0
    """Packets with invalid headers; each has an anomaly."""
    others: dict[str, int] = msgspec.field(default_factory=dict)
    """Packets without TCP, by protocol: ``arp``, ``udp``, ``link type 105``."""

    payload: int = 0
    """TCP payload that was captured."""
    data: int = 0
    """Returned as Data."""
    retransmitted: int = 0
    """Captured before."""
    differing: int = 0
    """Those of the retransmitted bytes that differ from the first copy."""
    anomalous: int = 0
    """The lengths of anomalies."""
    buffered: int = 0
    """Waiting for earlier bytes of the stream, or for fragments."""
    missing: int = 0
    """The lengths of gaps, except for the next ones."""
    beyond_limit: int = 0
    """The lengths of gaps that a limit of reassembly made (``REASSEMBLY_LIMITS``)."""
    stream: int = 0
    """The lengths of all directions: ``data + missing + beyond_limit``."""

    def check(self) -> None:
        """Raise AccountError unless the sums agree."""
        placed = self.data + self.retransmitted + self.anomalous + self.buffered
        if self.payload != placed:
            raise AccountError(f"{self.payload} bytes of payload, but {placed} accounted for")
        missing = self.missing + self.beyond_limit
        if self.stream != self.data + missing:
            raise AccountError(
                f"streams of {self.stream} bytes, but {self.data} data and {missing} missing"
            )
        read = self.segments + self.fragments + self.malformed + sum(self.others.values())
        if self.packets != read:
            raise AccountError(f"{self.packets} packets, but {read} accounted for")
