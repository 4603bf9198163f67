"""Compress and decompress the content of batches with established libraries, within a limit.

========  =======================================  ============================================
codec     library                                  form
========  =======================================  ============================================
gzip      zlib                                     one member; several are read
snappy    cramjam                                  see ``snappy``
lz4       lz4                                      a frame of independent blocks of 64 KiB, as
                                                   Java requires; see ``lz4_header`` for magic 0
zstd      zstandard                                one frame; several are read
========  =======================================  ============================================

All but zlib come with the extra ``records`` and are imported on first use; ``MissingExtraError``
names the extra if one is absent. Decompression stops at its limit and never produces more bytes.
Invalid data raises ``UndecodableError``.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final, TypeAlias

from kproto.errors import EncodeError, MissingExtraError
from kproto.records import lz4_header, snappy, zstd
from kproto.records.model import MAX_DECOMPRESSED, Compression
from kproto.records.undecodable import UndecodableError, too_large

__all__ = ["available", "compress", "decompress", "unpack"]

GZIP: Final = 31
"""zlib's ``wbits`` for a gzip member with the largest window."""
MEMBERS: Final = 64
"""The largest number of consecutive members or frames that is read. Writers make one. Each costs a
copy of what follows it, so unlimited numbers would take quadratic time."""
FIRST_CHUNK: Final = 64 * 1024
SMALL: Final = 16 * 1024
"""Results of up to this size may come from a single call; larger results start over in chunks."""


@cache
def _library(codec: Compression) -> Any:
    name = {
        Compression.SNAPPY: "cramjam",
        Compression.LZ4: "lz4.frame",
        Compression.ZSTD: "zstandard",
    }[codec]
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtraError(f"{codec.name.lower()} needs {name}", extra="records") from None


def available(codec: Compression) -> bool:
    """Whether ``codec`` can be used here. If not, install the extra ``records``."""
    if codec in (Compression.NONE, Compression.GZIP):
        return True
    try:
        _library(codec)
    except MissingExtraError:
        return False
    return True


def compress(codec: Compression, data: bytes, *, magic: int = 2, level: int | None = None) -> bytes:
    """Compress ``data`` for a batch of ``magic``. ``level`` is the codec's own; None is its
    default.

    Snappy has no levels. Raises MissingExtraError, and EncodeError for a level that the codec
    lacks.
    """
    try:
        return _compress(codec, data, magic, level)
    except (TypeError, ValueError, OverflowError) as error:
        raise EncodeError(f"{codec.name.lower()}: {error}", path="level") from None


def _compress(codec: Compression, data: bytes, magic: int, level: int | None) -> bytes:
    if codec is Compression.GZIP:
        packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, GZIP)
        return packer.compress(data) + packer.flush()
    if codec is Compression.SNAPPY:
        return snappy.compress(_library(codec), data)
    if codec is Compression.LZ4:
        library = _library(codec)
        frame: bytes = library.compress(
            data,
            compression_level=0 if level is None else level,
            block_size=library.BLOCKSIZE_MAX64KB,
            block_linked=False,
            store_size=False,
        )
        return lz4_header.broken(frame) if magic == 0 else frame
    if codec is Compression.ZSTD:
        packed: bytes = _library(codec).compress(data, 3 if level is None else level)
        return packed
    return data


def decompress(codec: Compression, data: bytes, *, magic: int = 2, limit: int) -> bytes:
    """Decompress ``data`` to at most ``limit`` bytes. Raises UndecodableError and
    MissingExtraError."""
    if codec is Compression.NONE:
        return data
    if codec is Compression.LZ4 and magic == 0:
        data = lz4_header.repaired(data)
    if len(data) <= SMALL and limit >= FIRST_CHUNK:
        made = _at_once(codec.value)(data)
        if made is not None:
            return made
    return _by_and_by(codec, data, limit)


