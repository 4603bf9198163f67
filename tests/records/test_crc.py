"""Checksums: the library's and the table's agree with each other and with published values."""

from __future__ import annotations

import importlib
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

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

RFC_3720 = {
    bytes(32): 0x8A9136AA,
    b"\xff" * 32: 0x62A8AB43,
    bytes(range(32)): 0x46DD794E,
    b"123456789": 0xE3069283,
}


@pytest.mark.parametrize(("data", "expected"), RFC_3720.items())
def test_published_values(data, expected):
    assert crc.crc32c_pure(data) == crc.crc32c(data) == expected


@given(st.binary(max_size=200))
def test_the_table_agrees_with_the_library(data):
    assert crc.crc32c_pure(data) == importlib.import_module("google_crc32c").value(data)


def test_without_the_library_the_table_is_used(monkeypatch):
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    try:
        importlib.reload(crc)
        assert crc.crc32c is crc.crc32c_pure
    finally:
        monkeypatch.undo()
        importlib.reload(crc)
    data = build_batch([Record(value=b"a")])
    assert crc.crc32c_pure(data[21:]) == next(iter(RecordBatches(data))).crc


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
