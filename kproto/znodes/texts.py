"""Kafka's JSON in znodes, and parsing it with errors that state the position.

Kafka uses Jackson: no blanks, and characters beyond ASCII unescaped. The order of keys is that of
Scala's maps, which the caller spells out.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeVar

import msgspec

from kproto.znodes.errors import MalformedZnodeError

__all__ = ["BrokerId", "Ids", "Int32", "PartitionIndex", "decode", "encode"]

T = TypeVar("T")

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
BrokerId = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
PartitionIndex = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Ids = tuple[BrokerId, ...]


def encode(value: Any) -> bytes:
    """Encode compact JSON with the keys in the given order."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def decode(path: str, data: bytes, shape: type[T]) -> T:
    """Parse ``data`` as ``shape``. ``MalformedZnodeError`` names ``path`` and the position in
    it."""
    if not data:
        raise MalformedZnodeError(path, "empty, and not JSON")
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedZnodeError(path, " ".join(str(error).split())) from None
    except RecursionError:
        raise MalformedZnodeError(path, "nested too deeply") from None
