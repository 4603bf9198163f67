"""Counts of a connection's packets: what was sent again, came late or is missing, and round-trip
times. The reassembler counts while it puts the streams together; the connection's description has
the same object."""

from __future__ import annotations

import msgspec

from wiredump.readers import round_trips
from wiredump.readers.round_trips import RoundTrips, State

__all__ = ["COUNTS", "EndTally", "Tally"]


class EndTally(msgspec.Struct, gc=False):
    """Of what one end sent: segments, except for ``retransmitted_bytes`` and ``missing_bytes``.

    - ``retransmitted``: segments with bytes that had been captured before, except for keep-alives;
      ``retransmitted_bytes`` are those bytes.
    - ``out_of_order``: other segments captured behind bytes that follow theirs. They were
      reordered, or lost before the point of capture and sent again.
    - ``holes``: segments captured while bytes in front of them were missing. ``missing_bytes``
      were never captured.
    - ``zero_windows``: segments that announce a window of 0.
    - ``resets``: segments with RST.

    ``copies`` are packets with data that were captured again, on another interface; they count as
    nothing else. ``copied_ns`` is how much later all of them were captured together.
    ``first_sequence`` is the number of the first segment with data; None without one, and if an
    acknowledgement of lost data came before. ``timing`` is the state of ``round_trips`` until the
    connection is closed; None without data.
    """

    retransmitted: int = 0
    retransmitted_bytes: int = 0
    out_of_order: int = 0
    holes: int = 0
    missing_bytes: int = 0
    zero_windows: int = 0
    resets: int = 0
    timing: State | None = None
    measured: RoundTrips | None = None
    copies: int = 0
    copied_ns: int = 0
    first_sequence: int | None = None

    @property
    def counts(self) -> tuple[int, ...]:
        """In the order of ``COUNTS``."""
        return (
            self.retransmitted, self.retransmitted_bytes, self.out_of_order, self.holes,
            self.missing_bytes, self.zero_windows, self.resets,
        )  # fmt: skip

    def count_copy(self, delay_ns: int) -> None:
        """Count a segment that was captured again so much later, or earlier by another clock."""
        self.copies += 1
        self.copied_ns += abs(delay_ns)

    @property
    def round_trips(self) -> RoundTrips:
        """Times from a data segment to its acknowledgement, as far as they were measured."""
        return self.measured if self.measured is not None else round_trips.sums(self.timing)

    def time_from(self, sequence: int, *, has_data: bool = True) -> State:
        """Return the state of ``round_trips``; a new one begins at ``sequence``, with a segment
        that has data or with an acknowledgement."""
        if self.timing is None:
            self.timing = round_trips.begin(sequence)
            if has_data and self.first_sequence is None:
                self.first_sequence = sequence
        return self.timing

    def close(self) -> None:
        """Replace the state of ``timing`` by its sums."""
        found, self.timing = round_trips.sums(self.timing), None
        if found.samples:
            self.measured = found


COUNTS = EndTally.__struct_fields__[:7]


class Tally(msgspec.Struct, gc=False):
    """Of both ends. ``syns`` counts the client's SYNs and ``syn_acks`` the answers to them, without
    copies. ``handshake_ns`` is the time from the last SYN to the client's first segment
    after the SYN-ACK; None where one of the three was not captured."""

    client: EndTally = msgspec.field(default_factory=EndTally)
    broker: EndTally = msgspec.field(default_factory=EndTally)
    handshake_ns: int | None = None
    syns: int = 0
    syn_acks: int = 0

    @property
    def copies(self) -> int:
        """Of both ends together."""
        return self.client.copies + self.broker.copies

    @property
    def copy_delay_ns(self) -> int | None:
        """How much later copies were captured, on average; None without any."""
        copied_ns = self.client.copied_ns + self.broker.copied_ns
        return copied_ns // self.copies if self.copies else None

    @property
    def counts(self) -> tuple[int, ...]:
        """Of both ends together, in the order of ``COUNTS``."""
        both = zip(self.client.counts, self.broker.counts, strict=True)
        return tuple(client + broker for client, broker in both)

    def flip(self) -> None:
        """Swap the ends, after the end that was taken for the client turned out to be the
        broker."""
        self.client, self.broker = self.broker, self.client

    def close(self) -> None:
        """Stop timing: the connection is closed."""
        self.client.close()
        self.broker.close()
