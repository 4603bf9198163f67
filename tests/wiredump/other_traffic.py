"""Conversations in other protocols, written by hand with random content: (end, bytes), end 0 being
the client. Each is a greeting and some rounds of what follows it."""

from __future__ import annotations

import random
from collections.abc import Callable
from struct import pack
from typing import Final, TypeAlias

__all__ = ["OTHERS", "Spoken", "spoken"]

Spoken: TypeAlias = list[tuple[int, bytes]]
_Protocol: TypeAlias = Callable[[random.Random], Spoken]

OTHERS: Final[dict[str, tuple[str, _Protocol]]] = {}
"""Name -> the protocol's name in ``connections``, and what draws a conversation."""

_WORDS: Final = ("alpha", "orders", "queue", "user", "select", "payment", "name", "de", "x1")


def spoken(name: str, seed: object) -> Spoken:
    """Return the conversation of a seed."""
    return OTHERS[name][1](random.Random(f"{seed} {name}"))


def _as(name: str) -> Callable[[_Protocol], _Protocol]:
    """Add a protocol, whose name is the function's, as what ``connections`` calls ``name``."""

    def add(draw: _Protocol) -> _Protocol:
        OTHERS[draw.__name__.replace("_", " ").strip()] = name, draw
        return draw

    return add


def _sized(body: bytes) -> bytes:
    return pack(">I", len(body)) + body


def _word(rng: random.Random) -> bytes:
    return rng.choice(_WORDS).encode()


def _blob(rng: random.Random, most: int = 300) -> bytes:
    return rng.randbytes(rng.randrange(most))


def _rounds(rng: random.Random) -> range:
    return range(rng.randint(1, 12))


def _lines(rng: random.Random, *pairs: tuple[bytes, bytes]) -> Spoken:
    """Return lines of a client, each with its answer, some times."""
    found: Spoken = []
    for _ in _rounds(rng):
        for ask, answer in pairs:
            found += [(0, ask % _word(rng) if b"%s" in ask else ask), (1, answer)]
    return found


# ---- lines ----------------------------------------------------------------------------------


@_as("http")
def http(rng: random.Random) -> Spoken:
    found: Spoken = []
    for _ in _rounds(rng):
        body = _blob(rng)
        found += [
            (
                0,
                b"%s /%s HTTP/1.1\r\nHost: a\r\n\r\n"
                % (rng.choice((b"GET", b"PUT", b"POST", b"HEAD")), _word(rng)),
            ),
            (
                1,
                b"HTTP/1.1 %d OK\r\nContent-Length: %d\r\n\r\n"
                % (rng.choice((200, 404)), len(body))
                + body,
            ),
        ]
    return found


@_as("ssh")
def ssh(rng: random.Random) -> Spoken:
    greeting: Spoken = [(0, b"SSH-2.0-client\r\n"), (1, b"SSH-2.0-server\r\n")]
    return greeting + [
        (each % 2, _sized(b"\x08\x14" + rng.randbytes(200))) for each in _rounds(rng)
    ]


@_as("redis")
def redis(rng: random.Random) -> Spoken:
    found: Spoken = []
    for _ in _rounds(rng):
        word = _word(rng)
        found += [
            (0, b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(word), word)),
            (1, rng.choice((b"$-1\r\n", b"+OK\r\n", b":12\r\n"))),
        ]
    return found


@_as("smtp")
def smtp(rng: random.Random) -> Spoken:
    return [
        (1, b"220 mail ESMTP\r\n"),
        *_lines(
            rng, (b"EHLO %s\r\n", b"250 mail\r\n"), (b"MAIL FROM:<%s@a>\r\n", b"250 2.1.0 Ok\r\n")
        ),
        (0, b"DATA\r\n"),
        (1, b"354 go\r\n"),
        (0, b"\r\n".join(_word(rng) for _ in range(40))),
    ]


@_as("ftp")
def ftp(rng: random.Random) -> Spoken:
    return [
        (1, b"220 %s FTP server ready\r\n" % _word(rng)),
        *_lines(rng, (b"USER %s\r\n", b"331 Password\r\n"), (b"PASV\r\n", b"227 (1,2)\r\n")),
    ]


