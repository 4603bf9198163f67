"""The first bytes of conversations in other protocols, written by hand: (end, bytes), end 0 being
the client."""

from __future__ import annotations

from struct import pack
from typing import Final

__all__ = ["OTHERS"]


def _sized(body: bytes) -> bytes:
    return pack(">I", len(body)) + body


def _openflow(kind: int, number: int, body: bytes = b"") -> bytes:
    return pack(">BBHI", 4, kind, 8 + len(body), number) + body


def _smpp(command: int, number: int, body: bytes = b"") -> bytes:
    return pack(">IIII", 16 + len(body), command, 0, number) + body


def _hello(name: bytes) -> bytes:
    entry = b"\0" + pack(">H", len(name)) + name
    server_name = pack(">H", len(entry)) + entry
    extensions = pack(">HH", 0, len(server_name)) + server_name + pack(">HHB", 43, 3, 2) + b"\3\4"
    body = b"\3\3" + bytes(32) + b"\0" + b"\0\2\x13\1" + b"\1\0"
    body += pack(">H", len(extensions)) + extensions
    message = b"\1" + pack(">I", len(body))[1:] + body
    return b"\x16\3\1" + pack(">H", len(message)) + message


_SETTINGS: Final = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))

OTHERS: Final[dict[str, tuple[str, list[tuple[int, bytes]]]]] = {
    "http": ("http", [(0, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"),
                      (1, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")]),
    "http2": ("http2", [(0, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _SETTINGS), (1, _SETTINGS)]),
    "tls": ("tls", [(0, _hello(b"broker.example"))]),
    "ssh": ("ssh", [(0, b"SSH-2.0-client\r\n"), (1, b"SSH-2.0-server\r\n")]),
    "amqp": ("amqp", [(0, b"AMQP\0\0\x09\x01"), (1, b"\1\0\0\0\0\0\4\0\x0a\0\x0a\xce")]),
    "redis": ("redis", [(0, b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n"), (1, b"$-1\r\n")]),
    "smtp": ("smtp", [(1, b"220 mail ESMTP\r\n"), (0, b"EHLO a\r\n")]),
    "nats": ("nats", [(1, b'INFO {"port":4222}\r\n'), (0, b"CONNECT {}\r\nPING\r\n")]),
    "memcached": ("memcached", [(0, b"get a\r\n"), (1, b"END\r\n")]),
    "mqtt": ("mqtt", [(0, b"\x10\x0f\0\4MQTT\4\2\0\x3c\0\3abc"), (1, b"\x20\2\0\0")]),
    "postgresql": ("postgresql", [
        (0, pack(">II", 17, 196_608) + b"user\0me\0\0"),
        (1, b"R\0\0\0\x08\0\0\0\0Z\0\0\0\5I"), (0, b"Q\0\0\0\x0dSELECT 1\0")]),
    "postgresql, TLS": ("postgresql", [(0, pack(">II", 8, 80_877_103)), (1, b"N")]),
    "zookeeper": ("zookeeper", [
        (0, _sized(bytes(4) + bytes(8) + pack(">i", 30_000) + bytes(8) + pack(">i", 16) + bytes(16)
                   + b"\0")),
        (1, _sized(bytes(4) + pack(">i", 30_000) + bytes(8) + pack(">i", 16) + bytes(16) + b"\0")),
        (0, _sized(pack(">ii", -2, 11))), (1, _sized(pack(">iqi", -2, 5, 0)))]),
    "cassandra": ("cassandra", [(0, b"\4\0\0\0\5\0\0\0\0"), (1, b"\x84\0\0\0\6\0\0\0\2\0\0")]),
    "mongodb": ("mongodb", [(0, pack("<iiii", 0x3A, 1, 0, 2013) + bytes(42))]),
    "bittorrent": ("bittorrent", [(0, b"\x13BitTorrent protocol" + bytes(48))]),
    "smb": ("smb", [(0, _sized(b"\xfeSMB" + bytes(60)))]),
    "rdp": ("rdp", [(0, b"\3\0\0\x13\x0e\xe0\0\0\0\0\0\1\0\x08\0\3\0\0\0")]),
    "openflow": ("unknown", [(0, _openflow(0, 1)), (1, _openflow(0, 2)), (1, _openflow(5, 3)),
                             (0, _openflow(6, 3, bytes(24)))]),
    "smpp": ("unknown", [
        (0, _smpp(9, 1, b"system\0password\0\0\x34\0\0\0")),
        (1, _smpp(0x8000_0009, 1, b"system\0")),
        *((0, _smpp(4, number, bytes(40))) for number in range(2, 8))]),
    "raft": ("unknown", [(0, b"\0" + b"\x87\xa4Term\x05\xa6Leader\xc4\x0e10.0.0.1:8300"),
                         (1, b"\x84\xa4Term\x05\xa7LastLog\x07")]),
    "thrift": ("unknown", [
        (number % 2, _sized(b"\x80\1\0\1\0\0\0\4ping" + pack(">i", number) + b"\0"))
        for number in range(8)]),
    "dns": ("unknown", [
        (0, pack(">HHHHHHH", 29, 7, 256, 1, 0, 0, 0) + b"\3www\7example\0\0\1\0\1")]),
    "mysql": ("unknown", [
        (1, b"\x4a\0\0\0\x0a8.0.36\0" + bytes(66)), (0, b"\x20\0\0\1" + bytes(32))]),
    "ldap": ("unknown", [(0, b"\x30\x0c\2\1\1\x60\7\2\1\3\4\0\x80\0"),
                         (1, b"\x30\x0c\2\1\1\x61\7\x0a\1\0\4\0\4\0")]),
    "sized messages": ("unknown", [(number % 2, _sized(bytes((0, number, 0, 1)) + bytes(20)))
                                   for number in range(20)]),
    "zeros": ("unknown", [(number % 2, bytes(200)) for number in range(20)]),
}  # fmt: skip
"""Name -> the protocol's name in ``connections``, and what is said."""
