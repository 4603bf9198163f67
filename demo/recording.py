"""Merge the journals of the demo's clusters into one.

Each client has its own cluster, and each cluster numbers its brokers and entries from one. Here
they get unique numbers, so that readers of the journal can tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

import msgspec

from kproto.journal import Entry

__all__ = ["Recording"]

_APART: Final = 100
"""Offset between the broker ids of one cluster and the next."""


class Recording:
    """Calls ``write`` with entries in order."""

    def __init__(self, write: Callable[[Entry], object]) -> None:
        self._write = write
        self._clusters = 0
        self._numbers = count(1)

    def cluster(self) -> Callable[[Entry], object]:
        """Return the sink for the journal of the next cluster."""
        first = _APART * self._clusters
        self._clusters += 1

        def sink(entry: Entry) -> None:
            self._write(
                msgspec.structs.replace(
                    entry, sequence=next(self._numbers), broker_id=first + entry.broker_id
                )
            )

        return sink
