"""The state of a connection, as it passes between the readers in Python and the extension.

``ConnectionState`` is the whole of it. In Python, ``dump`` and ``restore`` of ``TcpReassembler``,
``Conversation`` and what they consist of produce and take its parts; in C, ``Reading.dump`` and
``Reading.restore`` the whole (``native/connection_state.c``). ``Reading.restore`` requires that
both directions are between two frames, ``Reading.dump`` works at any packet.

The ``Connection``, its tallies, its open requests and its early responses are shared, not copied.
Python keeps its own objects while the extension reads, so a dump has what is new since ``restore``.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from wiredump.model import Place
from wiredump.readers.tcp_state import Opening, StreamState, TcpState

if TYPE_CHECKING:
    from wiredump.model import Connection, Frame
    from wiredump.open_requests import OpenRequests

__all__ = ["STATES", "ConnectionState", "ConversationState", "FrameState", "PairingState"]


_packet: Final = Struct("=qqqqiI")


class FrameState(NamedTuple):
    """The current frame of one direction: its position, its bytes so far, and the packets that
    brought them. A packet is 40 bytes in native order: the positions where its bytes begin and end
    (int64), its time and offset (int64), its capture (int32), and 4 bytes for the extension."""

    base: int
    held: bytes
    packets: bytes

    def marks(self) -> Iterator[tuple[int, int, Place]]:
        """Yield where each packet's bytes end, its time and its place."""
        for _, end, time, packet, capture, _ in _packet.iter_unpack(self.packets):
            yield end, time, Place(capture, packet)

    def pieces(self) -> Iterator[tuple[bytes, int, Place]]:
        """Yield the bytes of each packet, its time and its place."""
        at = 0
        for end, time, place in self.marks():
            if end - self.base > at:
                yield self.held[at : end - self.base], time, place
                at = end - self.base


class PairingState(NamedTuple):
    """``early`` has responses that came before their requests, by correlation id. The client id and
    the last correlation ids of requests and responses are None without one since ``restore``."""

    requests: OpenRequests
    early: dict[int, Frame]
    client_id: str | None
    newest: int | None
    answered: int | None


class ConversationState(NamedTuple):
    """``flipped`` is whether the readers' client is the broker."""

    flipped: bool
    request: FrameState
    response: FrameState
    pairing: PairingState


class ConnectionState(NamedTuple):
    """``conversation`` is None if the connection opened in the extension, and either has sent no
    request yet or is closed. ``counts`` has the number of requests that did not become items since
    the last ``restore``, their bytes, and those of their responses."""

    connection: Connection
    tcp: TcpState
    conversation: ConversationState | None
    counts: tuple[int, int, int] = (0, 0, 0)


STATES: Final = (
    ConnectionState, TcpState, StreamState, Opening, ConversationState, FrameState, PairingState,
)  # fmt: skip
"""The types that ``Reading.dump`` makes, in its order."""
