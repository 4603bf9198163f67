"""Records of groups on their way to ``__consumer_offsets``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TypeAlias

from kproto.codec.message import Message
from mockbroker.simulation.groups.modern.group_topics import TopicFacts

__all__ = ["RecordWriter", "StoredRecord", "metadata_hash"]

StoredRecord: TypeAlias = tuple[Message, Message | None]
"""Key and value; no value deletes what the key names."""


class RecordWriter:
    """Keeps what changed until the end of a request or a timer, and writes it as one batch."""

    def __init__(self, write: Callable[[str, Iterable[StoredRecord]], None]) -> None:
        self._write = write
        self._unwritten: list[StoredRecord] = []

    def note(self, *records: StoredRecord) -> None:
        """Keep records for the next ``write_noted``."""
        self._unwritten += records

    def write_noted(self, group_id: str) -> bool:
        """Write what was noted for a group. Returns whether there was anything."""
        records, self._unwritten = self._unwritten, []
        if records:
            self._write(group_id, records)
        return bool(records)


def metadata_hash(facts: tuple[TopicFacts, ...]) -> int:
    """A signed number of 64 bits, 0 for no topics.

    It is not Kafka's: it only ever is compared with others of the same coordinator.
    """
    if not facts:
        return 0
    digest = hashlib.blake2b(repr(facts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
