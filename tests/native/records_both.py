"""Records read and written by C and by Python, which have to agree; and values to try them with."""

import random
from typing import Any

from kproto import DecodeError, extension
from kproto.records import Record, RecordBatches, build_batch
from kproto.records.native import RecordCodec, record_codec
from kproto.records.record import read_in_python
from kproto.records.record_batch import HEADER_SIZE
from kproto.records.window import Window
from tests.support.shaken import WRONG_VALUES

__all__ = [
    "codec",
    "codec_type",
    "damage",
    "random_records",
    "same_batches",
    "same_reading",
    "same_writing",
    "section",
    "shake_records",
]

SIZES = (0, 1, 2, 63, 64, 100, 300, 8191, 8192, 20_000)
GAPS = (1, 1, 1, 2, 62, 63, 64, 8191, 8192, 1 << 20, 1 << 27, 1 << 28)
STEPS = (0, 0, 1, -1, 63, -64, 64, 8192, -9000, 1 << 21, 1 << 28, 1 << 35, 1 << 42, 1 << 62)
KEYS = ("", "k", "trace", "trace-id", "\u00e9", "\u20ac" * 30, "\U0001f600", "nul\0", "x" * 200)
LONGS = (0, 1, -1, 7, 1 << 40, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, -(1 << 63), -(1 << 62))
TELLING = (0, 1, 2, 3, 12, 14, 0x7F, 0x80, 0x81, 0xC3, 0xFE, 0xFF)


class Bytes(bytes):
    """Bytes that are not exactly that."""


class SubRecord(Record, frozen=True, gc=False):
    """A record that is not exactly one."""


def codec() -> RecordCodec:
    found = record_codec()
    assert found is not None
    return found


def codec_type() -> Any:
    """The class in C: its module is not there to import where it was not built."""
    return type(codec())


def _payload(rng: random.Random) -> bytes | None:
    return None if rng.random() < 0.2 else rng.randbytes(rng.choice(SIZES[: rng.randint(3, 10)]))


def random_records(rng: random.Random, most: int = 12) -> list[Record]:
    """As a producer could send, with numbers of every width."""
    found: list[Record] = []
    offset = rng.choice((0, 5, 1 << 33, 1 << 62))
    timestamp = rng.choice((-1, 0, 1_700_000_000_000, 1 << 62))
    for _ in range(rng.randint(1, most)):
        count = rng.choice((0, 0, 0, 1, 2, 6, 70))
        headers = tuple((rng.choice(KEYS), _payload(rng)) for _ in range(count))
        key = _payload(rng)
        found.append(Record(offset, timestamp, key, _payload(rng), headers))
        offset += rng.choice(GAPS)
        if offset - found[0].offset >= 1 << 31:
            break  # further than a batch reaches
        timestamp = min(max(timestamp + rng.choice(STEPS), -1), (1 << 63) - 1)
    return found


def shake_records(records: list[Record], rng: random.Random) -> list[Any]:
    """A copy with a value somewhere that is wrong, or merely unusual."""
    out: list[Any] = list(records)
    at = rng.randrange(len(out))
    old = out[at]
    fields = {name: getattr(old, name) for name in Record.__struct_fields__}
    kind = rng.randrange(6)
    if kind == 0:
        out[at] = rng.choice((None, 5, tuple(fields.values()), object(), SubRecord(**fields)))
        return out
    name = rng.choice(tuple(fields))
    if kind == 1:
        fields["headers"] = rng.choice(
            (list(old.headers), [list(pair) for pair in old.headers], None, iter(()), {"ab": 1},
             [("k", Bytes(b"v"))], (("k",),), (("k", b"", b""),), ("kv",), ((None, b""),))
        )  # fmt: skip
    elif kind == 2:
        fields[rng.choice(("key", "value"))] = rng.choice((Bytes(b"sub"), bytearray(b"x"), "text"))
    elif kind == 3 and old.headers:
        fields["headers"] = (*old.headers[:-1], (rng.choice((*KEYS, *WRONG_VALUES)), b"v"))
    elif kind == 4 and old.headers:
        fields["headers"] = (*old.headers[:-1], ("k", rng.choice(WRONG_VALUES)))
    elif kind == 5 and name in ("offset", "timestamp"):
        fields[name] = rng.choice((*LONGS, old.offset - 1, old.offset - 5))
    else:
        fields[name] = rng.choice(WRONG_VALUES)
    out[at] = Record(**fields)
    return out


def damage(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(changed) + 1)
        byte = rng.choice((*TELLING, rng.randrange(256)))
        kind = rng.randrange(5)
        if kind == 0:
            del changed[at:]
        elif kind == 1:
            changed.insert(at, byte)
        elif kind == 2 and at < len(changed):
            del changed[at]
        elif kind == 3 and at < len(changed) and changed[at] < 0x80:
            # A number in more bytes than it needs, perhaps in more than it may have.
            longer = [changed[at] | 0x80, *[0x80] * rng.choice((0, 1, 2, 3, 4, 7, 8, 9)), 0]
            changed[at : at + 1] = bytes(longer)
        elif at < len(changed):
            changed[at] = byte
    return bytes(changed)


def section(records: list[Record]) -> bytes:
    """What is in a batch of magic 2 after its header."""
    return build_batch(records)[HEADER_SIZE:]


def same_reading(
    data: bytes,
    count: int,
    base_offset: int,
    base_timestamp: int,
    appended: int | None = None,
    around: bytes = b"",
) -> list[Record] | None:
    """What Python reads, and C with it; what C gives up is exactly what Python refuses."""
    whole, at = around + data + around, len(around)
    end = at + len(data)
    expected: list[Record] | None = None
    if count * 7 <= len(data):  # RecordBatch has seen to it
        try:
            window = Window(whole, at, end, "batches[0]")
            expected = read_in_python(window, count, base_offset, base_timestamp, appended)
        except DecodeError:
            expected = None
    found = codec().read(whole, at, end, count, base_offset, base_timestamp, appended)
    assert found == expected, data.hex()
    # Equal numbers may be of different types; these are of one.
    assert repr(found) == repr(expected)
    return expected


def _read(data: bytes, check_crc: bool) -> Any:
    try:
        return [r for batch in RecordBatches(data, check_crc=check_crc) for r in batch]
    except DecodeError as error:
        return error.problem, error.offset, error.path


def same_batches(data: bytes, check_crc: bool = True) -> Any:
    """What batches of any kind hold, or what is wrong with them, whichever engine reads them."""
    found = _read(data, check_crc)
    module = extension.use(None)
    try:
        expected = _read(data, check_crc)
    finally:
        extension.use(module)
    assert found == expected, data.hex()
    assert repr(found) == repr(expected)
    return expected


def _built(records: list[Any], settings: dict[str, Any]) -> Any:
    try:
        return build_batch(records, **settings)
    except Exception as error:
        return type(error), str(error)


def same_writing(records: list[Any], **settings: Any) -> Any:
    """A batch, or what is raised, whichever engine writes it."""
    found = _built(records, settings)
    module = extension.use(None)
    try:
        expected = _built(records, settings)
    finally:
        extension.use(module)
    assert found == expected
    return expected