def _by_and_by(codec: Compression, data: bytes, limit: int) -> bytes:
    if codec is Compression.SNAPPY:
        return snappy.decompress(_library(codec), data, limit)
    return _members(*_decompressor(codec), data, limit)


@cache
def _decompressor(codec: Compression) -> tuple[str, Callable[[], Any], type[Exception]]:
    """Return the codec's name in its library, the library's error, and a function that makes a
    decompressor for the next member."""
    if codec is Compression.GZIP:
        return "gzip", partial(zlib.decompressobj, GZIP), zlib.error
    library = _library(codec)
    if codec is Compression.LZ4:
        return "lz4", library.LZ4FrameDecompressor, RuntimeError
    return "zstd", partial(zstd.Frame, library), library.ZstdError


def unpack(codec: int, data: bytes) -> bytes | None:
    """Decompress a batch of magic 2 within the default limit. Returns None where ``decompress``
    must raise the error."""
    try:
        made = _at_once(codec)(data) if len(data) <= SMALL else None
        if made is not None:
            return made
        return _by_and_by(_CODECS[codec], data, MAX_DECOMPRESSED)
    except (UndecodableError, MissingExtraError):
        return None


_CODECS: Final = {each.value: each for each in Compression}
_Once: TypeAlias = Callable[[bytes], bytes | None]


@cache
def _at_once(codec: int) -> _Once:
    """Return the content of the only member if it is no larger than ``FIRST_CHUNK``. Returns None
    if it is larger, or if the data has several members, is truncated or is invalid."""
    return _MAKERS[codec]()


def _snappy_at_once() -> _Once:
    return partial(snappy.one_block, _library(Compression.SNAPPY), FIRST_CHUNK)


def _lz4_at_once() -> _Once:
    library = _library(Compression.LZ4)
    start, decompress_chunk = library.create_decompression_context, library.decompress_chunk

    def made(data: bytes) -> bytes | None:
        try:
            found, taken, ended = decompress_chunk(start(), data, FIRST_CHUNK)
        except RuntimeError:
            return None
        whole: bytes | None = found if ended and taken == len(data) else None
        return whole

    return made


def _zstd_at_once() -> _Once:
    return zstd.frame_at_once(_library(Compression.ZSTD), FIRST_CHUNK)


def _gzip_at_once() -> _Once:
    def made(data: bytes) -> bytes | None:
        member = zlib.decompressobj(GZIP)
        try:
            found = member.decompress(data, FIRST_CHUNK)
        except zlib.error:
            return None
        return found if member.eof and not member.unused_data else None

    return made


_MAKERS: Final[dict[int, Callable[[], _Once]]] = {
    Compression.GZIP.value: _gzip_at_once,
    Compression.SNAPPY.value: _snappy_at_once,
    Compression.LZ4.value: _lz4_at_once,
    Compression.ZSTD.value: _zstd_at_once,
}


def _members(
    name: str, start: Callable[[], Any], failure: type[Exception], data: bytes, limit: int
) -> bytes:
    """Decompress all members of ``data``. zlib, lz4 and zstd have the same kind of decompressor."""
    parts: list[bytes] = []
    made = 0
    for _ in range(MEMBERS):
        member = start()
        while True:
            # One byte over the limit distinguishes too much from just enough. The chunks grow,
            # because each costs a copy of the remaining input.
            chunk = min(max(made, FIRST_CHUNK), limit - made + 1)
            try:
                part: bytes = member.decompress(data, chunk)
            except failure as error:
                raise UndecodableError(f"{name}: {error}") from None
            made += len(part)
            if made > limit:
                raise too_large(limit)
            parts.append(part)
            if member.eof:
                break
            data = getattr(member, "unconsumed_tail", b"")  # zlib returns it, the others keep it
            if not part:
                raise UndecodableError(f"{name}: the data is cut off")
        data = member.unused_data or b""
        if not data:
            return parts[0] if len(parts) == 1 else b"".join(parts)
    raise UndecodableError(f"{name}: more than {MEMBERS} members")
