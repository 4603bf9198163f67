"""Recognise the beginning of a frame from its bytes alone, for captures that start in the middle of
a connection or lack a part of it.

A request's header has a known API key, a version of that key, and a client id that is text and
fits. A response has the correlation id of a request that waits for one; at the beginning of a
packet, an id near those of known requests is enough, since it may answer a request that was not
captured. ``search`` decides what else it takes to accept a candidate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator
from functools import cache, lru_cache
from struct import Struct
from typing import Final, NamedTuple

from kproto.dialects import Dialect, dialect
from kproto.framing import DEFAULT_MAX_SIZE, SIZE_LENGTH
from wiredump.native import quick
from wiredump.open_requests import MOST_HALVES
from wiredump.search import Candidate, Search, Undecided

__all__ = [
    "NEAR", "REQUEST_PREFIX", "RESPONSE_PREFIX", "Expected", "RequestShape", "Requests",
    "Responses", "every_request", "id_distance",
]  # fmt: skip

REQUEST_PREFIX: Final = SIZE_LENGTH + 8
"""Bytes of a request before its client id: size, API key, API version, correlation id."""

RESPONSE_PREFIX: Final = SIZE_LENGTH + 4
"""Size and correlation id."""

NEAR: Final = 1000
"""The largest distance between two correlation ids of one connection, which clients count up. This
many requests may be missing between two that were captured."""

RESERVED: Final = 2**31 - 8
"""The Java client uses correlation ids from here on for SASL, apart from those that it counts."""

MOST_CLIENT_ID: Final = 1024
VERSIONS_TO_COME: Final = 3
"""How far a version may exceed the newest known one: captures may be newer than the schemas."""

_prefix: Final = Struct(">ihhi").unpack_from
_int16: Final = Struct(">h").unpack_from
_int32: Final = Struct(">i").unpack_from
_response: Final = Struct(">ii").unpack_from


class RequestShape:
    """Recognises the first bytes of a request, by the API keys and versions of some dialects."""

    def __init__(self, codecs: Iterable[Dialect]) -> None:
        self._newest: dict[int, int] = {}
        for codec in codecs:
            for key, versions in codec.request_versions().items():
                self._newest[key] = max(versions.highest, self._newest.get(key, 0))
        keys = b"".join(
            re.escape(bytes([high])) + b"[" + b"".join(_hex(low) for low in lows) + b"]|"
            for high, lows in _by_high_byte(self._newest).items()
        ).removesuffix(b"|")
        # A lookahead, so that candidates may overlap. Sizes are limited to 8 bytes up to 128 MiB:
        # otherwise every byte of a run of zeros would be a candidate.
        self._pattern = re.compile(
            b"(?!\\x00{3}[\\x00-\\x07])(?=[\\x00-\\x07][\\x00-\\xff]{3}(?:"
            + keys
            + b")\\x00[\\x00-\\x1f])",
            re.DOTALL,
        )
        known = sum(1 << key for key in self._newest)
        self._keys = known.to_bytes(1 << 13, "little")

    @property
    def newest(self) -> dict[int, int]:
        """The highest known version of each API key."""
        return self._newest

    def fits(self, data: bytes | bytearray, at: int, end: int) -> bool | None:
        """Whether a request begins at ``at``; None if that depends on bytes beyond ``end``."""
        if end - at < REQUEST_PREFIX:
            return None
        size, key, version, _ = _prefix(data, at)
        newest = self._newest.get(key)
        if newest is None or not 0 <= version <= newest + VERSIONS_TO_COME:
            return False
        if not 8 <= size <= DEFAULT_MAX_SIZE:
            return False
        if key == _CONTROLLED_SHUTDOWN and version == 0:
            return bool(size == 12)  # the only request without a client id, whose size never varies
        if size < 10:
            return False
        if end - at < REQUEST_PREFIX + 2:
            return None
        (length,) = _int16(data, at + REQUEST_PREFIX)
        if not -1 <= length <= min(MOST_CLIENT_ID, size - 10):
            return False
        first = at + REQUEST_PREFIX + 2
        if length > 0 and end < first + length:
            return None
        return length <= 0 or _is_text(bytes(data[first : first + length]))

    def has_api(self, head: bytes | bytearray) -> bool:
        """Whether the first bytes have an API key and a version, whatever the client id is."""
        if len(head) < REQUEST_PREFIX:
            return False
        _, key, version, _ = _prefix(head)
        newest = self._newest.get(key)
        return newest is not None and 0 <= version <= newest + VERSIONS_TO_COME

    def candidates(self, data: bytearray, start: int) -> Iterator[int]:
        """Yield the places that a quick look does not rule out."""
        # One search at a time: an iterator of matches would keep the bytearray from shrinking.
        if (module := quick()) is not None:
            while (start := module.find_request(data, start, self._keys)) >= 0:
                yield start
                start += 1
            return
        while (match := self._pattern.search(data, start)) is not None:
            yield match.start()
            start = match.start() + 1


_CONTROLLED_SHUTDOWN: Final = 7


def _by_high_byte(keys: Iterable[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for key in sorted(keys):
        found.setdefault(key >> 8, []).append(key & 0xFF)
    return found


def _hex(byte: int) -> bytes:
    return b"\\x%02x" % byte


def _is_text(raw: bytes) -> bool:
    try:
        return raw.decode().isprintable()
    except UnicodeDecodeError:
        return False


@cache
def every_request() -> RequestShape:
    """Return the shape with every key and version of all releases and drafts."""
    return RequestShape(dialect(name) for name in ("kafka", "kip-240", "kip-860"))


class Requests:
    """Frames that a client sends; ``decodes`` as in ``search.Frames``."""

    least = REQUEST_PREFIX

    def __init__(self, decodes: Callable[[bytes], bool | None]) -> None:
        self.decodes = decodes

    def candidates(self, search: Search) -> Iterator[Candidate]:
        held, end, shape = search.held, len(search.held), every_request()
        for at in shape.candidates(held, search.start):
            fits = shape.fits(held, at, end)
            if fits is None and not search.final:
                raise Undecided(at, 0)
            if fits:
                yield Candidate(at, SIZE_LENGTH + _int32(held, at)[0])

    def follows(self, search: Search, first: Candidate, at: int) -> bool | None:
        return every_request().fits(search.held, at, len(search.held))


class Expected(NamedTuple):
    """The correlation ids of a connection: those of requests without a response yet, their upper
    halves (as ``OpenRequests.halves``), and the newest of all requests and of all responses (None
    before the first)."""

    waiting: Container[int]
    high_halves: frozenset[int]
    newest: int | None
    answered: int | None


class Responses:
    """Frames with which a broker answers the requests in ``expected``."""

    least = RESPONSE_PREFIX

    def __init__(self, expected: Expected, decodes: Callable[[bytes], bool | None]) -> None:
        self.decodes = decodes
        self._expected = expected

    def candidates(self, search: Search) -> Iterator[Candidate]:
        held, last = search.held, len(search.held) - RESPONSE_PREFIX
        waiting = self._expected.waiting
        for at in self._places(search, last):
            size, correlation_id = _response(held, at)
            if not SIZE_LENGTH <= size <= DEFAULT_MAX_SIZE:
                continue
            if correlation_id in waiting:
                yield Candidate(at, SIZE_LENGTH + size)
            elif self._may_be_unseen(correlation_id) and search.is_start(at):
                chained = self._expected.newest is None
                yield Candidate(at, SIZE_LENGTH + size, known=False, chained=chained)

    def _places(self, search: Search, last: int) -> Iterator[int]:
        """Yield the places that a quick look does not rule out, and those where packets begin."""
        held, pattern = search.held, _awaited(self._expected.high_halves)
        starts = search.starts()
        start = next(starts, last + 1)
        at = search.start
        while at <= last:
            match = pattern.search(held, at) if pattern is not None else None
            place = min(match.start(), last + 1) if match is not None else last + 1
            while start < place:
                yield start
                start = next(starts, last + 1)
            if place <= last:
                yield place
            if start == place:
                start = next(starts, last + 1)
            at = place + 1

    def _may_be_unseen(self, correlation_id: int) -> bool:
        """Whether the id may belong to a request that was not captured. Brokers answer in order, so
        it must come after those of earlier responses."""
        newest, answered = self._expected.newest, self._expected.answered
        if correlation_id >= RESERVED:
            return True
        if (
            answered is not None
            and answered < RESERVED
            and id_distance(correlation_id, answered) <= 0
        ):
            return False
        return (
            newest is None or newest >= RESERVED or abs(id_distance(correlation_id, newest)) <= NEAR
        )

    def follows(self, search: Search, first: Candidate, at: int) -> bool | None:
        if len(search.held) - at < RESPONSE_PREFIX:
            return None
        size, correlation_id = _response(search.held, at)
        if not SIZE_LENGTH <= size <= DEFAULT_MAX_SIZE:
            return False
        _, before = _response(search.held, first.at)
        return (
            correlation_id in self._expected.waiting
            or 0 < id_distance(correlation_id, before) <= NEAR
        )


def id_distance(correlation_id: int, before: int) -> int:
    """Return the distance from one correlation id to another, which wrap."""
    return ((correlation_id - before + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


@lru_cache(maxsize=256)
def _awaited(high_halves: frozenset[int]) -> re.Pattern[bytes] | None:
    """Return a pattern for a size and one of these first halves of a correlation id, or None if
    there are none."""
    if not high_halves:
        return None
    ids = b"|".join(re.escape(half.to_bytes(2, "big")) for half in sorted(high_halves))
    if len(high_halves) > MOST_HALVES:
        ids = b""
    # No size below 4: runs of zeros would be candidates.
    return re.compile(
        b"(?!\\x00{3}[\\x00-\\x03])(?=[\\x00-\\x06][\\x00-\\xff]{3}(?:" + ids + b"))", re.DOTALL
    )
