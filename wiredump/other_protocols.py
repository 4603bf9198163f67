"""Name other protocols than Kafka by the first bytes of a connection. A name is given only to bytes
that no frame of Kafka begins with, and it decides nothing but what a connection is called."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from wiredump.tls.handshake import CLIENT_HELLO, SERVER_HELLO, server_hello

__all__ = ["is_tls", "other_protocol", "tls_details"]

_TLS: Final = range(0x14, 0x18)
_TLS_HEADER: Final = 5
_HANDSHAKE: Final = 22
_VERSIONS: Final = {0x300: "SSL 3.0", 0x301: "TLS 1.0", 0x302: "TLS 1.1", 0x303: "TLS 1.2",
                    0x304: "TLS 1.3"}  # fmt: skip
_SERVER_NAME: Final = 0

_SIGNATURES: Final = tuple(
    (name, re.compile(pattern, re.DOTALL))
    for name, pattern in (
        ("nats", rb"INFO \{|CONNECT \{"),
        ("sip", rb"[A-Z]+ sips?:|SIP/2\.0 "),
        ("rtsp", rb"[A-Z_]+ rtsps?://|RTSP/[12]\.0 "),
        ("stomp", rb"(?:CONNECT|STOMP|CONNECTED)\r?\n"),
        ("http", rb"(?:GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|TRACE|CONNECT) [!-~]"),
        # What a proxy answers to CONNECT precedes another protocol.
        ("http", rb"HTTP/1\.[01] (?!200 [^\r\n]*[Ee]stablished\r\n)"),
        ("http2", rb"PRI \* HTTP/2\.0\r\n"),
        ("ssh", rb"SSH-[12]\."),
        ("amqp", rb"AMQP[\x00-\x03]"),
        ("redis", rb"\*[1-9][0-9]{0,5}\r\n\$[0-9]"),
        ("redis", rb"(?:PING|INFO|QUIT)\r\n"),
        ("ftp", rb"220[ -][^\r\n]*FTP"),
        ("imap", rb"\* (?:OK|PREAUTH)[ \[]"),
        ("pop3", rb"\+OK [^\r\n]+\r\n"),
        ("smtp", rb"220[ -][^\r\n]*\r\n|(?:EHLO|HELO) "),
        ("memcached", rb"(?:get|gets|set|add|stats|version) ?[^\x00-\x1f]*\r\n"),
        ("mqtt", rb"\x10[\x0a-\x7f]\x00(?:\x04MQTT|\x06MQIsdp)"),
        ("postgresql", rb"\x00\x00..\x00\x03\x00[\x00-\x02](?:user|database|application_name)\x00"),
        ("postgresql", rb"\x00\x00\x00\x08\x04\xd2\x16[\x2e\x2f\x30]"),
        ("zookeeper", rb"(?:ruok|stat|srvr|mntr|conf)\Z"),
        ("zookeeper", rb"\x00\x00\x00[\x2c\x2d]\x00{4}.{8}(?:.{12}\x00\x00\x00\x10|.{,15}\Z)"),
        # Not what a SOCKS 5 server answers to a password.
        ("cassandra", rb"(?!\x05\x02\x01\x00\x05)[\x03-\x05][\x00-\x1f]..[\x01\x05]\x00\x00"),
        ("mongodb", rb"..\x00\x00.{4}\x00\x00\x00\x00(?:\xd4\x07|\xdd\x07|\xdc\x07)\x00\x00"),
        ("mysql", rb"..[\x00\x01]\x00\x0a[0-9]+\.[0-9]+\.[^\x00]*\x00"),
        ("tds", rb"\x12\x01\x00.\x00\x00.\x00\x00"),
        ("oracle", rb"[\x00-\x07].\x00\x00\x01.\x00\x00\x01[\x2c-\x3f]"),
        ("elasticsearch", rb"ES\x00...."),
        ("hazelcast", rb"(?:CP2|CP3|HZC)[\x00-\x7f]"),
        ("opcua", rb"(?:HEL|ACK|OPN)F..\x00\x00"),
        ("ldap", rb"\x30[\x05-\x7f]\x02\x01.[\x60-\x78]"),
        ("bgp", rb"\xff{16}\x00"),
        ("git", rb"[0-9a-f]{4}git-(?:upload|receive)-(?:pack|archive) "),
        ("rsync", rb"@RSYNCD: "),
        ("vnc", rb"RFB 00[34]\."),
        ("telnet", rb"\xff[\xfb-\xfe][\x00-\x3f](?:\xff|\Z)"),
        ("x11", rb"l\x00\x0b\x00\x00\x00|B\x00\x00\x0b\x00\x00"),
        ("rtmp", rb"\x03.{4}\x00{4}.{1400}"),
        ("bittorrent", rb"\x13BitTorrent protocol"),
        ("rdp", rb"\x03\x00..[\x02-\x7f]\xe0"),
        ("smb", rb"\x00\x00..[\xfe\xff]SMB"),
    )
)  # fmt: skip
"""In the order in which they are tried."""


def other_protocol(client: bytes, server: bytes) -> str | None:
    """Return the name of the protocol; None if these bytes show none."""
    for head in (client, server):
        for name, pattern in _SIGNATURES:
            if pattern.match(head):
                return name
    return None


def is_tls(head: bytes | bytearray) -> bool:
    """Whether the bytes begin with a handshake, alert or data record of TLS 1.0 to 1.3."""
    return len(head) >= _TLS_HEADER and head[0] in _TLS and head[1] == 3 and head[2] <= 4


class TlsDetails(NamedTuple):
    """``version`` is that which the ends agreed on, else the newest that the client offers;
    ``server_name`` is the client's (SNI). Both are empty if the bytes do not show them."""

    version: str = ""
    server_name: str = ""


def tls_details(client: bytes, server: bytes) -> TlsDetails:
    """Return what the first bytes of the two directions show of a connection's TLS."""
    version, name = 0, ""
    for body in _messages(client, CLIENT_HELLO):
        version, name = _client_hello(body)
    for body in _messages(server, SERVER_HELLO):
        hello = server_hello(body)
        version = hello.version if hello is not None else version
    return TlsDetails(_VERSIONS.get(version, ""), name)


def _messages(head: bytes, wanted: int) -> Iterator[bytes]:
    """Yield the first message if it is the wanted one, as far as it is there."""
    if is_tls(head) and head[0] == _HANDSHAKE and head[5:6] == bytes((wanted,)):
        yield head[_TLS_HEADER + 4 : _TLS_HEADER + 4 + int.from_bytes(head[6:9])]


def _client_hello(body: bytes) -> tuple[int, str]:
    version, name = int.from_bytes(body[:2]), ""
    at = 35 + int.from_bytes(body[34:35])
    at += 2 + int.from_bytes(body[at : at + 2])
    at += 1 + int.from_bytes(body[at : at + 1]) + 2
    while len(body) - at >= 4:
        kind, length = int.from_bytes(body[at : at + 2]), int.from_bytes(body[at + 2 : at + 4])
        content = body[at + 4 : at + 4 + length]
        if kind == _SERVER_NAME and len(content) == length > 5:
            name = content[5:].decode("ascii", "replace")
        elif kind == 43:
            offered = [int.from_bytes(content[i : i + 2]) for i in range(1, len(content), 2)]
            version = max((each for each in offered if each in _VERSIONS), default=version)
        at += 4 + length
    return version, name
