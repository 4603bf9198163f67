"""Checksums: engine, library and table agree with each other and with published values."""

import importlib
import random
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import extension
from kproto.records import Record, RecordBatches, build_batch, crc
from kproto.records.varints import (
    ONE_BYTE,
    SMALL,
    VARINT_BITS,
    VARLONG_BITS,
    VarintError,
    read,
    write,
)

ENGINE: Any = sys.modules.get("kproto.native._engine")

RFC_3720 = {
    bytes(32): 0x8A9136AA,
    b"\xff" * 32: 0x62A8AB43,
    bytes(range(32)): 0x46DD794E,
    b"123456789": 0xE3069283,
}


@pytest.mark.parametrize(("data", "expected"), RFC_3720.items())
def test_published_values(data, expected):
    assert crc.crc32c_pure(data) == crc.crc32c(data) == expected


@given(st.binary(max_size=400), st.integers(0, 40), st.integers(0, 400))
def test_every_implementation_computes_the_same_of_a_part(data, start, end):
    expected = crc.crc32c_pure(data[start:end])
    assert importlib.import_module("google_crc32c").value(data[start:end]) == expected
    assert crc.crc32c(data, start, end) == expected
    assert crc.crc32c(memoryview(bytearray(data)), start, end) == expected
    if ENGINE is not None:
        assert ENGINE.crc32c(data, start, end) == expected
        assert ENGINE.crc32c(data, start, end, True) == expected


@pytest.mark.skipif(ENGINE is None, reason="the engine computes long inputs in thirds")
@pytest.mark.parametrize("size", [383, 384, 391, 3 * 384 + 5, 12_287, 12_288, 12_289, 40_000])
def test_thirds_are_joined(size):
    data = random.Random(size).randbytes(size + 3)
    for start in range(4):  # aligned or not
        expected = importlib.import_module("google_crc32c").value(data[start:size])
        assert ENGINE.crc32c(data, start, size) == expected
        assert ENGINE.crc32c(data, start, size, True) == expected


def test_without_engine_and_library_the_table_is_used(monkeypatch):
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    monkeypatch.setattr(extension, "in_use", None)
    crc._library.cache_clear()
    try:
        assert crc._library() is crc.crc32c_pure
        data = build_batch([Record(value=b"a")])
        assert crc.crc32c(data, 21) == next(iter(RecordBatches(data))).crc
    finally:
        crc._library.cache_clear()


@pytest.mark.skipif(ENGINE is None, reason="the engine is pure Python")
@pytest.mark.parametrize(
    "arguments", [(), (b"", 0, 1, False, 0), ("text",), (b"", "0"), (b"", 0, "1")]
)
def test_wrong_arguments_of_the_engines_function(arguments):
    assert ENGINE is not None
    with pytest.raises(TypeError):
        ENGINE.crc32c(*arguments)


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_varints(number):
    data = write(number)
    assert read(b"?" + data + b"?", 1, len(data) + 1, VARLONG_BITS) == (number, len(data) + 1)
    assert len(data) <= 10
    if -(1 << 31) <= number < 1 << 31:
        assert read(data, 0, len(data), VARINT_BITS)[0] == number
    else:
        with pytest.raises(VarintError):
            read(data, 0, len(data), VARINT_BITS)
    with pytest.raises(VarintError, match="cut off"):
        read(data, 0, len(data) - 1, VARLONG_BITS)


def test_the_tables_of_short_varints():
    assert [write(number) for number in range(len(SMALL))] == list(SMALL)
    assert [read(bytes((byte,)), 0, 1, VARINT_BITS)[0] for byte in range(128)] == list(ONE_BYTE)


@pytest.mark.parametrize(
    ("data", "bits", "problem"),
    [
        (b"\x80\x80\x80\x80\x80\x01", VARINT_BITS, "longer than 5 bytes"),
        (b"\x80" * 10 + b"\x01", VARLONG_BITS, "longer than 10 bytes"),
        (b"\xff\xff\xff\xff\x1f", VARINT_BITS, "more than 32 bits"),
        (b"\xff" * 9 + b"\x03", VARLONG_BITS, "more than 64 bits"),
    ],
)
def test_varints_that_are_none(data, bits, problem):
    with pytest.raises(VarintError, match=problem):
        read(data, 0, len(data), bits)


def test_a_varint_may_be_longer_than_it_needs():
    assert read(b"\x80\x00", 0, 2, VARINT_BITS) == (0, 2)
