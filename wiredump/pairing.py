"""Pair the responses of a connection with its requests, and find the version of each response.

Pairing is by correlation id; if a client uses one twice, the oldest request comes first. Handled
here, too: requests without a response (Produce with acks=0), the fallback of ApiVersions to version
0 (KIP-511), and SASL tokens without a header after SaslHandshake v0 (KIP-43). A broker answers the
requests of a connection in order; a response out of order is marked. Only the bytes that this needs
are decoded.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from functools import cache, partial
from struct import Struct
from typing import Any, Final

import msgspec

from kproto.dialects import AutoDialect, Dialect, dialect
from kproto.errors import DecodeError, KprotoError, UnsupportedVersionError
from kproto.framing import SIZE_LENGTH
from kproto.journal import ClientSoftware
from wiredump.connection_state import PairingState
from wiredump.dialects import certain, codec_of
from wiredump.frame_boundaries import NEAR, REQUEST_PREFIX, Expected, every_request, id_distance
from wiredump.headers import produce_acks, request_client_id
from wiredump.model import Anomaly, Connection, Exchange, Frame, Item
from wiredump.open_requests import OpenRequests, open_requests

__all__ = [
    "MOST_OPEN", "MOST_OPEN_BYTES", "Pairing", "decodes", "response_version", "shared_keys",
    "software_of",
]  # fmt: skip

MOST_OPEN: Final = 10_000
MOST_OPEN_BYTES: Final = 256 * 1024 * 1024
"""The most requests without a response on one connection, and the most bytes of them. Beyond that
the oldest is returned without a response. So many accumulate only if a capture has one
direction."""

MOST_EARLY: Final = 256
"""Responses kept for a request that comes later in the capture (its packet was sent again)."""

_PRODUCE, _SASL_HANDSHAKE, _API_VERSIONS, _SASL_AUTHENTICATE = 0, 17, 18, 36
_UNSUPPORTED_VERSION: Final = b"\0\x23"

_TRAILING: Final = "bytes left over after the message"

_prefix: Final = Struct(">ihhi").unpack_from
_correlation_id = _size = Struct(">i").unpack_from


class Pairing:
    """Takes the complete frames of a connection and returns exchanges as they are completed.

    ``codec`` decodes the few bodies that are needed; with ``auto``, only those of API keys that a
    draft shares with the released protocol.
    """

    def __init__(self, connection: Connection, codec: Dialect | None = None) -> None:
        self.connection = connection
        self._codec = codec if codec is not None else dialect("auto")
        self._kafka = certain(self._codec)
        self._shared = shared_keys(self._codec)
        self._open = self._open_requests()
        self._early: OrderedDict[int, Frame] = OrderedDict()
        self._tokens: deque[Exchange] = deque()
        self._bare = False
        """Whether SASL tokens may currently travel without a header."""
        self.bare_tokens = False
        """Whether they ever may have: whether a SaslHandshake v0 was answered."""
        self.is_confirmed = False
        """Whether a request has shown that this is no other protocol."""
        self.is_doubtful = False
        """Whether a request in front of that did not decode."""
        self._newest: int | None = None
        self._answered: int | None = None

    def _open_requests(self, exchanges: Iterable[Exchange] = ()) -> OpenRequests:
        return open_requests(self.connection, self._kafka.name, exchanges)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": self._open.all()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open = self._open_requests(state["_open"])

    def dump(self) -> PairingState | None:
        """Return the state if it is certain that this is Kafka, and no SASL token travels without
        a header; otherwise None."""
        if self._bare or self._tokens or self.is_doubtful or not self.is_confirmed:
            return None
        return PairingState(self._open, self._early, None, None, None)

    def restore(self, state: PairingState) -> None:
        """Continue after requests and responses that were read elsewhere."""
        self._open, _, client_id, newest, answered = state
        if client_id is not None:
            self.connection.client_id = client_id
        if newest is not None:
            self.connection.protocol = "kafka"
            self._newest = newest
            self.is_confirmed = True
        self._answered = self._answered if answered is None else answered

    @property
    def expected(self) -> Expected:
        """The correlation ids by which responses are recognised."""
        return Expected(self._open, self._open.halves, self._newest, self._answered)

    def is_request(self, raw: bytes) -> bool | None:
        """Whether a frame, or the captured part of it, decodes as a request; None if its version is
        unknown."""
        if len(raw) < SIZE_LENGTH + _size(raw)[0] and not self._continues(raw):
            return False
        return decodes(self._codec.decode_request, raw)

    def _continues(self, raw: bytes) -> bool:
        """Whether the beginning of a request continues the earlier ones: the same client, and a
        correlation id that counts on."""
        known, mine = self.connection.client_id, request_client_id(raw)
        if known is not None and mine is not None and known != mine:
            return False
        return self._newest is None or 0 < id_distance(_prefix(raw)[3], self._newest) <= NEAR

    def is_response(self, raw: bytes) -> bool | None:
        """Whether a frame, or the captured part of it, decodes as the response to the oldest
        request with its id; None if the version of that request is unknown."""
        (correlation_id,) = _correlation_id(raw, SIZE_LENGTH)
        exchange = self._open.oldest(correlation_id)
        if exchange is None:
            return False
        is_cut = len(raw) < SIZE_LENGTH + _size(raw)[0]
        if (
            is_cut
            and self._answered is not None
            and id_distance(correlation_id, self._answered) <= 0
        ):
            return False  # brokers answer in order
        is_auto = isinstance(self._codec, AutoDialect)
        codec = dialect(exchange.dialect) if is_auto else self._codec
        version = response_version(exchange, raw)
        decode = partial(codec.decode_response, api_key=exchange.api_key, api_version=version)
        return decodes(decode, raw)

    # -- requests ----------------------------------------------------------------------------

    def request(self, frame: Frame) -> list[Item]:
        """Take a frame from the client."""
        if self._bare and _is_token(frame):
            return self._token(frame)
        if len(frame.raw) < REQUEST_PREFIX:
            return [
                Exchange(self.connection, request=frame, expected=False),
                self._anomaly("cut", "the request is cut within its header", frame),
            ]
        self._bare = False
        exchange = self._exchange(frame)
        if not exchange.expected:
            return [exchange]
        return self._wait(exchange)

    def _exchange(self, frame: Frame) -> Exchange:
        _, key, version, correlation_id = _prefix(frame.raw)
        is_decoded = self.is_confirmed or self._is_decoded(frame)
        self._newest = correlation_id
        if not frame.whole:
            # This imports kproto.records.
            from wiredump.salvage import salvaged_request

            frame = salvaged_request(self._kafka, frame)
        client_id = request_client_id(frame.raw)
        connection = self.connection
        connection.protocol = "kafka"
        if client_id is not None:
            connection.client_id = client_id
        if key == _API_VERSIONS and version >= 3 and frame.whole:
            self._learn_software(frame)
        return Exchange(
            connection,
            request=frame,
            api_key=key,
            api_version=version,
            correlation_id=correlation_id,
            client_id=client_id,
            software=connection.software,
            dialect=self._dialect_of(frame, key),
            expected=key != _PRODUCE or produce_acks(frame.raw, version) != 0,
            is_decoded=is_decoded,
        )

    def _is_decoded(self, frame: Frame) -> bool:
        """Whether a request is consistent with Kafka. At the beginning of a connection, a header
        with a client id is conclusive. Some clients leave bytes behind a message, and versions may
        be newer than the schemas: that counts against Kafka only if the first frame was guessed."""
        from_start = self.connection.from_start
        found = True if from_start and request_client_id(frame.raw) else self.is_request(frame.raw)
        self.is_confirmed = found is True
        is_decoded = from_start if found is None else found
        self.is_doubtful |= not is_decoded
        return is_decoded

    def _dialect_of(self, frame: Frame, key: int) -> str:
        if not isinstance(self._codec, AutoDialect):
            return self._codec.name
        if key in self._shared and frame.whole:
            try:
                return self._codec.identify_request(frame.raw)[0].name
            except KprotoError:
                pass
        return "kafka"

    def _learn_software(self, frame: Frame) -> None:
        software = software_of(self._kafka, frame.raw)
        if software is not None and software != self.connection.software:
            self._open.make_all()  # with the software that was known then
            self.connection.software = software

    def _wait(self, exchange: Exchange) -> list[Item]:
        """Keep a request until its response comes, or return both if the response came first."""
        assert exchange.request is not None
        early = self._early.pop(exchange.correlation_id, None)
        if early is not None:
            return self._answer(exchange, early)
        self._open.push(exchange)
        given_up: list[Item] = []
        while len(self._open) > MOST_OPEN or (
            self._open.size > MOST_OPEN_BYTES and len(self._open) > 1
        ):
            given_up += self._give_up("too many requests wait before it")
        return given_up

    def _give_up(self, why: str) -> list[Item]:
        exchange = self._open.take_oldest()
        assert exchange.request is not None
        return [exchange, self._anomaly("unanswered", why, exchange.request)]

    # -- responses ---------------------------------------------------------------------------

    def response(self, frame: Frame) -> list[Item]:
        """Take a frame from the broker."""
        if self._tokens:
            if not self._is_awaited(frame):
                answered = self._tokens.popleft()
                answered.response = _as_token(frame)
                return [answered]
            # The last token of GSSAPI has no response.
            unanswered: list[Item] = [*self._tokens]
            self._tokens.clear()
            return unanswered + self.response(frame)
        if len(frame.raw) < 2 * SIZE_LENGTH:
            return [
                Exchange(self.connection, response=frame),
                self._anomaly("cut", "the response is cut within its header", frame),
            ]
        (correlation_id,) = _correlation_id(frame.raw, SIZE_LENGTH)
        self._answered = correlation_id
        found = self._open.take(correlation_id)
        if found is None:
            return self._keep_early(correlation_id, frame)
        exchange, in_order = found
        exchange.in_order = in_order
        return self._answer(exchange, frame)

    def _is_awaited(self, frame: Frame) -> bool:
        return (
            not self._bare
            and len(frame.raw) >= 2 * SIZE_LENGTH
            and _correlation_id(frame.raw, SIZE_LENGTH)[0] in self._open
        )

    def _answer(self, exchange: Exchange, frame: Frame) -> list[Item]:
        exchange.response_version = version = response_version(exchange, frame.raw)
        if not frame.whole:
            from wiredump.salvage import salvaged_response

            codec = codec_of(exchange, self._codec)
            frame = salvaged_response(codec, frame, exchange.api_key, version)
        exchange.response = frame
        if exchange.api_key == _SASL_HANDSHAKE and exchange.api_version == 0:
            self.bare_tokens = True
            self._bare = frame.raw[8:10] == b"\0\0"
        return [exchange]

    def _keep_early(self, correlation_id: int, frame: Frame) -> list[Item]:
        before = self._early.pop(correlation_id, None)
        self._early[correlation_id] = frame
        if before is None and len(self._early) > MOST_EARLY:
            _, before = self._early.popitem(last=False)
        return self._unmatched(before) if before is not None else []

    def _unmatched(self, frame: Frame) -> list[Item]:
        (correlation_id,) = _correlation_id(frame.raw, SIZE_LENGTH)
        return [
            Exchange(self.connection, response=frame, correlation_id=correlation_id),
            self._anomaly("unmatched", "no request with its correlation id was seen", frame),
        ]

    def expect_tokens(self) -> None:
        """The connection begins with SASL tokens, without SaslHandshake (KIP-43)."""
        self.bare_tokens = self._bare = True

    # -- SASL, and the end -------------------------------------------------------------------

    def _token(self, frame: Frame) -> list[Item]:
        token = Exchange(
            self.connection,
            request=_as_token(frame),
            api_key=_SASL_AUTHENTICATE,
            client_id=self.connection.client_id,
            software=self.connection.software,
        )
        self._tokens.append(token)
        return []

    def end(self, why: str) -> list[Item]:
        """Return all requests without a response, oldest first, with the reason ``why``."""
        items: list[Item] = []
        while self._open:
            items += self._give_up(why)
        while self._tokens:
            items.append(self._tokens.popleft())
        while self._early:
            items += self._unmatched(self._early.popitem(last=False)[1])
        return items

    def _anomaly(self, kind: str, reason: str, frame: Frame) -> Anomaly:
        return Anomaly(
            kind, reason, frame.place, frame.first_ns, self.connection, frame.direction,
            frame.offset,
        )  # fmt: skip


def software_of(codec: Dialect, raw: bytes) -> ClientSoftware | None:
    """Return the client software that an ApiVersions request names."""
    try:
        _, body = codec.decode_request(raw)
    except KprotoError:
        return None
    name = getattr(body, "client_software_name", "")
    return ClientSoftware(name, getattr(body, "client_software_version", "")) if name else None


def decodes(decode: Callable[[bytes], Any], raw: bytes) -> bool | None:
    """Whether a frame decodes; of a cut frame, whether its captured part can be the beginning of
    one that does. None if the version is unknown, or if bytes follow the message: brokers do not
    look behind the end of a message, and some clients leave bytes there."""
    missing = SIZE_LENGTH + _size(raw)[0] - len(raw)
    try:
        # The missing bytes may be anything, but their number matters: counts are checked against
        # it.
        decode(raw + bytes(missing) if missing > 0 else raw)
    except UnsupportedVersionError:
        return None
    except DecodeError as error:
        if error.problem.startswith(_TRAILING):
            return None
        return missing > 0 and error.offset >= len(raw)
    except KprotoError:
        return False
    return True


def response_version(exchange: Exchange, raw: bytes) -> int:
    """Return the response's version: ApiVersions with error 35 has version 0, whatever the
    request's."""
    refused = exchange.api_key == _API_VERSIONS and raw[8:10] == _UNSUPPORTED_VERSION
    return 0 if refused else exchange.api_version


def _is_token(frame: Frame) -> bool:
    """Whether a frame is not a request, as far as it was captured."""
    fits = every_request().fits(frame.raw, 0, len(frame.raw))
    return fits is not True if frame.whole else fits is False


def _as_token(frame: Frame) -> Frame:
    return msgspec.structs.replace(frame, sasl=True)


@cache
def shared_keys(codec: Dialect) -> frozenset[int]:
    """Return the API keys that drafts share with the released protocol, whose frames ``auto`` must
    decode."""
    if not isinstance(codec, AutoDialect):
        return frozenset()
    return dialect("kip-455-new").own_requests | dialect("kip-240").own_requests
