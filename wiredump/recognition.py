"""Recognise a connection by its bytes: Kafka, TLS or another protocol; and, if the capture lacks
the beginning, find out which end is the client.

Evidence accumulates. The first request decides if it names a client or if all of it decodes.
Otherwise, and in the middle of a connection, one of these shows that it is Kafka: a whole request
with a client id that decodes, several headers of requests by the same client whose correlation ids
count up, or, if only the broker's side was captured, responses whose correlation ids count up, and
which decode as those of some API. Each byte is examined a bounded number of times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from struct import Struct
from typing import Final, Literal, TypeAlias, cast

from kproto.dialects import dialect
from kproto.errors import KprotoError
from kproto.framing import DEFAULT_MAX_SIZE, SIZE_LENGTH
from wiredump.frame_boundaries import (
    NEAR,
    REQUEST_PREFIX,
    RESPONSE_PREFIX,
    Requests,
    every_request,
    id_distance,
)
from wiredump.other_protocols import is_tls, other_protocol
from wiredump.prologues import Prologue, Undecided, prologue
from wiredump.search import Candidate, Search

__all__ = ["MOST_UNDECIDED", "Protocol", "Recognition", "is_token"]

Protocol: TypeAlias = Literal[
    "kafka", "tls", "unknown", "http", "http2", "ssh", "amqp", "redis", "smtp", "nats", "memcached",
    "mqtt", "postgresql", "zookeeper", "cassandra", "mongodb", "bittorrent", "rdp", "smb",
]  # fmt: skip

MOST_UNDECIDED: Final = 1 << 20
"""The memory for a connection's bytes while it is not recognised."""
MOST_UNLIKE: Final = 1 << 16
"""The same, if it does not begin like Kafka."""
MOST_PASSED: Final = 32 << 20
"""The bytes that are passed over, at most, before a connection is unknown for good, except on a
port of Kafka."""
MOST_LIKE: Final = 8 << 20
"""The same in the middle of a connection, behind the header of a request by a client."""

_A_PIECE: Final = 256
"""The approximate cost of keeping a packet's bytes, beside the bytes."""
_HEAD: Final = 2048
"""More than the length of a request's header, and of a prologue."""
_LEAST: Final = 5
"""The number of bytes of TLS's header."""
_GSSAPI: Final = 0x60
"""The first byte of an initial token of GSSAPI (RFC 2743, 3.1)."""
_MOST_IDS: Final = 16
_MOST_WHOLE: Final = 8
_LIKELY: Final = 1 << 20
"""The largest request without a client id that counts unless all of it is there."""
_ANY: Final = 2
_UNNAMED: Final = 3
"""How many headers of requests show Kafka: if they have a client id, and if not; and how many
responses do."""

_prefix: Final = Struct(">ihhi").unpack_from
_length: Final = Struct(">h").unpack_from
_response: Final = Struct(">ii").unpack_from


