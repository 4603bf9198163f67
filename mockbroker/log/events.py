"""What happens to logs, as values in a bounded ring. Never bytes of records.

Appends are far too many for the action log, which is kept whole; what a tester has to see in it
(records lost, a log that begins later) is an action (``mockbroker.state.actions``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from mockbroker.state.model import TopicPartition

__all__ = [
    "MOST_EVENTS",
    "Appended",
    "BatchCorrupted",
    "CodecMissing",
    "Compacted",
    "DataEvent",
    "DataEvents",
]

MOST_EVENTS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Appended:
    """A leader appended a batch. ``producer_id`` is -1 without idempotence; ``size`` is in
    bytes."""

    at_ms: int
    tp: TopicPartition
    first_offset: int
    last_offset: int
    size: int
    producer_id: int = -1


@dataclass(frozen=True, slots=True)
class CodecMissing:
    """A batch was refused because the library of its codec is not installed here."""

    at_ms: int
    tp: TopicPartition
    codec: int


@dataclass(frozen=True, slots=True)
class Compacted:
    """A log was compacted below ``end_offset``. ``records`` and ``size``, in bytes, are how much it
    lost."""

    at_ms: int
    tp: TopicPartition
    end_offset: int
    records: int
    size: int


@dataclass(frozen=True, slots=True)
class BatchCorrupted:
    """A tester damaged the stored batch that begins at ``offset``."""

    at_ms: int
    tp: TopicPartition
    offset: int
    how: str


DataEvent: TypeAlias = Appended | BatchCorrupted | CodecMissing | Compacted


class DataEvents:
    """The newest events; ``dropped`` counts those that gave way to them."""

    def __init__(self, most: int = MOST_EVENTS) -> None:
        self._events: deque[DataEvent] = deque(maxlen=most)
        self._count = 0

    @property
    def dropped(self) -> int:
        return self._count - len(self._events)

    def append(self, event: DataEvent) -> None:
        self._events.append(event)
        self._count += 1

    def __iter__(self) -> Iterator[DataEvent]:
        return iter(tuple(self._events))

    def __len__(self) -> int:
        return len(self._events)
