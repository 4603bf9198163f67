"""Codecs: forms that other writers have, what is no such form, and an install without the extra."""

import contextlib
import gzip
import importlib
import struct
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import EncodeError, KprotoError
from kproto.errors import MissingExtraError
from kproto.records import (
    Compression,
    Record,
    RecordBatches,
    build_batch,
    compression,
    lz4_header,
    snappy,
)
from kproto.records.compression import MEMBERS, compress, decompress, unpack
from kproto.records.snappy import HEADER, MAGIC
from kproto.records.undecodable import UndecodableError
from tests.support.codecs import without

LIMIT = 1 << 20
CODECS = list(Compression)[1:]


@given(st.binary(max_size=300), st.sampled_from(CODECS), st.sampled_from([0, 1, 2]))
def test_what_is_compressed_decompresses(data, codec, magic):
    packed = compress(codec, data, magic=magic)
    assert decompress(codec, packed, magic=magic, limit=len(data)) == data


@pytest.mark.parametrize("codec", CODECS)
def test_a_cut_or_extended_form_is_refused(codec):
    data = bytes(range(256)) * 300
    packed = compress(codec, data)
    for cut in (1, 2, 5, len(packed) // 2, len(packed) - 6):
        with pytest.raises(UndecodableError):
            decompress(codec, packed[:-cut], limit=LIMIT)
    with pytest.raises(UndecodableError):
        decompress(codec, packed + b"??", limit=LIMIT)
    with pytest.raises(UndecodableError, match="more than"):
        decompress(codec, packed, limit=len(data) - 1)


@given(st.sampled_from(CODECS), st.data())
def test_mutated_forms_are_refused_or_bounded(codec, data):
    packed = bytearray(compress(codec, b"some text, and some more text " * 20))
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    for magic in (0, 2):
        with contextlib.suppress(UndecodableError):
            assert len(decompress(codec, bytes(packed), magic=magic, limit=2000)) <= 2000


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_several_members_are_read_but_not_any_number(codec):
    one = compress(codec, b"abc")
    assert decompress(codec, one * 3, limit=9) == b"abc" * 3
    assert decompress(codec, one * MEMBERS, limit=LIMIT) == b"abc" * MEMBERS
    with pytest.raises(UndecodableError, match=f"more than {MEMBERS} members"):
        decompress(codec, one * (MEMBERS + 1), limit=LIMIT)


def test_gzip_of_others():
    assert decompress(Compression.GZIP, gzip.compress(b"abc", 9), limit=3) == b"abc"


def test_snappy_framed_as_java_and_bare():
    cramjam = importlib.import_module("cramjam")
    data = bytes(range(256)) * 400
    framed = compress(Compression.SNAPPY, data)
    assert framed.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    bare = bytes(cramjam.snappy.compress_raw(data))
    assert decompress(Compression.SNAPPY, bare, limit=len(data)) == data
    # Frames one after the other, as an appended file has them.
    assert decompress(Compression.SNAPPY, framed + framed, limit=2 * len(data)) == data * 2


@pytest.mark.parametrize(
    ("packed", "problem"),
    [
        (b"", "snappy"),
        (MAGIC, "cut off"),
        (HEADER + b"\x00\x00", "cut off"),
        (HEADER + struct.pack(">i", 5) + b"ab", "cut off"),
        (HEADER + struct.pack(">i", -1) + b"ab", "cut off"),
        (HEADER + struct.pack(">i", 0), "snappy"),
        (b"\xff\xff\xff\x0f", "more than"),
        (b"\x80\x80\x04a", "cannot make 65536"),
    ],
)
def test_what_is_no_snappy(packed, problem):
    with pytest.raises(UndecodableError, match=problem):
        decompress(Compression.SNAPPY, packed, limit=LIMIT)


def test_lz4_has_kafkas_mistake_at_magic_0_and_not_after():
    data = b"abc" * 50
    right, wrong = compress(Compression.LZ4, data), compress(Compression.LZ4, data, magic=0)
    assert right[:6] == wrong[:6] == b"\x04\x22\x4d\x18\x60\x40"
    assert right[6] != wrong[6]
    assert right[7:] == wrong[7:]
    assert lz4_header.repaired(wrong) == right
    for packed in (right, wrong):  # magic 0 has either, whatever the checksum says
        assert decompress(Compression.LZ4, packed, magic=0, limit=LIMIT) == data
    with pytest.raises(UndecodableError, match="lz4"):
        decompress(Compression.LZ4, wrong, magic=1, limit=LIMIT)


@given(
    st.sampled_from(CODECS),
    st.lists(st.binary(max_size=300) | st.just(bytes(70_000)), min_size=1, max_size=3),
    st.data(),
)
def test_what_is_made_at_once_is_what_members_make(codec, given, data):
    """Of one member or several, whole, cut or damaged; or it is left to them."""
    damaged = bytearray(b"".join(compress(codec, each) for each in given))
    for _ in range(data.draw(st.sampled_from([0, 0, 1, 3]))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.sampled_from([len(damaged), len(damaged), len(damaged) // 2]))
    packed = bytes(damaged[:end])
    made = compression._at_once(codec.value)(packed)
    if made is None:
        return
    if codec is Compression.SNAPPY:
        assert made == snappy.decompress(compression._library(codec), packed, LIMIT)
    else:
        assert made == compression._members(*compression._decompressor(codec), packed, LIMIT)
    assert len(made) <= compression.FIRST_CHUNK


@pytest.mark.parametrize("codec", CODECS)
def test_small_batches_are_made_at_once(codec):
    data = b"abc" * 500
    packed = compress(codec, data)
    assert compression._at_once(codec.value)(packed) == unpack(codec.value, packed) == data
    twice = packed + packed
    assert compression._at_once(codec.value)(twice) is None
    assert unpack(codec.value, twice) == data + data
    assert unpack(codec.value, packed[:-1]) is None


@pytest.mark.parametrize("with_size", [False, True])
def test_zstd_frames_of_other_writers(with_size):
    """With a checksum or without, in several blocks, with or without a size, as streams have
    none."""
    library = importlib.import_module("zstandard")
    data = b"some text, and some more text " * 9000
    skippable = b"\x53\x2a\x4d\x18\x03\0\0\0abc"
    for has_checksum in (False, True):
        packer = library.ZstdCompressor(write_checksum=has_checksum, write_content_size=with_size)
        for size in (0, 1, 500, 65536, 65537, len(data)):
            packed = packer.compress(data[:size])
            assert decompress(Compression.ZSTD, packed, limit=LIMIT) == data[:size]
            for both in (packed + skippable, skippable + packed):
                assert decompress(Compression.ZSTD, both, limit=LIMIT) == data[:size]
            for wrong in (packed[:-1], packed + b"\0", packed + skippable[:-1]):
                with pytest.raises(UndecodableError):
                    decompress(Compression.ZSTD, wrong, limit=LIMIT)
        writer = packer.compressobj()
        parts = [writer.compress(data[:300]), writer.flush(library.COMPRESSOBJ_FLUSH_BLOCK)]
        packed = b"".join([*parts, writer.compress(data[300:]), writer.flush()])
        assert decompress(Compression.ZSTD, packed, limit=LIMIT) == data
        with pytest.raises(UndecodableError, match="more than"):
            decompress(Compression.ZSTD, packed, limit=len(data) - 1)


def test_a_larger_zstd_window_is_refused():
    library = importlib.import_module("zstandard")
    for log, is_read in ((27, True), (28, False)):
        wide = library.ZstdCompressionParameters(window_log=log, write_content_size=False)
        packer = library.ZstdCompressor(compression_params=wide).compressobj()
        packed = packer.compress(bytes(70_000)) + packer.flush()
        if is_read:
            assert decompress(Compression.ZSTD, packed, limit=LIMIT) == bytes(70_000)
        else:
            with pytest.raises(UndecodableError, match="too much memory"):
                decompress(Compression.ZSTD, packed, limit=LIMIT)


def test_threads_decompress_zstd_at_once():
    """Each with its own context: the library lets other threads run meanwhile."""
    contents = [bytes([number]) * 9000 + bytes(range(256)) * 100 for number in range(64)]
    packed = [compress(Compression.ZSTD, each) for each in contents]
    with ThreadPoolExecutor(8) as threads:
        for _ in range(10):
            assert list(threads.map(partial(unpack, Compression.ZSTD.value), packed)) == contents


def test_lz4_headers_with_a_content_size():
    frame = importlib.import_module("lz4.frame").compress(b"abc", store_size=True)
    assert lz4_header.repaired(frame) == frame
    assert decompress(Compression.LZ4, frame, magic=0, limit=3) == b"abc"
    for cut in range(len(frame)):
        with pytest.raises(UndecodableError):
            decompress(Compression.LZ4, frame[:cut], magic=0, limit=3)


def test_a_size_in_an_lz4_header_is_no_reason_to_allocate():
    """What a peer says that there will be is not believed."""
    frame = importlib.import_module("lz4.frame").compress(b"abc" * 99, store_size=True)
    described = frame[4:6] + (1 << 28).to_bytes(8, "little")
    checksum = lz4_header.xxh32(described) >> 8 & 0xFF
    lying = frame[:4] + described + bytes([checksum]) + frame[15:]
    tracemalloc.start()
    try:
        with pytest.raises(UndecodableError, match="frameSize_wrong"):
            decompress(Compression.LZ4, lying, limit=1 << 30)
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF), (b"abcd", 0xA3643705)],
)
def test_xxhash_of_short_inputs(data, expected):
    assert lz4_header.xxh32(data) == expected


def test_levels():
    data = b"some text, and some more text " * 500
    for codec in (Compression.GZIP, Compression.LZ4, Compression.ZSTD):
        fast, small = (compress(codec, data, level=level) for level in (1, 9))
        assert decompress(codec, fast, limit=LIMIT) == decompress(codec, small, limit=LIMIT) == data
    for codec in (Compression.GZIP, Compression.ZSTD):
        with pytest.raises(EncodeError) as caught:
            build_batch([Record(value=b"a")], compression=codec, level=1000)
        assert caught.value.path == "level"


@pytest.mark.parametrize(
    ("codec", "module"),
    [
        (Compression.SNAPPY, "cramjam"),
        (Compression.LZ4, "lz4.frame"),
        (Compression.ZSTD, "zstandard"),
    ],
)
def test_a_missing_library_is_named(codec, module):
    data = build_batch([Record(value=b"a")], compression=codec)
    with without(module):
        assert not compression.available(codec)
        for call in (
            lambda: build_batch([Record(value=b"a")], compression=codec),
            lambda: next(iter(RecordBatches(data))).records(),
        ):
            with pytest.raises(MissingExtraError) as caught:
                call()
            assert str(caught.value) == (
                f"{codec.name.lower()} needs {module}: pip install 'kproto[records]'"
            )
            assert isinstance(caught.value, KprotoError)
            assert isinstance(caught.value, ImportError)
    assert all(compression.available(each) for each in Compression)


def test_no_library_is_imported_before_it_is_needed():
    code = (
        "import sys, kproto.records as r\n"
        "data = r.build_batch([r.Record(value=b'a')], compression=r.Compression.GZIP)\n"
        "assert [x.value for b in r.RecordBatches(data) for x in b] == [b'a']\n"
        "assert not {'cramjam', 'lz4', 'zstandard'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
