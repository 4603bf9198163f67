"""Kafka's JSON in znodes, and parsing it with errors that state the position.

Kafka uses Jackson: no blanks, and characters beyond ASCII unescaped. The order of keys is that of
Scala's maps, which the caller spells out.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeVar

import msgspec

from kproto.znodes.errors import MalformedZnodeError

__all__ = ["BrokerId", "Ids", "Int32", "PartitionIndex", "bytes_of", "decode", "encode", "text_of"]

T = TypeVar("T")

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
BrokerId = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
PartitionIndex = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Ids = tuple[BrokerId, ...]


def text_of(data: bytes) -> str:
    """Decode the data of a znode. Bytes that are not UTF-8 are kept as surrogates."""
    return data.decode(errors="surrogateescape")


def bytes_of(text: str) -> bytes:
    """Encode text for a znode; the inverse of ``text_of``, and defined for every ``str``."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")


def encode(value: Any) -> bytes:
    """Encode compact JSON with the keys in the given order."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def decode(path: str, data: bytes | str, shape: type[T]) -> T:
    """Parse ``data``, or text as from ``text_of``, as ``shape``. ``MalformedZnodeError`` names
    ``path`` and the position in it."""
    if isinstance(data, str):
        data = bytes_of(data)
    if not data:
        raise MalformedZnodeError(path, "empty, and not JSON")
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedZnodeError(path, " ".join(str(error).split())) from None
    except RecursionError:
        raise MalformedZnodeError(path, "nested too deeply") from None