class Recognition:
    """Takes bytes and gaps, then returns the ``protocol``.

    ``from_start``: the beginning of the connection was captured. ``known``: the ports show which
    end is the broker, so it is Kafka unless it is recognised as another protocol. ``forward`` is
    the client's direction as far as it is known; ``data`` and ``gap`` have the direction of their
    bytes. ``has_token`` is whether the connection begins with a SASL token without a header.
    ``in_step`` is whether it begins with a frame.
    """

    _name: str | None = None
    _named_by: tuple[bool, int, int] | None = None
    """What ``_name`` was derived from: the client's direction, and the lengths of both heads."""

    def __init__(
        self, requests: Requests, most: int, *, forward: bool, from_start: bool, known: bool
    ) -> None:
        self.forward = forward
        self.has_token = False
        self.in_step = from_start
        self._from_start = self._begins = from_start
        self._known = known
        self._requests = requests
        self._heads = {True: bytearray(), False: bytearray()}
        self._looks = {each: _Look(requests, most) for each in (True, False)}
        self._most = MOST_UNDECIDED
        self._cost = 0
        self._passed = 0
        """The cost of what was passed over."""
        self._may_have_prologue = True
        self._cut_heads: set[bool] = set()
        """The directions with a gap, whose heads do not grow any more."""
        self._server_gap = False

    def data(self, forward: bool, raw: bytes) -> None:
        """Take the next bytes of one direction."""
        self._cost += len(raw) + _A_PIECE
        head = self._heads[forward]
        if len(head) < _HEAD and forward not in self._cut_heads:
            head += raw[: _HEAD - len(head)]
        self._looks[forward].data(raw)

    def gap(self, forward: bool) -> None:
        """Take a gap. If it is at the client's beginning, it hides how the connection begins."""
        self._cost += _A_PIECE
        self._server_gap |= forward != self.forward
        if forward == self.forward and self._may_have_prologue:
            self._from_start = self._begins = self.in_step = self._may_have_prologue = False
            if self._heads[forward]:  # the beginning of a proxy's header
                for head in self._heads.values():
                    head.clear()
        elif self._heads[forward]:
            self._cut_heads.add(forward)
        self._looks[forward].gap()

    @property
    def heads(self) -> tuple[bytes, bytes]:
        """The first bytes of the client and of the server."""
        return bytes(self._heads[self.forward]), bytes(self._heads[not self.forward])

    def prologue(self, *, final: bool = False) -> Prologue | None:
        """Return what precedes the protocol, once it is complete; None if there is nothing, or not
        yet. ``final`` as in ``protocol``."""
        if not self._may_have_prologue:
            return None
        client, server = self.heads
        if not client:
            return None
        try:
            found = prologue(client, server)
        except Undecided:
            self._may_have_prologue = not final and len(client) < _HEAD
            return None
        self._may_have_prologue = False
        return found

    def protocol(self, *, final: bool = False) -> Protocol | None:
        """Return the protocol, or None while there are too few bytes. ``final``: no more will
        come."""
        if self._may_have_prologue and self._heads[self.forward] and not final:
            return None
        over = final or self._cost > self._most_now
        found = self._by_start(over) if self._from_start else None
        if found is None and not self._from_start:
            found = self._by_evidence(over)
        if found is None and over:
            return cast(Protocol, other_protocol(*self.heads) or "unknown")
        return found

    @property
    def _most_now(self) -> int:
        if not any(each.has_header() for each in self._looks.values()):
            return self._most
        return MOST_UNDECIDED if self._begins else MOST_LIKE

    @property
    def goes_on(self) -> bool:
        """Whether later bytes may show that an unknown protocol is Kafka: those in the middle of a
        connection."""
        return not self._begins and (self._known or self._passed < MOST_PASSED)

    def pass_over(self) -> None:
        """Drop all bytes, whose protocol is unknown, but not the evidence in them."""
        self._passed += self._cost
        self._cost = 0
        for look in self._looks.values():
            look.pass_over()

    def _by_start(self, over: bool) -> Protocol | None:
        """Decide by the first bytes that the client sent. If they are not a request, Kafka may
        still follow."""
        head, look = self._heads[self.forward], self._looks[self.forward]
        if is_tls(head):
            return "tls"
        fits = every_request().fits(head, 0, len(head))
        if fits or (fits is False and self._known and every_request().has_api(head)):
            found = (fits and _names_client(head)) or self._is_answered_request(look, over)
            if found is not False:
                return "kafka" if found else None
        elif is_token(head):
            self.has_token = True
            return "kafka"
        elif fits is None:
            if look.names_client():
                return "kafka"
            if not over and (len(head) >= REQUEST_PREFIX or _may_begin(head)):
                return None
        name = other_protocol(*self.heads)
        if name is not None:
            return cast(Protocol, name)
        self._from_start = False
        self.in_step = fits is not False and len(head) >= REQUEST_PREFIX
        self._most = MOST_UNDECIDED if self.in_step or self._known else MOST_UNLIKE
        return None

    def _is_answered_request(self, look: _Look, over: bool) -> bool | None:
        """Whether the first frame is a request although it names no client, at least none in
        printable text: it decodes, and the first response has its correlation id or one behind
        that. None: more bytes are needed."""
        client, server = self.heads
        if other_protocol(client, server) is not None:
            return False
        frame = look.first_frame()
        is_cut = frame is None and self.forward in self._cut_heads
        if frame is None and not is_cut:
            return False if server or over else None  # brokers wait for the end of a request
        decodes = self._requests.decodes(frame) if frame is not None else None
        if not decodes and (decodes is False or not self._known):
            return False
        if len(server) < RESPONSE_PREFIX or self._server_gap:
            return decodes is True or is_cut if over or self._server_gap else None
        return 0 <= id_distance(_response(server)[1], _prefix(client)[3]) <= NEAR

    def _by_evidence(self, over: bool) -> Protocol | None:
        for forward, head in self._heads.items():
            if is_tls(head):
                return "tls"
            if self._looks[forward].finds(final=over):
                return self._kafka(forward)
        if self._known and max(map(len, self._heads.values())) >= _LEAST:
            name = self._other_protocol()
            if name is not None:
                return cast(Protocol, name)
            client, server = self._looks[self.forward], self._looks[not self.forward]
            if client.may_name_client() or client.has_headers():
                return "kafka"
            if server.has_responses() and not self._begins:
                return "kafka"
            if over and client.is_answered_by(server):
                return "kafka"
            if over and server.has_responses(_ANY) and not self._begins:
                return "kafka"
        if over:
            for forward in self._heads:
                if self._looks[forward].has_headers():
                    return self._kafka(forward)
                if self._looks[forward].has_responses() and not self._heads[not forward]:
                    return self._kafka(not forward)
        return None

    def _other_protocol(self) -> str | None:
        """Name another protocol by the first bytes, which are looked at again if there are more."""
        seen = self.forward, len(self._heads[True]), len(self._heads[False])
        if seen != self._named_by:
            self._named_by, self._name = seen, other_protocol(*self.heads)
        return self._name

    def _kafka(self, forward: bool) -> Protocol:
        if not self._known:
            self.forward = forward
        return "kafka"


