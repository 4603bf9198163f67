"""Any bytes as a field of type ``records``: batches of magic 0, 1 and 2, compressed or not.

**Holds:** the C extension and Python decode the same records, or reject the same batch with the
same error, as records and as columns. With ``allow_partial``, the batches before a truncated one
are those decoded without it, and ``incomplete`` accounts for the rest. The records of a batch of
magic 2 are built into a batch that decodes to equal records, unless offsets are negative, since -1
means the next offset to a builder. Reading batch after batch reserves at most 1000 bytes per byte
of input, 64 for each of the 65,536 that one batch may expand to (``max_decompressed``), and 256
KiB.

Half of the inputs get correct checksums first, since no mutation produces one by itself.

**Accepted:** DecodeError from decoding. EncodeError from building, if the records are further apart
than a batch allows.

The input: flags (1 byte: checksums, partial, whether to verify checksums), then the bytes.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from fuzz import bounds
from fuzz.mutations import Mutate, telling
from kproto import extension
from kproto.errors import DecodeError, EncodeError
from kproto.native import _engine
from kproto.records import Compression, Record, RecordBatches, build_batch
from kproto.records.columns import COLUMNS, read_columns
from kproto.records.compression import available, compress
from tests.records.mutations import PLAIN, batch_of, record_of, with_right_checksums, wrapper

__all__ = ["check", "mutate", "seeds"]

LIMIT: Final = 64 * 1024
A_BYTE: Final = 1000
A_BYTE_MADE: Final = 64
"""A record has at least 7 bytes, and its Python object some 150."""
BESIDES: Final = 256 * 1024

RIGHT, PARTIAL, UNCHECKED = 1, 2, 4


def check(data: bytes) -> None:
    flags, stream = (data[0], data[1:]) if data else (0, b"")
    if flags & RIGHT:
        stream = with_right_checksums(stream)
    options = {
        "check_crc": not flags & UNCHECKED,
        "allow_partial": bool(flags & PARTIAL),
        "max_decompressed": LIMIT,
    }
    with_c = _read(_engine, stream, options)
    in_python = _read(None, stream, options)
    assert repr(with_c) == repr(in_python), (with_c, in_python)
    assert _columns(_engine, stream, options) == _columns(None, stream, options)
    for module in (_engine, None):
        bounds.allocating(
            partial(_pass_over, module, stream, options),
            stream,
            a_byte=A_BYTE,
            besides=BESIDES + A_BYTE_MADE * LIMIT,
        )
    _cut(stream, options)
    for batch in in_python[0]:
        _built_again(batch)


def _read(module: Any, data: bytes, options: dict[str, Any]) -> Any:
    """Return the batches that can be decoded, and the error of the next."""
    before = extension.use(module)
    found = []
    try:
        for batch in RecordBatches(data, **options):
            found.append((batch.magic, batch.records(), batch.next_offset, batch.compression))
    except DecodeError as error:
        assert 0 <= error.offset <= len(data)
        return found, (error.problem, error.offset, error.path)
    finally:
        extension.use(before)
    return found, None


def _pass_over(module: Any, data: bytes, options: dict[str, Any]) -> None:
    """Decode batch after batch without keeping any."""
    before = extension.use(module)
    try:
        for batch in RecordBatches(data, **options):
            batch.records()
    except DecodeError:
        pass
    finally:
        extension.use(before)


def _columns(module: Any, data: bytes, options: dict[str, Any]) -> Any:
    before = extension.use(module)
    try:
        table = read_columns([data, data], COLUMNS, errors="collect", **options)
        return repr(table.to_pydict()), [str(error) for error in table.errors]
    finally:
        extension.use(before)


def _cut(data: bytes, options: dict[str, Any]) -> None:
    batches = RecordBatches(data, **{**options, "allow_partial": True})
    try:
        ends = [batch.offset + batch.size for batch in batches]
    except DecodeError:
        return
    incomplete = batches.incomplete
    end = ends[-1] if ends else 0
    if incomplete is None:
        assert end == len(data)
    else:
        assert (incomplete.offset, incomplete.available) == (end, len(data) - end)


def _built_again(batch: Any) -> None:
    magic, records, _, codec = batch
    if magic != 2 or not records or min(record.offset for record in records) < 0:
        return
    try:
        data = build_batch(records, compression=codec)
    except EncodeError:
        return
    assert repr(list(next(iter(RecordBatches(data))))) == repr(records)


def seeds() -> Iterator[bytes]:
    """Yield a batch of each magic and codec, wrappers, damage with a correct checksum, and a
    bomb."""
    records = [
        Record(5, 1_700_000_000_000, b"key", b"value", (("trace", b"1"), ("none", None))),
        Record(6, 1_700_000_000_001, None, b"x" * 40),
        Record(9, -1, b"", None),
    ]
    plain = build_batch(records)
    yield b"\x01" + plain
    yield b"\x03" + plain + plain[:30]
    yield b"\x01" + batch_of(record_of(PLAIN) * 3, count=3)
    yield b"\x01" + batch_of(record_of(PLAIN), attributes=0x38)
    old = [Record(5, -1, b"key", b"value"), Record(6, -1, None, b"x" * 40)]
    yield b"\x00" + b"".join(build_batch([each], magic=1) for each in old)
    for codec in Compression:
        if not available(codec):
            continue
        yield b"\x01" + build_batch(records, compression=codec)
        if codec is not Compression.NONE:
            yield b"\x01" + build_batch([Record(value=bytes(100_000))], compression=codec)
        for magic in (0, 1):
            if codec in (Compression.GZIP, Compression.SNAPPY, Compression.LZ4):
                inner = build_batch(old[:1], magic=magic)
                yield b"\x01" + wrapper(inner, magic=magic, offset=5, attributes=int(codec))


def mutate(data: bytes, max_size: int, rng: random.Random, plainly: Mutate) -> bytes:
    """Change a header field, or the compressed content."""
    flags, stream = data[:1] or b"\x01", data[1:]
    if rng.random() < 0.3 or len(stream) < 70:
        return flags + telling(stream, rng)
    if rng.random() < 0.5:
        body = stream[61:]
        codec = Compression(rng.randrange(5))
        body = plainly(body, max_size) if rng.random() < 0.5 else telling(body, rng)
        if rng.random() < 0.5 and available(codec):
            body = compress(codec, body)
        head = bytearray(stream[:61])
        struct.pack_into(">i", head, 8, 49 + len(body))
        struct.pack_into(">h", head, 21, codec | (0x38 & rng.randrange(64)))
        return flags + bytes(head) + body
    at = rng.choice((8, 16, 21, 23, 27, 35, 43, 51, 53, 57))
    return flags + stream[:at] + rng.randbytes(rng.choice((1, 2, 4))) + stream[at + 2 :]
