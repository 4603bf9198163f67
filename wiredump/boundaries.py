"""Where a frame begins, told by bytes alone: for a capture that starts in the middle of a
connection, or has lost a piece of it.

A size says nothing about itself, so what follows has to agree with it: a request's header has a
known api key, a version that key has had, and a client id that is text and fits; a response has
the correlation id of a request still open. Either is believed only when the caller can decode all
of it; or, where the capture has cut it, when a packet begins with it.

What is found does not depend on how the bytes were chunked: candidates are judged from the first
byte on, and one that cannot be judged yet makes everybody wait.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from struct import Struct
from typing import Final, NamedTuple

from kproto.dialects import Dialect, dialect
from kproto.framing import DEFAULT_MAX_SIZE, SIZE_LENGTH

__all__ = [
    "REQUEST_PREFIX",
    "Found",
    "RequestShape",
    "Search",
    "Wait",
    "every_request",
    "find_request",
    "find_response",
]

REQUEST_PREFIX: Final = SIZE_LENGTH + 8
"""Bytes of a request up to its client id: size, api key, api version, correlation id."""

MOST_CLIENT_ID: Final = 1024
VERSIONS_TO_COME: Final = 3
"""How far above the newest known a version may be and still be taken for one: captures outlive
schemas."""

_prefix: Final = Struct(">ihhi").unpack_from
_int16: Final = Struct(">h").unpack_from
_int32: Final = Struct(">i").unpack_from


class Found(NamedTuple):
    """``at`` is the first byte of a frame, None where there is none yet. Everything in front of
    ``keep`` can be let go of: no frame begins there."""

    at: int | None
    keep: int


class RequestShape:
    """Which first bytes make a request, by the api keys and versions of some dialects."""

    def __init__(self, codecs: Iterable[Dialect]) -> None:
        self._newest: dict[int, int] = {}
        for codec in codecs:
            for key in codec.apis:
                newest = codec.apis[key].request.VALID_VERSIONS.highest
                self._newest[key] = max(newest, self._newest.get(key, 0))
        keys = b"".join(
            re.escape(bytes([high])) + b"[" + b"".join(_hex(low) for low in lows) + b"]|"
            for high, lows in _by_high_byte(self._newest).items()
        ).removesuffix(b"|")
        # A lookahead, so that candidates may overlap. Sizes: below 128 MiB.
        self._pattern = re.compile(
            b"(?=[\\x00-\\x07][\\x00-\\xff]{3}(?:" + keys + b")\\x00[\\x00-\\x1f])", re.DOTALL
        )

    def fits(self, data: bytes | bytearray, at: int, end: int) -> bool | None:
        """Whether a request begins at ``at``; None where that takes bytes beyond ``end``."""
        if end - at < REQUEST_PREFIX:
            return None
        size, key, version, _ = _prefix(data, at)
        newest = self._newest.get(key)
        if newest is None or not 0 <= version <= newest + VERSIONS_TO_COME:
            return False
        if not 8 <= size <= DEFAULT_MAX_SIZE:
            return False
        if key == _CONTROLLED_SHUTDOWN and version == 0:
            return bool(size == 12)  # the only request without a client id, and always this long
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

    def candidates(self, data: bytearray, start: int) -> Iterator[int]:
        """Places that a cheap look does not rule out."""
        # One search at a time: an iterator of matches would keep the bytearray from shrinking.
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
    """Every key and version that a release or a draft has."""
    return RequestShape(dialect(name) for name in ("kafka", "kip-240", "kip-860"))


class Search(NamedTuple):
    """What to look for frames in: ``held`` from ``start`` on.

    ``is_start`` says of a place whether a packet's bytes begin there. ``final``: nothing follows
    what is held (a gap does, or the end), so a frame that is not whole never will be; it is then
    believed only if a packet begins with it.
    """

    held: bytearray
    start: int
    final: bool
    is_start: Callable[[int], bool]

    def first(
        self, candidates: Iterable[tuple[int, int]], most: int, is_frame: Callable[[bytes], bool]
    ) -> int | None:
        """The first of ``candidates`` (places, with what the frames there would take) that is a
        frame. Raises Wait where the bytes at hand cannot tell. The last frame in front of a gap is
        the only one that may be cut, so whole ones go before it."""
        cut = None
        for at, size in candidates:
            if at + size <= len(self.held):
                if is_frame(bytes(self.held[at : at + size])):
                    return at
            elif self.final:
                cut = at if cut is None and self.is_start(at) else cut
            elif size <= most:
                raise Wait(at)
        return cut


class Wait(Exception):
    """It takes more bytes to tell whether a frame begins at this place."""

    def __init__(self, at: int) -> None:
        self.at = at


def find_request(search: Search, is_request: Callable[[bytes], bool], most: int) -> Found:
    """The first request whose frame ``is_request`` accepts; of more than ``most`` bytes it is not
    waited for."""
    return _found(search, _requests(search), most, is_request, REQUEST_PREFIX)


def _requests(search: Search) -> Iterator[tuple[int, int]]:
    held, end, shape = search.held, len(search.held), every_request()
    for at in shape.candidates(held, search.start):
        fits = shape.fits(held, at, end)
        if fits is None and not search.final:
            raise Wait(at)
        if fits:
            yield at, SIZE_LENGTH + _int32(held, at)[0]


def find_response(
    search: Search, open_ids: Iterable[int], is_response: Callable[[bytes], bool], most: int
) -> Found:
    """The first response whose correlation id is one of ``open_ids`` and whose frame, of at most
    ``most`` bytes, ``is_response`` accepts."""
    return _found(search, _responses(search, open_ids), most, is_response, 2 * SIZE_LENGTH)


def _responses(search: Search, open_ids: Iterable[int]) -> Iterator[tuple[int, int]]:
    held, first = search.held, search.start + SIZE_LENGTH
    for place in sorted({at for each in open_ids for at in _occurrences(held, each, first)}):
        (size,) = _int32(held, place - SIZE_LENGTH)
        if SIZE_LENGTH <= size <= DEFAULT_MAX_SIZE:
            yield place - SIZE_LENGTH, SIZE_LENGTH + size


def _found(
    search: Search,
    candidates: Iterable[tuple[int, int]],
    most: int,
    is_frame: Callable[[bytes], bool],
    least: int,
) -> Found:
    end = len(search.held)
    try:
        at = search.first(candidates, most, is_frame)
    except Wait as wait:
        return Found(None, wait.at)
    if at is not None:
        return Found(at, at)
    return Found(None, end if search.final else max(search.start, end - least + 1))


def _occurrences(data: bytes | bytearray, correlation_id: int, start: int) -> Iterable[int]:
    wanted = correlation_id.to_bytes(4, "big", signed=True)
    at = data.find(wanted, start)
    while at >= 0:
        yield at
        at = data.find(wanted, at + 1)