@_as("pop3")
def pop3(rng: random.Random) -> Spoken:
    return [
        (1, b"+OK POP3 ready\r\n"),
        *_lines(rng, (b"USER %s\r\n", b"+OK\r\n"), (b"RETR 1\r\n", b"+OK\r\nmail\r\n.\r\n")),
    ]


@_as("imap")
def imap(rng: random.Random) -> Spoken:
    return [
        (1, b"* OK IMAP4rev1 ready\r\n"),
        *_lines(rng, (b"a1 LOGIN %s x\r\n", b"a1 OK done\r\n"), (b"a2 IDLE\r\n", b"+ idling\r\n")),
    ]


@_as("nats")
def nats(rng: random.Random) -> Spoken:
    return [
        (1, b'INFO {"port":4222}\r\n'),
        (0, b"CONNECT {}\r\nPING\r\n"),
        (1, b"PONG\r\n"),
        *_lines(rng, (b"PUB %s 2\r\nok\r\n", b"+OK\r\n")),
    ]


@_as("memcached")
def memcached(rng: random.Random) -> Spoken:
    return _lines(rng, (b"get %s\r\n", b"END\r\n"), (b"set %s 0 0 2\r\nok\r\n", b"STORED\r\n"))


@_as("stomp")
def stomp(rng: random.Random) -> Spoken:
    return [
        (0, b"CONNECT\naccept-version:1.2\nhost:a\n\n\0"),
        (1, b"CONNECTED\nversion:1.2\n\n\0"),
        *_lines(rng, (b"SEND\ndestination:/%s\n\nhi\0", b"RECEIPT\nreceipt-id:1\n\n\0")),
    ]


@_as("sip")
def sip(rng: random.Random) -> Spoken:
    return _lines(rng, (b"OPTIONS sip:%s@a SIP/2.0\r\nVia: x\r\n\r\n", b"SIP/2.0 200 OK\r\n\r\n"))


@_as("rtsp")
def rtsp(rng: random.Random) -> Spoken:
    return _lines(
        rng, (b"DESCRIBE rtsp://a/%s RTSP/1.0\r\nCSeq: 2\r\n\r\n", b"RTSP/1.0 200 OK\r\n\r\n")
    )


@_as("git")
def git(rng: random.Random) -> Spoken:
    asked = b"git-upload-pack /%s\0host=a\0" % _word(rng)
    found: Spoken = [(0, b"%04x" % (4 + len(asked)) + asked)]
    for _ in _rounds(rng):
        found += [
            (1, b"003f%040x refs/heads/master\n" % rng.getrandbits(160)),
            (0, b"0032want %040x\n" % rng.getrandbits(160)),
        ]
    return [*found, (1, b"0000PACK" + _blob(rng))]


@_as("rsync")
def rsync(rng: random.Random) -> Spoken:
    return [
        (1, b"@RSYNCD: 31.0\n"),
        (0, b"@RSYNCD: 31.0\n"),
        (0, _word(rng) + b"\n"),
        (1, b"@RSYNCD: OK\n"),
        *((each % 2, pack("<I", 7 << 24 | 40) + rng.randbytes(40)) for each in _rounds(rng)),
    ]


@_as("vnc")
def vnc(rng: random.Random) -> Spoken:
    return [
        (1, b"RFB 003.008\n"),
        (0, b"RFB 003.008\n"),
        (1, b"\1\1"),
        (0, b"\1"),
        (1, bytes(4)),
        (0, b"\1"),
        (1, pack(">HH", 800, 600) + bytes(16) + _sized(_word(rng))),
        *((0, b"\3\1" + pack(">HHHH", 0, 0, 800, 600)) for _ in _rounds(rng)),
        (1, b"\0\0\0\1" + rng.randbytes(500)),
    ]


@_as("telnet")
def telnet(rng: random.Random) -> Spoken:
    return [
        (1, b"\xff\xfd\x18\xff\xfd\x20"),
        (0, b"\xff\xfb\x18\xff\xfc\x20"),
        (1, b"login: "),
        *_lines(rng, (b"%s\r\n", b"$ ")),
    ]


@_as("unknown")
def irc(rng: random.Random) -> Spoken:
    return [
        (0, b"NICK %s\r\nUSER a 0 * :a\r\n" % _word(rng)),
        (1, b":srv 001 a :Welcome\r\n"),
        *_lines(rng, (b"PRIVMSG #%s :hi\r\n", b"PING :srv\r\n")),
    ]


