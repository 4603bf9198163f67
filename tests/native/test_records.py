"""Records in C held to records in Python: the same values and bytes, or the same error."""

import contextlib
import dataclasses
import gc
import random
import sys
import threading
import zlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import extension
from kproto.records import Compression, Record, RecordBatches, build_batch
from kproto.records.crc import crc32c_pure
from kproto.records.record_batch import HEADER_SIZE
from tests.native.records_both import (
    LONGS,
    codec,
    codec_type,
    damage,
    random_records,
    same_batches,
    same_reading,
    same_writing,
    section,
    shake_records,
)
from tests.native.test_choice import ABSENT, run
from tests.records.mutations import PLAIN, record_of, with_right_checksums, wrapper
from tests.support import seeds

randoms = st.randoms(use_true_random=True)  # of a seed that is drawn: these take many numbers


@given(randoms)
def test_what_is_written(rng: random.Random) -> None:
    """Every batch that can be written is, in C; and every one is read, from any place."""
    records = random_records(rng)
    first = records[0]
    written = codec().write(records, first.offset, first.timestamp)
    assert written is not None
    data = same_writing(records)
    assert written[0] == data[HEADER_SIZE:]
    assert codec().write(tuple(records), first.offset, first.timestamp) == written
    count = len(records)
    around = rng.randbytes(rng.choice((0, 1, 9)))
    read = same_reading(written[0], count, first.offset, first.timestamp, around=around)
    assert read == records
    appended = rng.choice(LONGS)
    read = same_reading(written[0], count, first.offset, first.timestamp, appended)
    assert read is not None
    assert [record.timestamp for record in read] == [appended] * count


@given(randoms)
def test_damaged_bytes(rng: random.Random) -> None:
    records = random_records(rng, most=5)
    data = section(records)
    for _ in range(5):
        bases = rng.choice(LONGS), rng.choice(LONGS)
        count = max(0, len(records) + rng.choice((0, 0, 0, 0, 0, 1, -1)))
        same_reading(damage(data, rng), count, *bases, rng.choice((None, None, 7)))
        same_reading(data, count, *bases)


@given(randoms)
def test_wrong_values(rng: random.Random) -> None:
    records = random_records(rng, most=4)
    settings: dict[str, Any] = {}
    if rng.random() < 0.3:
        settings["base_offset"] = rng.choice((0, records[0].offset, records[0].offset + 1))
    if rng.random() < 0.3:
        settings["delete_horizon"] = rng.choice((0, 1 << 40, (1 << 63) - 1))
    for _ in range(5):
        same_writing(shake_records(records, rng), **settings)


@given(randoms)
def test_wrappers(rng: random.Random) -> None:
    """Of magic 0 and 1, their messages as they should be, damaged, and damaged under checksums."""
    magic, bit = rng.choice((0, 1)), rng.choice((0, 8))
    records = [
        Record(3 * n if magic else r.offset, r.timestamp if magic else -1, r.key, r.value)
        for n, r in enumerate(random_records(rng, most=5))
    ]
    inner = b"".join(build_batch([record], magic=magic) for record in records)
    last = records[-1].offset
    for _ in range(5):
        offset = rng.choice((last, last + 7, 0, last - 1, (1 << 63) - 1, -5))
        for each in (inner, damage(inner, rng), with_right_checksums(damage(inner, rng))):
            data = wrapper(each, magic=magic, offset=offset, attributes=1 | bit)
            same_batches(data)
            same_batches(data, check_crc=False)
    whole = wrapper(inner, magic=magic, offset=last, attributes=1)
    assert [record.value for record in same_batches(whole)] == [r.value for r in records]
    taken = codec().read_messages(inner, 0, len(inner), magic, last, zlib.crc32, None)
    assert taken == same_batches(whole)


@given(randoms)
def test_surveys(rng: random.Random) -> None:
    """A survey is what reading the records finds, and refuses what reading refuses."""
    records = random_records(rng, most=5)
    data = section(records)
    for each in (data, damage(data, rng)):
        count = max(0, len(records) + rng.choice((0, 0, 0, 1, -1)))
        arguments = (each, 0, len(each), count, rng.choice(LONGS), rng.choice(LONGS))
        appended = rng.choice((None, None, 7))
        read = codec().read(*arguments, appended)
        found = codec().survey(*arguments, appended)
        if not read:
            assert found is None
            continue
        timestamps = [record.timestamp for record in read]
        offsets = [record.offset for record in read]
        base_offset = arguments[4]
        consecutive = offsets == list(range(base_offset, base_offset + count))
        assert found == (min(timestamps), max(timestamps), consecutive)


