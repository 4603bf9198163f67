"""The beginning of a request, as far as a proxy needs it to pass the rest on. No I/O."""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from kproto.dialects import Dialect
from kproto.errors import DecodeError, KprotoError
from kproto.framing import SIZE_LENGTH
from kproto.messages.request_header import RequestHeader
from mockbroker.proxy.frame_runs import frame_runs
from mockbroker.proxy.frame_stream import frame_end

__all__ = ["HeadReader", "RequestHead"]

_PREFIX: Final = Struct(">ihhi")
"""Size, API key, API version, correlation id."""

_MOST: Final = 128 * 1024
"""Longer beginnings are not waited for: client id and transactional id have int16 sizes."""
_MOST_REMEMBERED: Final = 512
_MOST_HEADS: Final = 64
_PRODUCE: Final = 0
_TRANSACTIONAL_ID_SINCE: Final = 3
_FLEXIBLE_SINCE: Final = 9
_read_int16: Final = Struct(">h").unpack_from


class RequestHead(NamedTuple):
    """``client_id`` is None also for an API whose header is unknown."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    expects_response: bool


class HeadReader:
    """Reads the heads of one connection's requests.

    A client sends the same few heads over and over, apart from their correlation ids, so each is
    decoded once and compared afterwards.
    """

    __slots__ = ("_alike", "_codec", "_seen")

    def __init__(self, codec: Dialect) -> None:
        self._codec = codec
        self._alike = frame_runs().requests_alike
        self._seen: dict[bytes, tuple[bytes, RequestHead]] = {}
        """By API key and version: the bytes behind the correlation id, and the head."""

    def read(self, data: bytes, at: int) -> RequestHead | None:
        """Return the head of the request at this offset; None if more bytes are needed.

        Only Produce with acks=0 expects no response. Raises DecodeError for a frame too short for a
        header. What the codec cannot read is left to the upstream.
        """
        seen = self._seen.get(data[at + 4 : at + 8])
        if seen is not None and data.startswith(seen[0], at + _PREFIX.size):
            size, api_key, version, correlation_id = _PREFIX.unpack_from(data, at)
            if size >= _PREFIX.size - SIZE_LENGTH + len(seen[0]):
                _, _, _, client_id, expects = seen[1]
                return RequestHead(api_key, version, correlation_id, client_id, expects)
        return self._decode(data, at)

    def run(self, data: bytes, at: int, max_size: int, most: int) -> tuple[list[int], int]:
        """Return the correlation ids of the request at this offset, whose head has been read, and
        of those behind it that have the same head, up to ``most``; and the offset behind the last
        of their frames.
        """
        seen = self._seen.get(data[at + 4 : at + 8])
        if seen is not None and data.startswith(seen[0], at + _PREFIX.size):
            rest = len(seen[0])
            size = frame_end(data, at) - at
            if size >= _PREFIX.size + rest:
                start = 0
                if len(data) - at > most * size:  # not to look through the same bytes in each turn
                    start, data, at = at, data[at : at + most * size], 0
                ids, end = self._alike(data, at, rest, max_size)
                if len(ids) > most:
                    ids, end = ids[:most], at
                    for _ in ids:
                        end = frame_end(data, end)
                return ids, start + end
        _, _, _, correlation_id = _PREFIX.unpack_from(data, at)
        return [correlation_id], frame_end(data, at)

    def _decode(self, data: bytes, at: int) -> RequestHead | None:
        if len(data) - at < _PREFIX.size:
            if len(data) - at >= SIZE_LENGTH:
                _check(int.from_bytes(data[at : at + SIZE_LENGTH], "big", signed=True))
            return None
        size, api_key, version, correlation_id = _PREFIX.unpack_from(data, at)
        _check(size)
        received = min(len(data) - at, SIZE_LENGTH + size)
        whole = received == SIZE_LENGTH + size or received > _MOST
        api = self._codec.apis.get(api_key)
        if api is None or version not in api.valid_versions:
            return RequestHead(api_key, version, correlation_id, None, expects_response=True)
        try:
            header_version = api.request_header_version(version)
            header, end = RequestHeader.decode_from(data, header_version, at + SIZE_LENGTH)
            expects = True
            if api_key == _PRODUCE:
                acks, end = _acks(data, end, version)
                expects = acks != 0
        except (KprotoError, IndexError):
            if not whole:
                return None
            return RequestHead(api_key, version, correlation_id, None, expects_response=True)
        head = RequestHead(api_key, version, correlation_id, header.client_id, expects)
        self._remember(data[at + 4 : at + 8], data[at + _PREFIX.size : end], head)
        return head

    def _remember(self, key: bytes, rest: bytes, head: RequestHead) -> None:
        if len(rest) <= _MOST_REMEMBERED:
            if len(self._seen) >= _MOST_HEADS:
                self._seen.clear()
            self._seen[key] = rest, head


def _check(size: int) -> None:
    if size < _PREFIX.size - SIZE_LENGTH:
        problem = f"a request of {size} bytes has no complete header"
        raise DecodeError(problem, offset=SIZE_LENGTH, path="header")


def _acks(data: bytes, at: int, version: int) -> tuple[int, int]:
    """Return the acks of a Produce body, and the offset behind them. Raises IndexError."""
    if version >= _FLEXIBLE_SINCE:
        length, at = _unsigned_varint(data, at)
        at += max(length - 1, 0)
    elif version >= _TRANSACTIONAL_ID_SINCE:
        at += 2 + max(_int16(data, at), 0)
    return _int16(data, at), at + 2


def _int16(data: bytes, at: int) -> int:
    if at + 2 > len(data):
        raise IndexError(at)
    (found,) = _read_int16(data, at)
    return int(found)


def _unsigned_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 28:
            raise IndexError(at)
