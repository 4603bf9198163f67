"""Recognise a connection by its bytes: Kafka, TLS or something else; and, if the capture lacks the
beginning, find out which end is the client.

Each byte is examined a bounded number of times.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from wiredump.frame_boundaries import REQUEST_PREFIX, Requests, every_request
from wiredump.search import Search

__all__ = ["MOST_UNDECIDED", "Protocol", "Recognition"]

Protocol: TypeAlias = Literal["kafka", "tls", "unknown"]

MOST_UNDECIDED: Final = 1 << 20
"""The memory for a connection's bytes while it is not recognised."""

_A_PIECE: Final = 256
"""The approximate cost of keeping a packet's bytes, beside the bytes."""
_HEAD: Final = 2048
"""More than the length of a request's header."""
_TLS_HEADER: Final = 5


class Recognition:
    """Takes bytes and gaps, then returns the ``protocol``.

    ``from_start``: the beginning of the connection was captured. ``known``: the ports show which
    end is the broker, so it is Kafka unless it is TLS. ``forward`` is the client's direction as far
    as it is known; ``data`` and ``gap`` have the direction of their bytes.
    """

    def __init__(
        self, requests: Requests, most: int, *, forward: bool, from_start: bool, known: bool
    ) -> None:
        self.forward = forward
        self._from_start = from_start
        self._known = known
        self._heads = {True: bytearray(), False: bytearray()}
        self._looks = {each: _Look(requests, most) for each in (True, False)}
        self._cost = 0

    def data(self, forward: bool, raw: bytes) -> None:
        """Take the next bytes of one direction."""
        self._cost += len(raw) + _A_PIECE
        head = self._heads[forward]
        if len(head) < _HEAD:
            head += raw[: _HEAD - len(head)]
        self._looks[forward].data(raw)

    def gap(self, forward: bool) -> None:
        """Take a gap. If it is at the client's beginning, it hides how the connection begins."""
        self._cost += _A_PIECE
        if forward == self.forward and not self._heads[forward]:
            self._from_start = False
        self._looks[forward].gap()

    def protocol(self, *, final: bool = False) -> Protocol | None:
        """Return the protocol, or None while there are too few bytes. ``final``: no more will
        come."""
        found = self._by_start() if self._from_start else self._by_requests(final)
        if found is None and (final or self._cost > MOST_UNDECIDED):
            return self._unlike_kafka()
        return found

    def _by_start(self) -> Protocol | None:
        """Decide by the first bytes that the client sent."""
        head = self._heads[self.forward]
        fits = every_request().fits(head, 0, len(head))
        if fits:
            return "kafka"
        if _is_tls(head):
            return "tls"
        if fits is None and len(head) < REQUEST_PREFIX:
            return None if not head or head[0] <= 7 or head[0] in _TLS else self._unlike_kafka()
        return None if fits is None else self._unlike_kafka()

    def _by_requests(self, final: bool) -> Protocol | None:
        for forward, head in self._heads.items():
            if _is_tls(head):
                return "tls"
            if self._looks[forward].finds(final=final):
                if not self._known:
                    self.forward = forward
                return "kafka"
        if self._known and max(map(len, self._heads.values())) >= _TLS_HEADER:
            return "kafka"
        return None

    def _unlike_kafka(self) -> Protocol:
        return "kafka" if self._known else "unknown"


class _Look:
    """The bytes of one direction, as far as a request may begin in them."""

    def __init__(self, requests: Requests, most: int) -> None:
        self._requests = requests
        self._most = most
        self._held = bytearray()
        self._search = Search(self._held, cuts=False)
        self._base = 0
        self._needs = 0
        self._found = False

    def data(self, raw: bytes) -> None:
        self._search.packet(self._base + len(self._held), len(raw))
        self._held += raw

    def gap(self) -> None:
        self.finds(final=True)
        self._base += 1  # bytes behind the gap do not continue those before it

    def finds(self, *, final: bool) -> bool:
        """Whether there is a complete request."""
        held = self._held
        if self._found or not held or (len(held) < self._needs and not final):
            return self._found
        self._search.look(self._base, 0, final)
        at, keep, needs = self._search.find(self._requests, self._most)
        self._found = at is not None
        del held[:keep]
        self._base += keep
        self._needs = max(needs, len(held) + 1)
        return self._found


_TLS: Final = range(0x14, 0x18)


def _is_tls(head: bytes | bytearray) -> bool:
    """Whether the bytes begin with a handshake, alert or data record of TLS 1.0 to 1.3."""
    return len(head) >= _TLS_HEADER and head[0] in _TLS and head[1] == 3 and head[2] <= 4