def test_surveys_it_does_not_take() -> None:
    data = section([Record(0, 5, b"k", b"v")])
    assert codec().survey(data, 0, len(data), 1, 0, 5, None) == (5, 5, True)
    assert codec().survey(bytearray(data), 0, len(data), 1, 0, 0, None) is None
    assert codec().survey(b"", 0, 0, 0, 0, 0, None) is None
    with pytest.raises(TypeError):
        codec().survey(data, 0, len(data), 1, 0, 0)


def test_wrappers_it_does_not_take() -> None:
    inner = build_batch([Record(3, 5, b"k", b"v")], magic=1)
    usual = [inner, 0, len(inner), 1, 3, zlib.crc32, None]
    assert codec().read_messages(*usual) == [Record(3, 5, b"k", b"v")]
    for wrong in (-1, 1 << 40, 1 << 70, None, 1.5, "2"):
        for place in range(4):
            assert codec().read_messages(*usual[:place], wrong, *usual[place + 1 :]) is None
    for function in (len, lambda _: None, lambda _: 1 / 0, "no function"):
        assert codec().read_messages(*usual[:5], function, None) is None

    def stop(_data: bytes) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        codec().read_messages(*usual[:5], stop, None)
    with pytest.raises(TypeError):
        codec().read_messages(*usual[:-1])


def test_batches_of_very_many() -> None:
    """More than a list is made for on trust."""
    records = [Record(n, 5 + n % 3, None, b"%d" % n) for n in range(40_000)]
    data = section(records)
    assert same_reading(data, len(records), 0, 5) == records
    assert same_reading(data[:-1] + b"\x02", len(records), 0, 5) is None
    assert same_reading(data, len(records) - 1, 0, 5) is None


def test_every_place_a_record_can_be_cut() -> None:
    data = section([Record(3, 9, b"key", b"v" * 70, (("h", b"x"), ("\u20ac", None)))])
    for end in range(len(data)):
        assert same_reading(data[:end], 1, 3, 9) is None
    for size in range(8):
        same_reading(record_of(bytes(size)), 1, 0, 0)
    assert same_reading(record_of(PLAIN), 1, 0, 0) == [Record(0, 0)]
    assert same_reading(b"", 0, 0, 0) == []
    assert same_reading(b"\x00", 0, 0, 0) is None


@pytest.mark.parametrize("wrong", [-1, 1 << 40, 1 << 70, None, True, 1.5, "2"])
def test_arguments_it_does_not_know_are_left_to_python(wrong: Any) -> None:
    usual = [record_of(PLAIN), 0, len(record_of(PLAIN)), 1, 0, 0, None]
    assert codec().read(*usual) == [Record(0, 0)]
    for place in (0, 1, 2, 3):
        assert codec().read(*usual[:place], wrong, *usual[place + 1 :]) is None
    assert codec().write([Record()], wrong, 0) is None or isinstance(wrong, int)
    for arguments in ([], usual[:-1], [*usual, None]):
        with pytest.raises(TypeError):
            codec().read(*arguments)
    with pytest.raises(TypeError):
        codec().write([Record()], 0)


def test_what_is_left_to_python_is_written_all_the_same() -> None:
    """Values of other types than reading makes; only Python knows what they are."""

    class Keys(dict[str, bytes]):
        def __len__(self) -> int:
            raise AssertionError("asked in C")

    for headers in ([["k", b"v"]], ["kv"], [("k", b"v")], None, [], Keys()):
        with contextlib.suppress(AssertionError):
            same_writing([Record(value=b"v", headers=headers)])
    assert codec().write([Record(headers=[("k", b"v")])], 0, 0) is not None
    assert codec().write([Record(headers=[["k", b"v"]])], 0, 0) is None
    assert codec().write({Record(): 1}, 0, 0) is None
    for name in Record.__struct_fields__:
        lacking = Record()
        getattr(Record, name).__delete__(lacking)
        assert codec().write([lacking], 0, 0) is None
        same_writing([lacking])

    class Records(list[Record]):
        def __iter__(self) -> Any:
            return iter([Record(value=b"other")] * len(self))

    assert codec().write(Records([Record()]), 0, 0) is None
    assert b"other" in same_writing(Records([Record()]))