@_as("unknown")
def syslog(rng: random.Random) -> Spoken:
    return [
        (0, b"<%d>1 2026-01-01T00:00:00Z h %s - - - text\n" % (rng.randrange(190), _word(rng)))
        for _ in _rounds(rng)
    ]


@_as("unknown")
def graphite(rng: random.Random) -> Spoken:
    return [
        (0, b"servers.%s.load %d 1767225600\n" % (_word(rng), rng.randrange(99)))
        for _ in _rounds(rng)
    ]


@_as("unknown")
def finger(rng: random.Random) -> Spoken:
    return [(0, _word(rng) + b"\r\n"), (1, b"Login: a\r\n" * rng.randint(1, 9))]


@_as("unknown")
def fix(rng: random.Random) -> Spoken:
    return [
        (each % 2, b"8=FIX.4.4\x019=65\x0135=%d\x0134=%d\x0110=062\x01" % (each % 9, each))
        for each in _rounds(rng)
    ]


@_as("unknown")
def nothing_but_text(rng: random.Random) -> Spoken:
    return [
        (rng.randrange(2), b" ".join(_word(rng) for _ in range(rng.randint(1, 60))) + b"\n")
        for _ in _rounds(rng)
    ]


# ---- binary, by a magic number ---------------------------------------------------------------


_SETTINGS: Final = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))


