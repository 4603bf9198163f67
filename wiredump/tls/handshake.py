"""Read the messages of a TLS handshake as far as decryption needs them (RFC 5246, RFC 8446): the
randoms, the agreed parameters, and changes of keys. Nothing else is verified."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = [
    "CLIENT_HELLO", "FINISHED", "KEY_UPDATE", "SERVER_HELLO", "Messages", "ServerHello",
    "client_random", "server_hello",
]  # fmt: skip

CLIENT_HELLO: Final = 1
SERVER_HELLO: Final = 2
FINISHED: Final = 20
KEY_UPDATE: Final = 24

_NEEDED: Final = frozenset({CLIENT_HELLO, SERVER_HELLO, FINISHED, KEY_UPDATE})
_LARGEST: Final = 1 << 17
"""The largest message to read: a ClientHello with every known extension is far smaller."""

_SUPPORTED_VERSIONS: Final = 43
_RETRY: Final = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The random of a ServerHello that requests another ClientHello (RFC 8446, 4.1.3)."""


class Messages:
    """Takes the contents of handshake records, and returns (type, body) of each message that
    matters.

    Messages may share a record, or span several. Of other messages only the length is read.
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._skip = 0

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        skipped = min(self._skip, len(data))
        self._skip -= skipped
        self._held += data[skipped:]
        while len(self._held) >= 4:
            kind, length = self._held[0], int.from_bytes(self._held[1:4])
            if kind not in _NEEDED or length > _LARGEST:
                skipped = min(4 + length, len(self._held))
                self._skip = 4 + length - skipped
                del self._held[:skipped]
                continue
            if len(self._held) < 4 + length:
                return
            body = bytes(self._held[4 : 4 + length])
            del self._held[: 4 + length]
            yield kind, body

    def clear(self) -> None:
        """Start anew after missing bytes."""
        self._held.clear()
        self._skip = 0


class ServerHello(NamedTuple):
    """``version`` is 0x0304 for TLS 1.3."""

    version: int
    random: bytes
    suite: int


def client_random(body: bytes) -> bytes | None:
    """Return the random of a ClientHello; None if it is too short."""
    return body[2:34] if len(body) >= 34 else None


def server_hello(body: bytes) -> ServerHello | None:
    """Parse a ServerHello; None if it is invalid, or if it only requests another ClientHello."""
    if len(body) < 38:
        return None
    version, random = int.from_bytes(body[:2]), body[2:34]
    at = 35 + body[34]
    if random == _RETRY or len(body) < at + 3:
        return None
    suite = int.from_bytes(body[at : at + 2])
    at += 5  # behind the method and the length of all extensions
    while len(body) - at >= 4:
        kind, length = int.from_bytes(body[at : at + 2]), int.from_bytes(body[at + 2 : at + 4])
        if kind == _SUPPORTED_VERSIONS and length == 2:
            version = int.from_bytes(body[at + 4 : at + 6])
        at += 4 + length
    return ServerHello(version, random, suite)