def test_neighbours_share_only_what_cannot_change() -> None:
    records = [Record(n, 5000, b"k", b"v", (("trace", b"v"), ("other", None))) for n in range(3)]
    (batch,) = RecordBatches(build_batch(records))
    first, second, _ = batch.records()
    assert first.headers is not second.headers
    assert first.headers == second.headers
    assert [type(each) for each in (first.headers, *first.headers)] == [tuple] * 3
    assert batch.records() is not batch.records()


def test_only_a_plain_class_of_records() -> None:
    class Collected(msgspec.Struct, frozen=True):
        offset: int = -1
        timestamp: int = -1
        key: Any = None
        value: Any = None
        headers: Any = ()

    @dataclasses.dataclass(slots=True)
    class Data:
        offset: int
        timestamp: int
        key: Any
        value: Any
        headers: Any

    class Fewer(msgspec.Struct, gc=False):
        offset: int
        timestamp: int

    class Swapped(Record, frozen=True, gc=False):
        key = property(lambda _self: b"")  # type: ignore[assignment]  # that is the point

    class Loud(Record, frozen=True, gc=False):
        def __post_init__(self) -> None:
            raise RuntimeError("made")

    for cls in (Collected, Data, Fewer, Swapped, Loud, int, 5, None):
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            codec_type()(cls)
    with pytest.raises(TypeError):
        codec_type()(Record, gc=False)


def test_without_a_class_it_takes_python_does_it_all() -> None:
    class Strange:
        """An extension whose codec refuses."""

        @staticmethod
        def RecordCodec(_cls: type) -> None:
            raise ValueError("not plain")

        @staticmethod
        def crc32c(data: bytes, start: int, end: int) -> int:
            return crc32c_pure(data[start:end])

    from kproto.records.native import record_codec

    before = extension.use(Strange)
    try:
        assert record_codec() is None
        data = build_batch([Record(value=b"a")])
        assert [r for batch in RecordBatches(data) for r in batch] == [Record(0, -1, None, b"a")]
    finally:
        extension.use(before)


WHICH = (
    "from kproto.records import Record, RecordBatches, build_batch, native\n"
    "data = build_batch([Record(value=b'v')])\n"
    "assert [r.value for batch in RecordBatches(data) for r in batch] == [b'v']\n"
    "print(type(native.record_codec()).__name__)"
)


def test_they_follow_the_choice_of_engine() -> None:
    assert run(WHICH, "native").stdout == "RecordCodec\n"
    assert run(WHICH, "pure").stdout == "NoneType\n"
    assert run(ABSENT + WHICH, None).stdout == "NoneType\n"


def test_nothing_half_made_is_seen() -> None:
    """A collection at every allocation, which looks at all there is while a batch is read."""
    records = [Record(n, n, b"k", b"v", (("h", b"x"), ("i", None))) for n in range(50)]
    data = build_batch(records)
    seen = 0

    def look(_phase: str, _info: object) -> None:
        nonlocal seen
        for each in gc.get_objects():
            if type(each) in (list, tuple):
                seen += len(each[:3])

    threshold, enabled = gc.get_threshold(), gc.isenabled()
    gc.freeze()  # What there was before is looked at by nobody: it takes the longer the more it is.
    gc.callbacks.append(look)
    gc.set_threshold(1)
    gc.enable()
    try:
        assert [record for batch in RecordBatches(data) for record in batch] == records
    finally:
        gc.callbacks.remove(look)
        gc.set_threshold(*threshold)
        (gc.enable if enabled else gc.disable)()
    assert seen


def test_a_list_that_changes_while_it_is_written() -> None:
    """Another thread takes records away; the extension never lets it run in between."""
    records = [Record(value=b"%d" % n) for n in range(200)]
    whole = len(build_batch(records))
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            records.append(records.pop())
            del records[50:]
            records.extend(Record(value=b"x") for _ in range(150))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(500):
            written = codec().write(records, 0, 0)
            assert written is not None
            assert len(written[0]) <= whole
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(before)


def test_compressed_and_old_ones_go_through_it_or_past_it() -> None:
    rng = seeds.generator("records")
    for magic in (0, 1, 2):
        for compression in list(Compression)[: 5 if magic == 2 else 4]:
            records = [
                Record(r.offset, r.timestamp if magic else -1, r.key, r.value)
                for r in random_records(rng)
            ]
            data = build_batch(records, magic=magic, compression=compression)
            assert [r for batch in RecordBatches(data) for r in batch] == records
