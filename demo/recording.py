"""What the clusters of the demo hear and say, as one journal.

Each client has a cluster of its own, and each cluster counts from one: here their brokers and
entries get numbers that are nobody else's, so that what reads the journal sees them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

import msgspec

from kproto.journal import Entry

__all__ = ["Recording"]

_APART: Final = 100
"""Between the broker ids of one cluster and the next."""


class Recording:
    """``write`` takes entries in order."""

    def __init__(self, write: Callable[[Entry], object]) -> None:
        self._write = write
        self._clusters = 0
        self._numbers = count(1)

    def cluster(self) -> Callable[[Entry], object]:
        """What the journal of the next cluster writes to."""
        first = _APART * self._clusters
        self._clusters += 1

        def sink(entry: Entry) -> None:
            self._write(
                msgspec.structs.replace(
                    entry, sequence=next(self._numbers), broker_id=first + entry.broker_id
                )
            )

        return sink