def _http2(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return pack(">I", len(body))[1:] + bytes((kind, flags)) + pack(">I", stream) + body


@_as("http2")
def http2(rng: random.Random) -> Spoken:
    found: Spoken = [(0, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _SETTINGS), (1, _SETTINGS)]
    for each in _rounds(rng):
        body = b"\0" + _sized(_blob(rng))  # a message of gRPC
        found += [
            (0, _http2(1, 4, 2 * each + 1, rng.randbytes(30))),
            (0, _http2(0, 1, 2 * each + 1, body)),
            (1, _http2(0, 0, 2 * each + 1, body)),
        ]
    return found


def _hello(name: bytes) -> bytes:
    entry = b"\0" + pack(">H", len(name)) + name
    server_name = pack(">H", len(entry)) + entry
    extensions = pack(">HH", 0, len(server_name)) + server_name + pack(">HHB", 43, 3, 2) + b"\3\4"
    body = b"\3\3" + bytes(32) + b"\0" + b"\0\2\x13\1" + b"\1\0"
    body += pack(">H", len(extensions)) + extensions
    message = b"\1" + pack(">I", len(body))[1:] + body
    return b"\x16\3\1" + pack(">H", len(message)) + message


@_as("tls")
def tls(rng: random.Random) -> Spoken:
    data = [rng.randbytes(rng.randint(20, 400)) for _ in _rounds(rng)]
    return [
        (0, _hello(b"broker.example")),
        *((each % 2, b"\x17\3\3" + pack(">H", len(raw)) + raw) for each, raw in enumerate(data)),
    ]


@_as("amqp")
def amqp(rng: random.Random) -> Spoken:
    def frame(body: bytes) -> bytes:
        return pack(">BHI", 1, 0, len(body)) + body + b"\xce"

    start = pack(">HH", 10, 10) + _blob(rng)
    return [
        (0, b"AMQP\0\0\x09\x01"),
        (1, frame(start)),
        *((each % 2, frame(pack(">HH", 60, 40) + _blob(rng))) for each in _rounds(rng)),
    ]


@_as("mqtt")
def mqtt(rng: random.Random) -> Spoken:
    name = _word(rng)
    found: Spoken = [
        (
            0,
            b"\x10"
            + bytes((12 + len(name),))
            + b"\0\4MQTT\4\2\0\x3c"
            + pack(">H", len(name))
            + name,
        ),
        (1, b"\x20\2\0\0"),
    ]
    for _ in _rounds(rng):
        body = pack(">H", 3) + b"a/b" + pack(">H", rng.randrange(1 << 16)) + _blob(rng, 90)
        found += [(0, b"\x32" + bytes((len(body),)) + body), (1, b"\x40\2" + rng.randbytes(2))]
    return found


@_as("bittorrent")
def bittorrent(rng: random.Random) -> Spoken:
    hello = b"\x13BitTorrent protocol" + bytes(8) + rng.randbytes(40)
    return [
        (0, hello),
        (1, hello),
        (0, _sized(b"\5" + rng.randbytes(9))),
        (1, _sized(b"\1")),
        *((0, _sized(b"\6" + pack(">III", each, 0, 16384))) for each in _rounds(rng)),
        *((1, _sized(b"\7" + pack(">II", each, 0) + _blob(rng))) for each in _rounds(rng)),
    ]


@_as("rdp")
def rdp(rng: random.Random) -> Spoken:
    return [
        (0, b"\3\0\0\x13\x0e\xe0\0\0\0\0\0\1\0\x08\0\3\0\0\0"),
        (1, b"\3\0\0\x13\x0e\xd0\0\0\x12\x34\0\2\0\x08\0\2\0\0\0"),
        *((each % 2, b"\3\0\0\x20\2\xf0\x80" + rng.randbytes(25)) for each in _rounds(rng)),
    ]


@_as("smb")
def smb(rng: random.Random) -> Spoken:
    return [
        (
            each % 2,
            _sized(
                rng.choice((b"\xfeSMB", b"\xffSMB"))
                + pack("<HHIHH", 64, 0, 0, each, 1)
                + rng.randbytes(60)
            ),
        )
        for each in _rounds(rng)
    ]


@_as("rtmp")
def rtmp(rng: random.Random) -> Spoken:
    one, two = rng.randbytes(1528), rng.randbytes(1528)
    return [
        (0, b"\3" + bytes(8) + one),
        (1, b"\3" + bytes(8) + two + bytes(8) + one),
        (0, bytes(8) + two),
        *(
            (each % 2, b"\3\0\0\0\0\0\x19\x14\0\0\0\0\2\0\7connect" + rng.randbytes(20))
            for each in _rounds(rng)
        ),
    ]


@_as("bgp")
def bgp(rng: random.Random) -> Spoken:
    def message(kind: int, body: bytes = b"") -> bytes:
        return b"\xff" * 16 + pack(">HB", 19 + len(body), kind) + body

    hello = b"\4" + pack(">HH", rng.randrange(1, 1 << 16), 180) + rng.randbytes(4) + b"\0"
    return [
        (0, message(1, hello)),
        (1, message(1, hello)),
        *((each % 2, message(rng.choice((2, 4)), _blob(rng, 60))) for each in _rounds(rng)),
    ]


@_as("x11")
def x11(rng: random.Random) -> Spoken:
    return [
        (0, rng.choice((b"l\0\x0b\0\0\0\0\0\0\0\0\0", b"B\0\0\x0b\0\0\0\0\0\0\0\0"))),
        (1, b"\1\0\x0b\0\0\0\x60\0" + rng.randbytes(384)),
        *((each % 2, b"\x62\0\5\0" + rng.randbytes(16)) for each in _rounds(rng)),
    ]


@_as("opcua")
def opcua(rng: random.Random) -> Spoken:
    def message(kind: bytes, body: bytes) -> bytes:
        return kind + pack("<I", 8 + len(body)) + body

    return [
        (0, message(b"HELF", bytes(20) + pack("<I", 10) + b"opc.tcp://")),
        (1, message(b"ACKF", bytes(20))),
        *((each % 2, message(b"MSGF", _blob(rng))) for each in _rounds(rng)),
    ]


@_as("elasticsearch")
def elasticsearch(rng: random.Random) -> Spoken:
    found: Spoken = []
    for each in _rounds(rng):
        body = pack(">QBI", each, each % 2, 8_000_099) + _blob(rng)
        found.append((each % 2, b"ES" + _sized(body)))
    return found


@_as("hazelcast")
def hazelcast(rng: random.Random) -> Spoken:
    return [
        (0, b"CP2" + pack("<IHHI", 30, 3, 0x0100, 0) + rng.randbytes(18)),
        *(
            (1 - each % 2, pack("<IHII", 40, 0xC000, 0x0101, 0) + rng.randbytes(26))
            for each in _rounds(rng)
        ),
    ]


@_as("cassandra")
def cassandra(rng: random.Random) -> Spoken:
    found: Spoken = [(0, b"\4\0\0\0\5\0\0\0\0"), (1, b"\x84\0\0\0\6\0\0\0\2\0\0")]
    for each in _rounds(rng):
        body = _sized(b"SELECT " + _word(rng)) + b"\0\1\0"
        found += [
            (0, b"\4\0" + pack(">H", each) + b"\7" + _sized(body)),
            (1, b"\x84\0" + pack(">H", each) + b"\x08" + _sized(_blob(rng))),
        ]
    return found


@_as("mongodb")
def mongodb(rng: random.Random) -> Spoken:
    found: Spoken = []
    for each in _rounds(rng):
        body = bytes(5) + pack("<I", 40) + rng.randbytes(36)
        size = 16 + len(body)
        found += [
            (0, pack("<iiii", size, each + 1, 0, 2013) + body),
            (1, pack("<iiii", size, each + 9, each + 1, 2013) + body),
        ]
    return found


@_as("ldap")
def ldap(rng: random.Random) -> Spoken:
    found: Spoken = [
        (0, b"\x30\x0c\2\1\1\x60\7\2\1\3\4\0\x80\0"),
        (1, b"\x30\x0c\2\1\1\x61\7\x0a\1\0\4\0\4\0"),
    ]
    for each in _rounds(rng):
        word = _word(rng)
        body = b"\2\1" + bytes((each + 2,)) + b"\x63" + bytes((2 + len(word), 4, len(word))) + word
        found += [
            (0, b"\x30" + bytes((len(body),)) + body),
            (1, b"\x30\x0c\2\1" + bytes((each + 2,)) + b"\x65\7\x0a\1\0\4\0\4\0"),
        ]
    return found


@_as("mysql")
def mysql(rng: random.Random) -> Spoken:
    def packet(number: int, body: bytes) -> bytes:
        return pack("<I", len(body))[:3] + bytes((number,)) + body

    hello = b"\x0a8.0.%d\0" % rng.randrange(40) + rng.randbytes(8) + rng.randbytes(60)
    login = b"\x85\xa6\xff\1" + pack("<I", 1 << 24) + b"\x2d" + bytes(23) + _word(rng) + b"\0"
    found: Spoken = [(1, packet(0, hello)), (0, packet(1, login)), (1, packet(2, bytes(7)))]
    for _ in _rounds(rng):
        found += [
            (0, packet(0, b"\3SELECT " + _word(rng))),
            (1, packet(1, b"\1") + packet(2, _blob(rng))),
        ]
    return found


@_as("tds")
def tds(rng: random.Random) -> Spoken:
    def packet(kind: int, body: bytes) -> bytes:
        return pack(">BBHHBB", kind, 1, 8 + len(body), 0, 1, 0) + body

    hello = bytes((0, 0, 0x1A, 0, 6, 1, 0, 0x20, 0, 1, 0xFF)) + rng.randbytes(7)
    return [
        (0, packet(0x12, hello)),
        (1, packet(4, hello)),
        *((each % 2, packet((1, 4)[each % 2], _blob(rng))) for each in _rounds(rng)),
    ]


@_as("oracle")
def oracle_tns(rng: random.Random) -> Spoken:
    def packet(kind: int, body: bytes) -> bytes:
        return pack(">HHBBH", 8 + len(body), 0, kind, 0, 0) + body

    text = b"(DESCRIPTION=(CONNECT_DATA=(SERVICE_NAME=%s)))" % _word(rng)
    hello = pack(">HHHHHHHHHH", 318, 300, 0, 8192, 32767, 32600, 0, 1, len(text), 58)
    return [
        (0, packet(1, hello + bytes(30) + text)),
        (1, packet(2, hello + bytes(4))),
        *((each % 2, packet(6, b"\0\0" + _blob(rng))) for each in _rounds(rng)),
    ]


# ---- binary, by a size of four bytes or other numbers that look like Kafka's ------------------


@_as("postgresql")
def postgresql(rng: random.Random) -> Spoken:
    body = pack(">I", 196_608) + b"user\0%s\0database\0%s\0\0" % (_word(rng), _word(rng))
    found: Spoken = [(0, pack(">I", 4 + len(body)) + body), (1, b"R\0\0\0\x08\0\0\0\0Z\0\0\0\5I")]
    for _ in _rounds(rng):
        text = b"SELECT " + _word(rng) + b"\0"
        found += [
            (0, b"Q" + pack(">I", 4 + len(text)) + text),
            (1, b"D" + pack(">I", 204) + rng.randbytes(200) + b"Z\0\0\0\5I"),
        ]
    return found


@_as("postgresql")
def postgresql_tls(rng: random.Random) -> Spoken:
    return [(0, pack(">II", 8, 80_877_103)), (1, b"N"), *postgresql(rng)]


@_as("zookeeper")
def zookeeper(rng: random.Random) -> Spoken:
    timeout = pack(">i", rng.choice((6_000, 18_000, 30_000, 40_000)))
    seen = rng.choice((0, rng.getrandbits(40)))
    session, password = rng.choice((bytes(8), rng.randbytes(8))), _sized(rng.randbytes(16))
    end = rng.choice((b"", b"\0"))
    found: Spoken = [
        (0, _sized(bytes(4) + pack(">q", seen) + timeout + session + password + end)),
        (1, _sized(bytes(4) + timeout + rng.randbytes(8) + password + end)),
    ]
    for each in range(1, rng.randint(2, 14)):
        kind = rng.choice((11, 1, 2, 3, 4, 5, 8, 12, 14))
        if kind == 11:
            found += [(0, _sized(pack(">ii", -2, 11))), (1, _sized(pack(">iqi", -2, each, 0)))]
            continue
        path = b"/brokers/" + _word(rng)
        asked = pack(">ii", each, kind) + _sized(path) + _blob(rng, 40)
        found += [(0, _sized(asked)), (1, _sized(pack(">iqi", each, seen + each, 0) + _blob(rng)))]
    return found


@_as("unknown")
def thrift_framed(rng: random.Random) -> Spoken:
    found: Spoken = []
    for each in _rounds(rng):
        name = _word(rng)
        head = _sized(name) + pack(">i", each)
        found += [
            (0, _sized(b"\x80\1\0\1" + head + b"\x0b\0\1" + _sized(_word(rng)) + b"\0")),
            (1, _sized(b"\x80\1\0\2" + head + b"\x0b\0\0" + _sized(_blob(rng)) + b"\0")),
        ]
    return found


@_as("unknown")
def dns_over_tcp(rng: random.Random) -> Spoken:
    found: Spoken = []
    for _ in _rounds(rng):
        number = rng.randrange(1 << 16)
        name = b"\3www" + bytes((7,)) + b"example\0"
        asked = pack(">HHHHHH", number, 0x0100, 1, 0, 0, 0) + name + b"\0\1\0\1"
        answer = (
            pack(">HHHHHH", number, 0x8180, 1, 1, 0, 0) + name + b"\0\1\0\1" + rng.randbytes(16)
        )
        found += [(0, pack(">H", len(asked)) + asked), (1, pack(">H", len(answer)) + answer)]
    return found


@_as("unknown")
def diameter(rng: random.Random) -> Spoken:
    found: Spoken = []
    for each in _rounds(rng):
        for end in (0, 1):
            body = pack(">II", 264, 0x40000000 | 16) + rng.randbytes(8) + _blob(rng, 60)
            head = pack(">I", 1 << 24 | 20 + len(body)) + pack(">I", (0x80, 0)[end] << 24 | 280)
            found.append((end, head + pack(">III", 0, each, each) + body))
    return found


@_as("unknown")
def modbus(rng: random.Random) -> Spoken:
    found: Spoken = []
    for each in _rounds(rng):
        values = rng.randbytes(2 * rng.randint(1, 20))
        asked = b"\1\3" + pack(">HH", rng.randrange(99), len(values) // 2)
        answer = b"\1\3" + bytes((len(values),)) + values
        found += [
            (0, pack(">HHH", each, 0, len(asked)) + asked),
            (1, pack(">HHH", each, 0, len(answer)) + answer),
        ]
    return found


@_as("unknown")
def iec_104(rng: random.Random) -> Spoken:
    return [
        (0, b"\x68\4\7\0\0\0"),
        (1, b"\x68\4\x0b\0\0\0"),
        *((1, b"\x68\x0e" + pack("<HH", each * 2, 0) + rng.randbytes(10)) for each in _rounds(rng)),
    ]


@_as("unknown")
def openflow(rng: random.Random) -> Spoken:
    def message(kind: int, number: int, body: bytes = b"") -> bytes:
        return pack(">BBHI", 4, kind, 8 + len(body), number) + body

    return [
        (0, message(0, 1)),
        (1, message(0, 2)),
        (1, message(5, 3)),
        (0, message(6, 3, bytes(24))),
        *((each % 2, message(rng.choice((2, 10, 13)), each, _blob(rng))) for each in _rounds(rng)),
    ]


@_as("unknown")
def smpp(rng: random.Random) -> Spoken:
    def message(command: int, number: int, body: bytes = b"") -> bytes:
        return pack(">IIII", 16 + len(body), command, 0, number) + body

    found: Spoken = [
        (0, message(9, 1, b"system\0password\0\0\x34\0\0\0")),
        (1, message(0x8000_0009, 1, b"system\0")),
    ]
    for each in _rounds(rng):
        found += [
            (0, message(rng.choice((4, 21)), each + 2, rng.choice((bytes(40), _blob(rng))))),
            (1, message(0x8000_0004, each + 2, _word(rng) + b"\0")),
        ]
    return found


@_as("unknown")
def raft(rng: random.Random) -> Spoken:
    return [
        (
            each % 2,
            b"\0"
            + b"\x87\xa4Term"
            + rng.randbytes(1)
            + b"\xa6Leader\xc4\x0e10.0.0.1:8300"
            + rng.randbytes(each),
        )
        for each in _rounds(rng)
    ]


@_as("unknown")
def etcd_raft(rng: random.Random) -> Spoken:
    return [(each % 2, pack(">Q", 12) + b"\x08" + rng.randbytes(11)) for each in _rounds(rng)]


@_as("unknown")
def hadoop_rpc(rng: random.Random) -> Spoken:
    return [
        (0, b"hrpc\x09\0\0"),
        *(
            (each % 2, _sized(b"\x18\x08\2\x10\0\x18" + bytes((each,)) + _blob(rng)))
            for each in _rounds(rng)
        ),
    ]


@_as("unknown")
def pulsar(rng: random.Random) -> Spoken:
    """Sizes of four bytes, twice: of the frame, and of its command."""
    found: Spoken = []
    for each in _rounds(rng):
        command = b"\x08" + bytes((2 + each % 40,)) + b"\x12" + bytes((4,)) + rng.randbytes(4)
        found.append((each % 2, _sized(_sized(command) + rng.choice((b"", _blob(rng))))))
    return found


@_as("unknown")
def clickhouse(rng: random.Random) -> Spoken:
    return [
        (0, b"\0\x11ClickHouse client\x17\x08\xa2\xa9\3\0\7default\0"),
        (1, b"\0\x0aClickHouse\x17\x08\xa2\xa9\3"),
        *((each % 2, bytes((each % 5,)) + rng.randbytes(40)) for each in _rounds(rng)),
    ]


@_as("unknown")
def sized_messages(rng: random.Random) -> Spoken:
    """Numbers at which Kafka has API keys, versions and correlation ids."""
    key, version = rng.randrange(1, 93), rng.randrange(3)
    if rng.random() < 0.5:
        return [(each % 2, _sized(pack(">HHI", each, 1, 0) + bytes(20))) for each in range(20)]
    return [
        (each % 2, _sized(pack(">HHI", key, version, each) + rng.randbytes(rng.randint(12, 90))))
        for each in range(rng.randint(2, 24))
    ]


@_as("unknown")
def sized_json(rng: random.Random) -> Spoken:
    return [
        (each % 2, _sized(b'{"id":%d,"%s":true}' % (each, _word(rng)))) for each in _rounds(rng)
    ]


@_as("unknown")
def sized_noise(rng: random.Random) -> Spoken:
    return [(each % 2, _sized(rng.randbytes(rng.randint(8, 400)))) for each in _rounds(rng)]


@_as("unknown")
def zeros(rng: random.Random) -> Spoken:
    return [(each % 2, bytes(rng.randint(1, 1400))) for each in range(rng.randint(2, 24))]


@_as("unknown")
def noise(rng: random.Random) -> Spoken:
    return [(rng.randrange(2), rng.randbytes(rng.randint(8, 1400))) for _ in _rounds(rng)]
