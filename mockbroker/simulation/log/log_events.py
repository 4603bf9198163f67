"""What happens to logs, as values in a bounded ring. Never bytes of records.

Appends are far too many for the action log, which is kept whole; what a tester has to see in it
(records lost, a log that begins later, the first event that the ring drops) is an action
(``mockbroker.simulation.state.actions``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec

from mockbroker.errors import ClusterError
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = [
    "Appended",
    "BatchCorrupted",
    "CodecMissing",
    "Compacted",
    "DataEvent",
    "DataEvents",
    "event_json",
]


class Appended(msgspec.Struct, frozen=True, gc=False):
    """A leader appended a batch. ``producer_id`` is -1 without idempotence; ``size`` is in
    bytes."""

    at_ms: int
    tp: TopicPartition
    first_offset: int
    last_offset: int
    size: int
    producer_id: int = -1


class CodecMissing(msgspec.Struct, frozen=True, gc=False):
    """A batch was refused because the library of its codec is not installed here."""

    at_ms: int
    tp: TopicPartition
    codec: int


class Compacted(msgspec.Struct, frozen=True, gc=False):
    """A log was compacted below ``end_offset``. ``records`` and ``size``, in bytes, are how much it
    lost."""

    at_ms: int
    tp: TopicPartition
    end_offset: int
    records: int
    size: int


class BatchCorrupted(msgspec.Struct, frozen=True, gc=False):
    """A tester damaged the stored batch that begins at ``offset``."""

    at_ms: int
    tp: TopicPartition
    offset: int
    how: str


DataEvent: TypeAlias = Appended | BatchCorrupted | CodecMissing | Compacted


class DataEvents:
    """The newest ``most`` events. ``on_full`` is called when the first of them is dropped."""

    def __init__(self, most: int, on_full: Callable[[], None] = lambda: None) -> None:
        if most < 1:
            raise ClusterError(f"data_actions is {most}; it must be at least 1")
        self._events: deque[DataEvent] = deque(maxlen=most)
        self._most = most
        self._on_full = on_full
        self._count = 0

    @property
    def dropped(self) -> int:
        """How many events gave way to newer ones."""
        return self._count - len(self._events)

    def append(self, event: DataEvent) -> None:
        self._events.append(event)
        self._count += 1
        if self._count == self._most + 1:
            self._on_full()

    def since(self, number: int) -> list[DataEvent]:
        """Return the events from this number on, as far as they are kept. Events are counted from
        0; ``dropped`` is the number of the oldest."""
        return list(self._events)[max(number - self.dropped, 0) :]

    def __iter__(self) -> Iterator[DataEvent]:
        return iter(tuple(self._events))

    def __len__(self) -> int:
        return len(self._events)


def event_json(event: DataEvent) -> dict[str, Any]:
    """Return an event as JSON values, with the name of its kind."""
    fields = msgspec.structs.asdict(event)
    topic, index = fields.pop("tp")
    return {"kind": type(event).__name__, "partition": f"{topic}-{index}", **fields}
