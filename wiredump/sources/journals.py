"""Turn the mock's journals into items: frames with times and connections, and events. Entries have
the dialect and the client's software; pairing is the same as for captures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal

from kproto.journal import CLOSED_BY_BROKER, CLOSED_BY_CLIENT, Entry
from wiredump.model import Anomaly, Connection, Direction, Exchange, Frame, Item, Place
from wiredump.pairing import Pairing

__all__ = ["JournalItems"]

_CLOSED_BY: Final[dict[str, Literal["client", "broker"]]] = {
    CLOSED_BY_CLIENT: "client",
    CLOSED_BY_BROKER: "broker",
}
_QUIET = frozenset({"connected", "disconnected", "sasl-token", "authenticated", "replayed"})
"""Events that are normal, and visible in a connection's times and frames."""


class JournalItems:
    """Takes entries in the order of the journal, and returns items. ``capture`` is the journal's
    number among the sources, ``first`` the number of its first connection. Connections are added
    to ``connections``, by number."""

    def __init__(
        self, *, capture: int = 0, first: int = 0, connections: dict[int, Connection] | None = None
    ) -> None:
        self.connections: dict[int, Connection] = {} if connections is None else connections
        self._capture = capture
        self._next = first
        self._talks: dict[tuple[int, int], _Talk] = {}

    def read(self, entries: Iterable[Entry]) -> Iterator[Item]:
        """Yield the items of a whole journal."""
        for entry in entries:
            yield from self.feed(entry)
        yield from self.end()

    def feed(self, entry: Entry) -> list[Item]:
        """Return the items that an entry completes."""
        key = (entry.broker_id, entry.connection_id)
        talk = self._talks.get(key)
        if talk is None:
            talk = self._begin(entry)
            self._talks[key] = talk
        place = Place(self._capture, entry.sequence)
        items: list[Item] = []
        if entry.raw and (entry.direction != "event" or entry.event == "sasl-token"):
            items += talk.frame(entry, place)
        if entry.event and entry.event not in _QUIET:
            items.append(talk.anomaly(entry, place))
        if entry.event == "disconnected":
            talk.connection.closed_ns = entry.timestamp_ns
            talk.connection.closed_by = _CLOSED_BY.get(entry.note)
            items += talk.pairing.end("the connection was closed")
            del self._talks[key]
        return items

    def end(self) -> list[Item]:
        """Return the items that are incomplete at the end of the journal."""
        items: list[Item] = []
        for talk in self._talks.values():
            items += talk.pairing.end("the journal ends")
        self._talks.clear()
        return items

    def _begin(self, entry: Entry) -> _Talk:
        number = self._next
        self._next += 1
        connection = Connection(
            number,
            entry.peer or f"connection {entry.connection_id}",
            f"broker {entry.broker_id}",
            entry.timestamp_ns,
            from_start=True,
            protocol="kafka",
            place=Place(self._capture, entry.sequence),
        )
        self.connections[number] = connection
        return _Talk(connection)


class _Talk:
    """One connection of a journal."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.pairing = Pairing(connection)
        self._offsets: dict[Direction, int] = {"request": 0, "response": 0}

    def frame(self, entry: Entry, place: Place) -> list[Item]:
        direction: Direction = "response" if entry.direction == "response" else "request"
        if entry.client_software is not None:
            self.connection.software = entry.client_software
        offset = self._offsets[direction]
        self._offsets[direction] += len(entry.raw)
        now = entry.timestamp_ns
        frame = Frame(direction, offset, len(entry.raw), entry.raw, 0, now, now, place)
        pair = self.pairing.request if direction == "request" else self.pairing.response
        items = pair(frame)
        for item in items:
            if isinstance(item, Exchange) and item.api_key == entry.api_key:
                item.dialect = entry.dialect
        return items

    def anomaly(self, entry: Entry, place: Place) -> Anomaly:
        reason = entry.note or entry.event
        return Anomaly(entry.event, reason, place, entry.timestamp_ns, self.connection)
