"""JSON as Kafka writes it into znodes, and reading it back with an error that says where.

Kafka writes through Jackson: no blanks, everything beyond ASCII as it is. The order of keys is
that of Scala's maps. Where a map is small, fixed and literal its order is spelled out by whoever
writes it; ``scala_order`` is for the maps keyed by partition.
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
    """Compact JSON with the keys in the order given."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def decode(path: str, data: bytes, shape: type[T]) -> T:
    """Read ``data`` as ``shape``; ``MalformedZnodeError`` names ``path`` and the place in it."""
    if not data:
        raise MalformedZnodeError(path, "empty, and not JSON")
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedZnodeError(path, " ".join(str(error).split())) from None
    except RecursionError:
        raise MalformedZnodeError(path, "nested too deeply") from None


def scala_order(keys: Iterable[str]) -> list[str]:
    """Keys in the order in which Scala 2.13's ``mutable.HashMap`` walks them, as Kafka does.

    By bucket, and within one by hash; the table has 16 buckets and doubles where it would become
    three quarters full. So up to eleven partitions come in ascending order, and of twelve the
    last comes first.
    """
    hashes = {key: _hash(key) for key in keys}
    buckets = 16
    while len(hashes) >= buckets * 3 // 4:
        buckets *= 2
    return sorted(hashes, key=lambda key: (hashes[key] & (buckets - 1), _signed(hashes[key])))


def _hash(key: str) -> int:
    """Java's String.hashCode, as Scala's maps improve it, unsigned. Digits and ASCII only."""
    value = 0
    for character in key:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value ^ value >> 16


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value
