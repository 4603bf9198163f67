"""How a connection's packets went: what was sent again, came late or is missing, as one counts it
while its streams are put together. Shared by the reassembler, which counts, and by whoever has the
connection's description."""

from __future__ import annotations

import msgspec

__all__ = ["Tally"]


class Tally(msgspec.Struct, gc=False):
    """Segments, but for what ends in ``bytes`` or ``ns``.

    - ``retransmitted``: segments with bytes that had been captured before, but for keep-alives;
      ``retransmitted_bytes`` are those bytes.
    - ``out_of_order``: all others with bytes in front of some that had been captured by then. Also
      what was lost before it came to the point of capture, and sent again.
    - ``holes``: segments behind a hole that was not there before: those in front of them were late,
      or lost. ``missing_bytes`` were never captured.
    - ``zero_windows``: those that say that the receiver has no room.
    - ``resets``: those with RST.
    - ``handshake_ns``: from the last SYN to the client's first segment behind the SYN-ACK; None
      where one of the three was not captured.
    """

    retransmitted: int = 0
    retransmitted_bytes: int = 0
    out_of_order: int = 0
    holes: int = 0
    missing_bytes: int = 0
    zero_windows: int = 0
    resets: int = 0
    handshake_ns: int | None = None
