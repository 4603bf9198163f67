"""The limit of decompressed bytes, in every compression."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
from collections.abc import Callable

import pytest

from kproto.capture import container
from wiredump.readers import Anomaly, Capture, Packet
from wiredump.readers.compressed import MOST_ALWAYS, MOST_TIMES, inflater_for

MIB = 1 << 20


def zstd(data: bytes) -> bytes:
    compressed: bytes = importlib.import_module("zstandard").compress(data)
    return compressed


def lz4(data: bytes) -> bytes:
    compressed: bytes = importlib.import_module("lz4.frame").compress(data)
    return compressed


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zstd": zstd, "lz4": lz4,
}  # fmt: skip


def bomb(compress: Callable[[bytes], bytes], size: int) -> bytes:
    """A capture of large packets of zeros."""
    record = container.pcap_record(0, bytes(60_000))
    return compress(container.pcap_header(1) + record * (size // len(record)))


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_every_compression_ends_at_the_limit(name: str) -> None:
    packed = bomb(COMPRESSIONS[name], 4 * MIB)
    *packets, last = Capture(io.BytesIO(packed), max_decompressed=2 * MIB)
    read = sum(len(each.data) for each in packets if isinstance(each, Packet))
    assert read == (2 * MIB - 24) // 60_016 * 60_000
    assert isinstance(last, Anomaly)
    assert last.kind == "decompression-limit"
    assert last.reason.startswith(f"{name}: ")
    assert "more than 2,097,152; --max-decompressed allows more" in last.reason


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_below_the_limit_all_is_read(name: str) -> None:
    packed = bomb(COMPRESSIONS[name], 2 * MIB)
    found = list(Capture(io.BytesIO(packed), max_decompressed=2 * MIB))
    assert len(found) == 2 * MIB // 60_016
    assert all(isinstance(each, Packet) for each in found)


def test_by_default_a_file_holds_a_multiple_of_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (MOST_ALWAYS, MOST_TIMES) == (1 << 30, 250)
    monkeypatch.setattr("wiredump.readers.compressed.MOST_ALWAYS", MIB)
    packed = gzip.compress(bytes(8 * MIB))
    inflater = inflater_for(packed)
    assert inflater is not None
    allowed = max(MIB, MOST_TIMES * len(packed))
    assert allowed < 8 * MIB
    with pytest.raises(Exception, match=f"to more than {allowed:,};"):
        list(inflater.feed(packed))