class _Look:
    """The bytes of one direction, as far as a request may begin in them."""

    def __init__(self, requests: Requests, most: int) -> None:
        self._requests = _Certain(requests)
        self._most = most
        self._held = bytearray()
        self._search = Search(self._held, cuts=False)
        self._base = 0
        self._needs = 0
        self._found = self._any = False
        self._headers = _Headers(requests.decodes)
        self._responses = _Responses()

    def data(self, raw: bytes) -> None:
        self._search.packet(self._base + len(self._held), len(raw))
        self._held += raw
        self._any = True
        self._headers.packet(raw)
        self._responses.packet(raw)

    def gap(self) -> None:
        self.finds(final=True)
        self._base += 1  # bytes behind the gap do not continue those before it

    def pass_over(self) -> None:
        """Drop all bytes."""
        self._base += len(self._held)
        self._needs = 0
        self._held.clear()

    def first_frame(self) -> bytes | None:
        """Return the first frame once it is complete. There must have been no search yet."""
        held = self._held
        if self._base or len(held) < SIZE_LENGTH:
            return None
        end = SIZE_LENGTH + int.from_bytes(held[:SIZE_LENGTH])
        return bytes(held[:end]) if len(held) >= end else None

    def finds(self, *, final: bool) -> bool:
        """Whether there is a complete request, or enough headers of requests."""
        held = self._held
        self._found = self._found or self.names_client()
        if self._found or not held or (len(held) < self._needs and not final):
            return self._found
        self._search.look(self._base, 0, final)
        at, keep, needs = self._search.find(self._requests, self._most)
        self._found = at is not None
        del held[:keep]
        self._base += keep
        self._needs = max(needs, len(held) + 1)
        return self._found

    def names_client(self) -> bool:
        """Whether there are enough headers of requests by one client."""
        return self._headers.count >= _ANY and bool(self._headers.client)

    def may_name_client(self) -> bool:
        """Whether there is the header of a request of usual size by a client."""
        return bool(self._headers.ids and self._headers.client)

    def has_header(self) -> bool:
        """Whether there is the header of a request by a client, of whatever size."""
        return bool(self._headers.count and self._headers.client)

    def has_headers(self) -> bool:
        return self._headers.count >= (_ANY if self._headers.client else _UNNAMED)

    def has_responses(self, least: int = _UNNAMED) -> bool:
        count, whole = self._responses.count, self._responses.whole
        if count < least:
            return False
        return 4 * sum(not _is_response(each) for each in whole) <= len(whole)

    def is_answered_by(self, server: _Look) -> bool:
        """Whether a request of this direction may have a response in the other one, of which
        the capture may lack one."""
        requests, responses = self._headers.ids, server._responses.ids
        if not self._any:
            return bool(responses) and server.has_responses(0)
        if not responses:
            return self._headers.decoded > 0
        return any(abs(id_distance(a, b)) <= NEAR for a in requests for b in responses)


class _Certain:
    """Requests that name a client and decode."""

    def __init__(self, requests: Requests) -> None:
        self.least = requests.least
        self._requests = requests

    def candidates(self, search: Search) -> Iterator[Candidate]:
        return self._requests.candidates(search)

    def follows(self, search: Search, first: Candidate, at: int) -> bool | None:
        return self._requests.follows(search, first, at)

    def decodes(self, raw: bytes) -> bool:
        return _names_client(raw) and self._requests.decodes(raw) is True


