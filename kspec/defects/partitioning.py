"""Defects about the partition of a key."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kspec.defects.declaration import defect
from kspec.reference_client.murmur2 import murmur2
from kspec.reference_client.producer import Producer

__all__: list[str] = []

_SIGN: Final = 0x7FFFFFFF


def _key(record: Mapping[str, Any]) -> bytes:
    return (record.get("key") or "").encode()


@defect("hashes-keys-by-crc32")
class HashesKeysByCrc32(Producer):
    """Chooses partitions by a hash of its own."""

    def partition_of(self, record: Mapping[str, Any], count: int) -> int:
        return zlib.crc32(_key(record)) % count


@defect("ignores-keys")
class IgnoresKeys(Producer):
    """Writes records of any key to a partition that it likes."""

    def partition_of(self, record: Mapping[str, Any], count: int) -> int:
        return 0


@defect("forgets-the-rest-of-a-key")
class ForgetsTheRestOfAKey(Producer):
    """Hashes four bytes at a time, and not those that are left."""

    def partition_of(self, record: Mapping[str, Any], count: int) -> int:
        key = _key(record)
        return (murmur2(key[: len(key) & ~3]) & _SIGN) % count


@defect("takes-the-absolute-value-of-a-hash")
class TakesTheAbsoluteValueOfAHash(Producer):
    """Takes a negative hash for its opposite, where Kafka clears the sign."""

    def partition_of(self, record: Mapping[str, Any], count: int) -> int:
        hashed = murmur2(_key(record))
        return (hashed if hashed <= _SIGN else 2**32 - hashed) % count


@defect("hashes-signed-bytes")
class HashesSignedBytes(Producer):
    """Hashes the bytes of a key in Latin-1, as one that takes characters for bytes."""

    def partition_of(self, record: Mapping[str, Any], count: int) -> int:
        key = (record.get("key") or "").encode("latin-1", "replace")
        return (murmur2(key) & _SIGN) % count


@defect("hashes-over-partitions-with-leaders")
class HashesOverPartitionsWithLeaders(Producer):
    """Chooses among the partitions that have a leader."""

    def partition_of(self, record: Mapping[str, Any], count: int) -> int:
        led = [
            index for index in range(count)
            if self.topics.leaders.get((record["topic"], index), -1) >= 0
        ]  # fmt: skip
        return led[(murmur2(_key(record)) & _SIGN) % len(led)] if led else 0

    async def partitioned(
        self, records: Sequence[Mapping[str, Any]], ends: float
    ) -> list[Mapping[str, Any]]:
        self.topics.counts.clear()
        return await super().partitioned(records, ends)


@defect("hashes-in-spite-of-a-partition")
class HashesInSpiteOfAPartition(Producer):
    """Hashes the key of a record whose partition the application chose."""

    async def partitioned(
        self, records: Sequence[Mapping[str, Any]], ends: float
    ) -> list[Mapping[str, Any]]:
        without = [{**each, "partition": None} for each in records]
        return await super().partitioned(without, ends)


@defect("takes-partitions-in-turn")
class TakesPartitionsInTurn(Producer):
    """Gives each record the next partition, whatever its key is."""

    turn = -1

    def partition_of(self, record: Mapping[str, Any], count: int) -> int:
        self.turn += 1
        return self.turn % count


@defect("hashes-over-the-first-count")
class HashesOverTheFirstCount(Producer):
    """Hashes for ever over the number of partitions that a topic had at first."""

    first: int | None = None

    def partition_of(self, record: Mapping[str, Any], count: int) -> int:
        self.first = self.first or count
        return super().partition_of(record, self.first)


@defect("takes-an-empty-key-for-none")
class TakesAnEmptyKeyForNone(Producer):
    """Writes records whose key is empty to a partition that it likes."""

    def partition_of(self, record: Mapping[str, Any], count: int) -> int:
        return super().partition_of(record, count) if record.get("key") else count - 1


@defect("hashes-the-beginning-of-a-key")
class HashesTheBeginningOfAKey(Producer):
    """Hashes at most 64 bytes of a key."""

    def partition_of(self, record: Mapping[str, Any], count: int) -> int:
        return (murmur2(_key(record)[:64]) & _SIGN) % count
