"""Any bytes as a capture: pcap, pcapng, either compressed by gzip or zstd, or none of these.

**Holds:** reading never raises, and accounts for every byte: of the file's packets, of TCP payload,
and of Kafka frames (``Account.check``). The fast path in C gives exactly the items, connections and
sums of pure Python, whatever the size of reads, and so does input that arrives in pieces of another
size. With connections that share memory (``Limits``) the account is as exact. At most 3 MiB and
3000 bytes per byte of input are reserved, with compressed bytes counted as the PIECES of a megabyte
in which they are read.

**Accepted:** nothing.

The input: flags (1 byte: size of reads, compression, whether connections share memory), then the
file.
"""

from __future__ import annotations

import gzip
import io
import random
import struct
from collections.abc import Iterator
from functools import partial
from typing import Final

from fuzz import bounds, instruments
from fuzz.mutations import Mutate, telling
from tests.wiredump.quickly import read_in_python, read_quickly
from tests.wiredump.short_connections import capture_of, short_connections
from tests.wiredump.spark.made_up import capture
from wiredump import native
from wiredump.readers import Capture, Limits, Streams
from wiredump.readers.compressed import _zstd_library
from wiredump.sources.captures import CaptureItems

__all__ = ["check", "mutate", "seeds"]

A_BYTE: Final = 3000
BESIDES: Final = 3 << 20
SIZES: Final = (1 << 20, 1, 7, 100, 1000, 4096)
COMPARED: Final = 4
"""While fuzzing, one file in so many is also read by Python, or by C at all."""
PACKED: Final = 0x40
SHARED: Final = 0x80

if native.built() is None:
    raise ImportError("wiredump.native._quick is not built: make engine")


def check(data: bytes) -> None:
    flags, file = (data[0], data[1:]) if data else (0, b"")
    size = SIZES[flags % len(SIZES)]
    if flags & PACKED:
        file = gzip.compress(file, 1, mtime=0) if flags & 8 else _zstd_library().compress(file)
    fast = read_quickly(file, size)
    if instruments.is_in_c() and not bounds.is_due(file, COMPARED):
        return
    slow = read_in_python(file)
    if bounds.is_due(file, COMPARED):
        assert read_in_python(file, size) == slow
    assert fast._replace(slowly=0) == slow._replace(slowly=0), (fast, slow)
    if flags & SHARED:
        _read_shared(file)
    for read in (read_in_python, read_quickly):
        bounds.allocating(partial(read, file), file, a_byte=A_BYTE, besides=BESIDES)


def _read_shared(file: bytes) -> None:
    """Read with little memory shared by all connections, like `wiredump show`."""
    items = CaptureItems()
    streams = Streams(Limits(flow_bytes=600, total_bytes=2000))
    for event in streams.read(Capture(io.BytesIO(file))):
        items.feed(event)
    items.settle()
    streams.account.check()
    items.account.check()


def seeds() -> Iterator[bytes]:
    """Yield synthetic traffic in every container, complete and truncated, plain and compressed."""
    for seed in range(24):
        for kind in ("pcap", "pcapng"):
            file = capture(
                seed, connections=1 + seed % 3, exchanges=2, share=0.1 * (seed % 4), kind=kind,
                odd=0.1 * (seed % 3),
            )  # fmt: skip
            if len(file) < 12_000:
                yield bytes((seed * 11 % 256,)) + file
        rng = random.Random(seed)
        yield bytes((seed * 11 % 256,)) + capture_of(short_connections(rng, 4, 0.3), rng)
    yield b"\x00" + gzip.compress(capture(1, exchanges=2, connections=1), mtime=0)
    yield b"\x00" + _zstd_library().compress(capture(2, exchanges=2, connections=1))


def mutate(data: bytes, max_size: int, rng: random.Random, plainly: Mutate) -> bytes:
    """Lose, duplicate, delay or truncate packets of a pcap, or change their payload."""
    flags, file = data[:1] or b"\x00", data[1:]
    packets = _packets(file)
    if len(packets) < 2 or rng.random() < 0.2:
        return (bytes((rng.randrange(256),)) if rng.random() < 0.3 else flags) + telling(file, rng)
    at, to = rng.randrange(len(packets)), rng.randrange(len(packets))
    match rng.randrange(6):
        case 0:
            del packets[at]
        case 1:
            packets.insert(to, packets[at])
        case 2:
            packets.insert(to, packets.pop(at))
        case 3:
            packets[at] = _made_of(packets[at], packets[at][16 : -rng.randrange(1, 40)])
        case 4:
            packets[at] = _made_of(packets[at], plainly(packets[at][16:], 1600))
        case _:
            changed = bytearray(packets[at])
            for _ in range(rng.choice((1, 2))):  # addresses, sequence numbers, flags, first payload
                changed[rng.randrange(16, min(len(changed), 100))] = rng.randrange(256)
            packets[at] = bytes(changed)
    return flags + file[:24] + b"".join(packets)


def _packets(file: bytes) -> list[bytes]:
    """Return the records of a little-endian pcap with headers; none for any other file."""
    if file[:4] not in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"):
        return []
    found, at = [], 24
    while at + 16 < len(file):
        size = struct.unpack_from("<I", file, at + 8)[0]
        found.append(file[at : at + 16 + size])
        at += 16 + size
    return [each for each in found if len(each) > 40]


def _made_of(record: bytes, data: bytes) -> bytes:
    return record[:8] + struct.pack("<II", len(data), max(len(data), len(record) - 16)) + data