class _Headers:
    """Counts packets that begin with the header of a request by the same client, with a correlation
    id behind the one before. A snap length may have cut the rest; if not, it has to decode.
    ``decoded`` counts those that do, ``ids`` has some correlation ids."""

    def __init__(self, decodes: Callable[[bytes], bool | None]) -> None:
        self.count = self.decoded = 0
        self.ids: set[int] = set()
        self._versions: dict[int, int] = {}
        """By API key: a client does not change them."""
        self._decodes = decodes
        self.client = b""
        self._newest: int | None = None

    def packet(self, raw: bytes) -> None:
        shape = every_request()
        end = len(raw)
        fits = shape.fits(bytearray(raw[:_HEAD]), 0, min(end, _HEAD))
        if end < REQUEST_PREFIX + 2 or fits is False:
            return
        correlation_id, (length,) = _prefix(raw)[3], _length(raw, REQUEST_PREFIX)
        if fits is None and not raw[REQUEST_PREFIX + 2 :].isascii():
            return
        size, key, version, _ = _prefix(raw)
        size += SIZE_LENGTH
        if length <= 0 and self._versions.setdefault(key, version) != version:
            self.count = 0
            return
        if length <= 0 and size == end:
            decodes = self._decodes(raw)
            self.decoded += decodes is True
            if decodes is False:
                return
        client = raw[REQUEST_PREFIX + 2 : REQUEST_PREFIX + 2 + max(0, length)]
        shared = min(len(client), len(self.client))
        continues = (
            self._newest is not None
            and client[:shared] == self.client[:shared]
            and bool(client) == bool(self.client)
            and 0 < id_distance(correlation_id, self._newest) <= NEAR
        )
        self.count = self.count + 1 if continues else 1
        self.client, self._newest = client, correlation_id
        if size <= _LIKELY and len(self.ids) < _MOST_IDS:
            self.ids.add(correlation_id)


class _Responses:
    """Counts packets that begin with a response, as far as a size and a correlation id show it: ids
    count up, and frames end where packets do. ``ids`` has some of them, ``whole`` the first ones
    that are whole, most of which have to decode, since other protocols count, too."""

    def __init__(self) -> None:
        self.count = 0
        self.whole: list[bytes] = []
        self.ids: set[int] = set()
        self._newest: int | None = None

    def packet(self, raw: bytes) -> None:
        if len(raw) < RESPONSE_PREFIX:
            return
        size, correlation_id = _response(raw)
        if not SIZE_LENGTH <= size <= DEFAULT_MAX_SIZE or correlation_id < 0:
            return
        if SIZE_LENGTH + size < len(raw):
            following = raw[SIZE_LENGTH + size :][:RESPONSE_PREFIX]
            if len(following) == RESPONSE_PREFIX and not (
                0 < id_distance(_response(following)[1], correlation_id) <= NEAR
            ):
                return
        if self._newest is not None and not 0 < id_distance(correlation_id, self._newest) <= NEAR:
            self.count = 0
        self.count += 1
        self._newest = correlation_id
        if SIZE_LENGTH + size <= len(raw) and len(self.whole) < _MOST_WHOLE:
            self.whole.append(bytes(raw[: SIZE_LENGTH + size]))
        if len(self.ids) < _MOST_IDS:
            self.ids.add(correlation_id)


@lru_cache(maxsize=4096)
def _is_response(frame: bytes) -> bool:
    """Whether a frame decodes as the response of any API and version."""
    codec = dialect("kafka")
    for key, api in sorted(codec.apis.items()):
        for version in api.valid_versions:
            with suppress(KprotoError):
                codec.decode_response(frame, api_key=key, api_version=version)
                return True
    return False


def is_token(head: bytes | bytearray) -> bool:
    """Whether the bytes begin with the size of an initial GSSAPI token and the token, as clients
    sent it before SaslHandshake (KIP-43)."""
    if len(head) < SIZE_LENGTH + 2 or head[SIZE_LENGTH] != _GSSAPI:
        return False
    size, length, at = int.from_bytes(head[:SIZE_LENGTH]), head[SIZE_LENGTH + 1], SIZE_LENGTH + 2
    if length & 0x80:
        digits = length & 0x7F
        at += digits
        length = int.from_bytes(head[SIZE_LENGTH + 2 : at])
    return len(head) >= at and size == at - SIZE_LENGTH + length


def _names_client(raw: bytes | bytearray) -> bool:
    """Whether a request's header has the length of a client id that is not empty."""
    return len(raw) >= REQUEST_PREFIX + 2 and _length(raw, REQUEST_PREFIX)[0] > 0


def _may_begin(head: bytes | bytearray) -> bool:
    """Whether a request or a record of TLS may begin so."""
    return not head or head[0] <= 7 or 0x14 <= head[0] <= 0x17
