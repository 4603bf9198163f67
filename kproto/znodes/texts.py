"""Kafka's JSON in znodes, and parsing it with errors that state the position.

Kafka uses Jackson: no blanks, and characters beyond ASCII unescaped. The order of keys is that of
Scala's maps. Where a map is small, fixed and literal, its caller spells out the order;
``scala_order`` is for maps keyed by partition.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any, TypeVar

import msgspec

from kproto.znodes.errors import MalformedZnodeError

__all__ = ["BrokerId", "Ids", "Int32", "PartitionIndex", "decode", "encode", "scala_order"]

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


def scala_order(keys: Iterable[str]) -> list[str]:
    """Return keys in the iteration order of Scala 2.13's ``mutable.HashMap``, as Kafka does.

    The order is by bucket, and within one by hash. The table has 16 buckets and doubles before it
    becomes three quarters full. Up to eleven partitions are therefore in ascending order; of
    twelve, the last comes first.
    """
    hashes = {key: _hash(key) for key in keys}
    buckets = 16
    while len(hashes) >= buckets * 3 // 4:
        buckets *= 2
    return sorted(hashes, key=lambda key: (hashes[key] & (buckets - 1), _signed(hashes[key])))


def _hash(key: str) -> int:
    """Return Java's String.hashCode as improved by Scala's maps, unsigned. Digits and ASCII
    only."""
    value = 0
    for character in key:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value ^ value >> 16


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value
