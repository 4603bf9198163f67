"""Parse what precedes Kafka on a connection: PROXY headers (versions 1 and 2), HTTP CONNECT, and
SOCKS 4, 4a and 5. Does not know where the bytes come from."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple

__all__ = ["Prologue", "Undecided", "prologue"]


class Prologue(NamedTuple):
    """The sizes of what the client and the server sent. ``client`` is the end that a PROXY header
    names, ``broker`` the destination; both are ``host:port``, or empty if unknown."""

    client_size: int
    server_size: int
    client: str = ""
    broker: str = ""


class Undecided(Exception):
    """More bytes are needed."""


_PROXY_1: Final = b"PROXY "
_PROXY_2: Final = b"\r\n\r\n\0\r\nQUIT\n"
_CONNECT: Final = b"CONNECT "
_MOST_PROXY_1: Final = 107
"""The longest PROXY header of version 1, by its specification."""
_MOST_HTTP: Final = 1500
_GRANTED: Final = 0x5A
_USER_AND_PASSWORD: Final = 2
_NONE: Final = 0xFF


def prologue(client: bytes, server: bytes) -> Prologue | None:
    """Return the prologue at the beginning of the two directions; None if there is none. Raises
    Undecided."""
    for begins, parse in (
        (_PROXY_1, _proxy_1), (_PROXY_2, _proxy_2), (_CONNECT, _connect), (b"\4\1", _socks_4),
        (b"\5", _socks_5),
    ):  # fmt: skip
        if client.startswith(begins):
            return parse(client, server)
        if client and begins.startswith(client):
            raise Undecided
    return None


def _proxy_1(client: bytes, server: bytes) -> Prologue | None:
    end = client.find(b"\r\n", 0, _MOST_PROXY_1)
    if end < 0:
        if len(client) < _MOST_PROXY_1:
            raise Undecided
        return None
    match client[:end].decode("ascii", "replace").split(" "):
        case ["PROXY", "TCP4" | "TCP6", source, destination, source_port, destination_port]:
            ends = _joined(source, source_port), _joined(destination, destination_port)
            return Prologue(end + 2, 0, *ends)
        case ["PROXY", "UNKNOWN", *_]:
            return Prologue(end + 2, 0)
    return None


def _proxy_2(client: bytes, server: bytes) -> Prologue | None:
    fields = _Fields(client, 12)
    command, family = fields.byte(), fields.byte()
    rest = _Fields(fields.take(fields.number()))
    if command >> 4 != 2:
        return None
    size = {1: 4, 2: 16}.get(family >> 4)
    if command & 15 != 1 or size is None or len(rest.data) < 2 * size + 4:
        return Prologue(fields.at, 0)  # LOCAL, or addresses that are not of IP
    hosts = [rest.take(size) for _ in range(2)]
    client_end, broker_end = (_joined(_address(host), rest.number()) for host in hosts)
    return Prologue(fields.at, 0, client_end, broker_end)


def _connect(client: bytes, server: bytes) -> Prologue | None:
    end = _end_of_head(client)
    line = client[: client.find(b"\r\n")].split(b" ")
    if end is None or len(line) != 3:
        return None
    answered = 0
    if server or len(client) == end:
        if not (server.startswith(b"HTTP/1.") or b"HTTP/1.".startswith(server)):
            return None
        answered = _end_of_head(server) or 0
        if server[9:10] != b"2":
            return None
    return Prologue(end, answered, broker=line[1].decode("ascii", "replace"))


def _end_of_head(data: bytes) -> int | None:
    end = data.find(b"\r\n\r\n", 0, _MOST_HTTP)
    if end >= 0:
        return end + 4
    if len(data) < _MOST_HTTP:
        raise Undecided
    return None


def _socks_4(client: bytes, server: bytes) -> Prologue | None:
    fields = _Fields(client, 2)
    port, address = fields.number(), fields.take(4)
    fields.text()
    host = _address(address)
    if address[:3] == bytes(3) and address[3]:
        host = fields.text()
    reply = _Fields(server)
    hears = bool(server) or fields.is_over
    if hears and reply.take(8)[:2] != bytes((0, _GRANTED)):
        return None
    return Prologue(fields.at, reply.at, broker=_joined(host, port))


def _socks_5(client: bytes, server: bytes) -> Prologue | None:
    fields, reply = _Fields(client, 1), _Fields(server)
    methods = fields.take(fields.byte())
    if not methods or any(each not in (0, 1, 2) for each in methods):
        return None
    hears = bool(server) or fields.is_over
    login = _USER_AND_PASSWORD if client[fields.at : fields.at + 1] == b"\1" else 0
    method = _chosen(reply) if hears else login
    if method not in methods:
        return None
    if method == _USER_AND_PASSWORD:
        if fields.byte() != 1:
            return None
        fields.take(fields.byte())
        fields.take(fields.byte())
        if hears and reply.take(2)[1:] != b"\0":
            return None
    if fields.take(3) != b"\5\1\0":
        return None
    host, port = _destination(fields)
    if hears:
        if reply.take(3) != b"\5\0\0":
            return None
        _destination(reply)
    return Prologue(fields.at, reply.at, broker=_joined(host, port))


def _chosen(reply: _Fields) -> int:
    version, method = reply.take(2)
    return method if version == 5 else _NONE


def _destination(fields: _Fields) -> tuple[str, int]:
    kind = fields.byte()
    if kind == 3:
        host = fields.take(fields.byte()).decode("ascii", "replace")
    else:
        host = _address(fields.take(16 if kind == 4 else 4))
    return host, fields.number()


class _Fields:
    """Takes fields from the front of ``data``. Raises Undecided behind its end."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    @property
    def is_over(self) -> bool:
        return self.at == len(self.data)

    def take(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        if len(found) < size:
            raise Undecided
        self.at += size
        return found

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self) -> int:
        return int.from_bytes(self.take(2))

    def text(self) -> str:
        """Take text up to a zero."""
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise Undecided
        found = self.take(end - self.at).decode("ascii", "replace")
        self.at += 1
        return found


def _address(raw: bytes) -> str:
    return str(IPv4Address(raw) if len(raw) == 4 else IPv6Address(raw))


def _joined(host: str, port: object) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
