"""Turn TCP streams into items: assign events to connections, and account for every byte.

This module has no access to files: events come from ``wiredump.readers``, in order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Set
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from kproto.dialects import Dialect
from kproto.errors import KprotoError
from wiredump import readers
from wiredump.conversation import DEFAULT_PORTS, Conversation, port_of
from wiredump.model import Anomaly, Connection, Direction, Exchange, Item, Place
from wiredump.readable import Readable
from wiredump.readers import FROM_CLIENT
from wiredump.skipped import damage, lost, read_requests, unread
from wiredump.tls.keylog import KeyLog
from wiredump.unread import Unread

if TYPE_CHECKING:
    from wiredump.tls.talk import TlsTalk

__all__ = ["ByteAccount", "CaptureItems", "UnaccountedError"]


class UnaccountedError(KprotoError):
    """Bytes were counted neither as frames nor as retransmissions or anomalies, which is a bug."""


_DAMAGE: Final = frozenset(
    ("truncated", "damaged", "decompression-limit", "packet", "malformed", "fragment", "cut",
     "unframed")
)  # fmt: skip
"""The kinds of anomalies that show what a capture lacks; gaps are counted by their bytes."""

_UNREAD: Final[dict[str, Unread]] = {
    "malformed": "malformed",
    "fragment": "fragments",
    "late": "out-of-window",
    "reassembly-limit": "reassembly-limit",
    "before-start": "out-of-window",
    "after-close": "out-of-window",
    "out-of-window": "out-of-window",
    "reset": "out-of-window",
}
"""Why the bytes of an anomaly of the readers are not read."""


class ByteAccount(msgspec.Struct):
    """Where every captured byte of TCP payload went. ``missing`` counts bytes that were not
    captured. ``tls`` are bytes of TLS that are not plaintext, on connections with keys; all other
    counts of such a connection are of plaintext, including ``missing`` as far as it is known.
    ``copies`` are bytes of packets that were captured at two places.
    ``damage`` counts packets and frames, by kind (``skipped.damage_of``), and the bytes of gaps
    that a limit of reassembly made.

    ``unread`` counts the bytes that nothing was read of, by reason: those of anomalies, and some
    that are in ``frames`` or ``retransmitted``, too (``unread_within``). ``requests`` counts those
    that can be decoded, ``prologues`` the bytes of proxies' headers. ``lost`` counts the bytes of
    files that belong to no record, by the kind of the anomaly; those of a compressed file as
    decompressed."""

    payload: int = 0
    frames: int = 0
    retransmitted: int = 0
    anomalies: int = 0
    missing: int = 0
    tls: int = 0
    damage: Counter[str] = msgspec.field(default_factory=Counter)
    unread: Counter[Unread] = msgspec.field(default_factory=Counter)
    unread_within: int = 0
    requests: int = 0
    prologues: int = 0
    copies: int = 0
    lost: Counter[str] = msgspec.field(default_factory=Counter)

    def check(self) -> None:
        """Raise UnaccountedError unless the sums agree."""
        placed = self.frames + self.retransmitted + self.copies
        placed += self.anomalies + self.tls + self.prologues
        if placed != self.payload:
            raise UnaccountedError(f"{self.payload} bytes of payload, {placed} accounted for")
        named = self.unread.total() - self.unread_within
        if named != self.anomalies:
            raise UnaccountedError(f"{self.anomalies} bytes of anomalies, {named} with a reason")

    @property
    def counts(self) -> dict[str, int]:
        """The counts as an account has them (``skipped``); those of ``_RARE`` only if there are
        any."""
        counts = {name: getattr(self, name) for name in _BYTES}
        named = {name: count for name, count in counts.items() if count or name not in _RARE}
        beside = damage(self.damage) | unread(self.unread) | lost(self.lost)
        return named | beside | read_requests(self.requests)

    def count_tls(self, size: int) -> None:
        self.tls += size

    def count_prologue(self, size: int) -> None:
        self.prologues += size

    def count(self, item: Item, readable: Readable) -> None:
        """Count one item of a connection."""
        if isinstance(item, Exchange):
            for frame in (item.request, item.response):
                if frame is not None:
                    self.frames += frame.size - frame.missing
            self.requests += readable.has_request(item)
            for reason, size in readable.unread_of(item):
                self.count_within(reason, size)
        else:
            self.anomalies += item.size
            if item.kind == "reassembly-limit":
                self.damage[item.kind] += item.missing
            else:
                self.missing += item.missing
            if item.unread is not None:
                self.unread[item.unread] += item.size
            if item.kind in _DAMAGE and item.unread != "not-kafka":
                self.damage[item.kind] += 1

    def count_within(self, reason: Unread, size: int) -> None:
        """Count unread bytes that are in ``frames`` or ``retransmitted``."""
        if size:
            self.unread[reason] += size
            self.unread_within += size


MOST_HELD: Final = 64 << 20
"""The bytes of connections that wait for others to show what they are."""

_RARE: Final = frozenset({"tls", "prologues", "copies"})
_BYTES: Final = ("payload", "frames", "retransmitted", "anomalies", "missing", *sorted(_RARE))


_CLOSINGS = {
    "fin": "the connection was closed",
    "reset": "the connection was reset",
    "reused": "another connection began on its ports",
    "evicted": "too many connections at a time",
    "end": "the capture ends",
}


class CaptureItems:
    """Takes events and returns items. ``connections`` has every connection by number;
    ``account.check`` holds after the last event, when every connection has had its ``Closed``, and
    ``settle``. Connections that open while ``keys`` has secrets are read through TLS.

    A connection whose bytes do not show what it is waits, after its end, for ``settle``, which
    considers the ports of brokers on others. If this ``holds`` none, as in a capture that is
    followed, the ports of brokers that were seen so far count at once. ``kafka_ports`` are those,
    and such ports that came from elsewhere; ``elsewhere`` returns more, if any connection waits at
    the end. After ``settle``, ``doubtful_ports`` has the ports that would have helped.
    """

    def __init__(
        self,
        codec: Dialect | None = None,
        *,
        ports: frozenset[int] = DEFAULT_PORTS,
        keys: KeyLog | None = None,
        holds: bool = True,
        elsewhere: Callable[[], Collection[int]] | None = None,
    ) -> None:
        self.connections: dict[int, Connection] = {}
        self.account = ByteAccount()
        self.readable = Readable(codec)
        self._codec = codec
        self._ports = ports
        self._keys = keys if keys is not None else KeyLog()
        self._open: dict[int, Conversation | TlsTalk] = {}
        self.__setstate__({"_holds": holds, "_elsewhere": elsewhere})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._holds = True
        self._elsewhere: Callable[[], Collection[int]] | None = None
        self.kafka_ports: set[int] = set()
        self.doubtful_ports: set[int] = set()
        self._doubtful: dict[int, tuple[Conversation | TlsTalk, readers.Closed]] = {}
        self._held = 0
        """The bytes of these connections."""
        self.__dict__.update(state)

    def read(self, events: Iterable[readers.Event]) -> Iterator[Item]:
        """Yield the items of all events."""
        for event in events:
            yield from self.feed(event)
        yield from self.settle()

    def feed(self, event: readers.Event) -> list[Item]:
        """Return the items that an event completes."""
        items = self._items(event)
        if not self._holds:
            items += self._learn(event.connection)
        return self._counted(items)

    def _learn(self, number: int | None) -> list[Item]:
        """Use the port of a connection's broker, if it is Kafka, for others that are open; returns
        the items of these."""
        connection = None if number is None else self.connections.get(number)
        if connection is None or connection.protocol != "kafka":
            return []
        port = port_of(connection.broker)
        if port in self.kafka_ports:
            return []
        self.kafka_ports.add(port)
        ports = frozenset({port})
        return [item for talk in self._open.values() for item in talk.consider(ports)]

    def _counted(self, items: list[Item]) -> list[Item]:
        for item in items:
            self.account.count(item, self.readable)
        return items

    # -- what other connections show ---------------------------------------------------------

    def brokers(self) -> set[int]:
        """Return the ports of brokers so far, ``kafka_ports`` included."""
        known = (each for each in self.connections.values() if each.protocol == "kafka")
        return self.kafka_ports.union(port_of(each.broker) for each in known)

    @property
    def doubtful(self) -> Set[int]:
        """The numbers of the connections that wait."""
        return self._doubtful.keys()

    def settle(self, *, final: bool = True) -> list[Item]:
        """Return the items of connections that wait: of all if this is ``final``, else of those
        to known ports."""
        items: list[Item] = []
        if not self._doubtful:
            return items
        known = self.brokers()
        if final and self._elsewhere is not None:
            known.update(self._elsewhere())
        for number, (talk, event) in list(self._doubtful.items()):
            if final or talk.server_ports & known:
                del self._doubtful[number]
                self._held -= talk.held
                items += self._consider(talk, event, known)
        return self._counted(items)

    def _consider(
        self, talk: Conversation | TlsTalk, event: readers.Closed, ports: set[int]
    ) -> list[Item]:
        if not talk.server_ports & ports:
            self.doubtful_ports |= talk.server_ports
        return talk.consider(frozenset(ports)) + self._ended(talk, event)

    # -- events ------------------------------------------------------------------------------

    def _items(self, event: readers.Event) -> list[Item]:
        match event:
            case readers.Data():
                self.account.payload += len(event.data)
                return self._open[event.connection].data(
                    event.direction == FROM_CLIENT, event.data, event.timestamp_ns, _place(event),
                    event.waited_ns,
                )  # fmt: skip
            case readers.Gap():
                if event.reason == "snaplen":
                    self.account.damage["snaplen"] += 1
                return self._open[event.connection].gap(
                    event.direction == FROM_CLIENT,
                    event.length,
                    event.reason,
                    event.timestamp_ns,
                    _place(event),
                )
            case readers.Retransmission():
                self.account.payload += event.length
                if event.copied:
                    self.account.copies += event.length
                else:
                    self.account.retransmitted += event.length
                if event.differing:
                    self.account.count_within("differing", event.length)
                return self._differing(event)
            case readers.Anomaly():
                self.account.payload += event.length
                self.account.lost[event.kind] += event.lost
                return [self._anomaly(event)]
            case readers.Opened():
                self._begin(event)
                return []
            case readers.Closed():
                return self._close(event)

    def _begin(self, event: readers.Opened) -> None:
        connection = Connection(
            event.connection, str(event.client), str(event.server), event.timestamp_ns,
            from_start=event.start != "middle", place=Place(event.capture, event.offset),
            tally=event.tally, tunnel=event.tunnel,
        )  # fmt: skip
        self.connections[event.connection] = connection
        talk = self.converse(connection)
        if self.keyed:
            self._open[event.connection] = self._through_tls(talk)

    def converse(self, connection: Connection) -> Conversation:
        """Start a conversation for a connection that opens, or that others have read so far."""
        ports = self._ports if self._holds else self._ports | self.kafka_ports
        talk = Conversation(
            connection, self._codec, ports=ports, overhead=self.account.count_prologue
        )
        self._open[connection.number] = talk
        return talk

    def conversation(self, number: int) -> Conversation | TlsTalk:
        """Return the conversation of an open connection."""
        return self._open[number]

    @property
    def keyed(self) -> bool:
        """Whether connections that open now are read through TLS."""
        return bool(self._keys)

    def _through_tls(self, talk: Conversation) -> TlsTalk:
        from wiredump.tls.talk import TlsTalk  # needed only with keys

        return TlsTalk(talk, self._keys, self.account.count_tls)

    def _close(self, event: readers.Closed) -> list[Item]:
        talk, connection = self._open.pop(event.connection), self.connections[event.connection]
        if event.reason not in ("evicted", "end"):
            connection.closed_ns = event.timestamp_ns
        items = talk.finish()
        if not (self._may_wait and talk.is_doubtful):
            return items + self._ended(talk, event)
        self._doubtful[event.connection] = talk, event
        self._held += talk.held
        return items

    @property
    def _may_wait(self) -> bool:
        return self._holds and self._held < MOST_HELD

    def _ended(self, talk: Conversation | TlsTalk, event: readers.Closed) -> list[Item]:
        connection = self.connections[event.connection]
        items = talk.conclude()
        items += talk.end(_why(event, talk.flipped))
        if event.ended_by is not None:
            connection.closed_by = _end(event.ended_by, talk.flipped)
            connection.closed_with = event.ended_with
        return items

    def _differing(self, event: readers.Retransmission) -> list[Item]:
        """Return an anomaly for a retransmission whose bytes differ; others are normal."""
        if not event.differing:
            return []
        reason = (
            f"{event.differing} of {event.length} retransmitted bytes differ from the first copy"
        )
        connection = self.connections.get(event.connection)
        direction = self._direction(event.connection, event.direction)
        return [
            Anomaly(
                "differing", reason, _place(event), event.timestamp_ns, connection, direction,
                event.stream_offset,
            )
        ]  # fmt: skip

    def _anomaly(self, event: readers.Anomaly) -> Anomaly:
        return Anomaly(
            event.kind, event.reason, _place(event), event.timestamp_ns,
            None if event.connection is None else self.connections.get(event.connection),
            self._direction(event.connection, event.direction), event.stream_offset, event.length,
            unread=_UNREAD[event.kind] if event.length else None,
        )  # fmt: skip

    def _direction(self, connection: int | None, direction: int | None) -> Direction | None:
        """Return the direction, as far as it is known which end is the broker."""
        if connection is None or direction is None:
            return None
        talk = self._open.get(connection)
        flipped = talk is not None and talk.flipped
        return "request" if (direction == FROM_CLIENT) != flipped else "response"


def _end(direction: int, flipped: bool) -> Literal["client", "broker"]:
    return "client" if (direction == FROM_CLIENT) != flipped else "broker"


def _why(event: readers.Closed, flipped: bool) -> str:
    why = _CLOSINGS[event.reason]
    if event.ended_by is None or event.reason not in ("fin", "reset"):
        return why
    verb = "closed" if event.ended_with == "fin" else "reset"
    return f"the connection was {verb} by the {_end(event.ended_by, flipped)}"


def _place(event: readers.Data | readers.Gap | readers.Retransmission | readers.Anomaly) -> Place:
    return Place(event.capture, event.offset)
