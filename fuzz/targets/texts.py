"""Any text as the other inputs of ``wiredump``: journals, request logs, hexadecimal.

**Holds:** reading yields items to the end of the text. Hexadecimal and request logs never raise. A
journal raises DecodeError for an invalid line, whose path is ``line N``, after the entries before
it. Items belong to known connections. At most 3000 bytes per byte of input are reserved.

**Accepted:** DecodeError from ``read_journal`` only.

The input: which of the three (1 byte), then the text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fuzz import bounds
from fuzz.inputs import ROOT
from fuzz.mutations import Mutate, with_words
from kproto.errors import DecodeError
from kproto.journal import read_journal
from wiredump.model import Exchange
from wiredump.sources.hexadecimal import HexItems, is_hexadecimal
from wiredump.sources.journals import JournalItems
from wiredump.sources.request_logs import RequestLogItems

__all__ = ["check", "mutate", "seeds"]

A_BYTE: Final = 3000
BESIDES: Final = 256 * 1024

_WORDS: Final = (
    b"> ", b"< ", b"0x", b"00000000", b"0000:", b"00000010  ", b"#", b"|", b"\n", b"00 00 00 17",
    b"7fffffff", b"ffffffff", b'"direction":"event"', b'"event":"disconnected"', b'"raw":"AAAA"',
    b'"api_key":18', b'"timestamp_ns":-1', b'"sequence":', b"null", b"[" * 1500, b'"\\ud800"',
    b"\xff", b"Completed request:", b'"requestHeader":', b'"totalTimeMs":1e308',
    b"9999999999999999999", b"9999-99-99 99:99:99,999", b"0001-01-01 00:00:00,000", b"+99:99",
    b"-23:59", b'"connection":""', b'"response":""', b'"response":null', b'"connection_id":2',
    b'"broker_id":', b'"dialect":"auto"',
)  # fmt: skip


def check(data: bytes) -> None:
    kind = (data[0] if data else 0) % 3
    lines = data[1:].decode("utf-8", "surrogateescape").splitlines(keepends=True)
    bounds.allocating(lambda: _read(kind, lines), data, a_byte=A_BYTE, besides=BESIDES)


def _read(kind: int, lines: list[str]) -> None:
    if kind == 0:
        is_hexadecimal("".join(lines))
        hexadecimal = HexItems(None, capture=0, number=0)
        _known(hexadecimal, hexadecimal.read(lines))
    elif kind == 1:
        journal = JournalItems()
        try:
            _known(journal, journal.read(read_journal(lines)))
        except DecodeError as error:
            assert error.path.startswith("line "), error.path
    else:
        log = RequestLogItems()
        _known(log, log.read(lines))


def _known(reader: HexItems | JournalItems | RequestLogItems, items: Iterator[object]) -> None:
    for item in items:
        if isinstance(item, Exchange):
            connection = item.connection
            assert reader.connections[connection.number] is connection


def seeds() -> Iterator[bytes]:
    frame = "00000017001200000000002a000c636f6e736f6c652d74657374"
    yield b"\x00> " + frame.encode() + b"\n< 0000000a0000002a002300000000\n"
    yield b"\x00" + b"00000000: 0000 0017 0012 0000 0000 002a 000c 636f  .......*..co\n" * 2
    yield (
        b'\x01{"sequence":1,"timestamp_ns":1,"broker_id":1,"connection_id":1,"peer":"a:1",'
        b'"direction":"request","api_key":18,"api_version":0,"correlation_id":42,'
        b'"raw":"AAAAFwASAAAAAAAqAA1jb25zb2xlLXRlc3Q="}\n'
        b'{"sequence":2,"timestamp_ns":2,"broker_id":1,"connection_id":1,"peer":"a:1",'
        b'"direction":"event","event":"disconnected"}\n'
    )
    for name in ("kafka-3.9.2.log", "kafka-4.4.0.log"):
        for line in (
            Path(ROOT / "tests/captures/request_logs" / name).read_bytes().splitlines()[:40:8]
        ):
            if len(line) < 3000:
                yield b"\x02" + line + b"\n"


def mutate(data: bytes, max_size: int, rng: random.Random, plainly: Mutate) -> bytes:
    return data[:1] + with_words(data[1:], _WORDS, rng)
