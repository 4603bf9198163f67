"""How many processes are worth starting for some captures.

Processes share connections, so a capture of one connection is read by one. Starting the others and
merging what they set aside takes as long as reading the first few megabytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from wiredump.readers import Account, Capture, Packet
from wiredump.readers.flows import reverse
from wiredump.readers.segments import SegmentReader
from wiredump.sources.kinds import kind_of
from wiredump.storage import Location

__all__ = ["useful_processes"]

_BYTES_A_PROCESS: Final = 16 << 20
"""Below 32 MB, two processes take longer than one to write all tables of small messages."""
_PACKETS: Final = 1024
"""Packets of each capture that are looked at for a second connection."""


def useful_processes(paths: Sequence[str], most: int) -> int:
    """Return the number of processes, at most ``most``. Raises OSError."""
    captures = [path for path in paths if path == "-" or kind_of(path) == "capture"]
    if most < 2 or "-" in captures:
        return most
    size = sum(Location(path).info().size for path in captures)
    number = min(most, size // _BYTES_A_PROCESS)
    return max(1, number) if number > 1 and _has_several_pairs(captures) else 1


def _has_several_pairs(captures: Iterable[str]) -> bool:
    """Whether the first packets of captures are between more than two ends."""
    pairs = set[bytes]()
    for path in captures:
        segments = SegmentReader(Account())
        with Location(path).open() as file, Capture(file) as capture:
            for packet in islice(capture, _PACKETS):
                found = segments.feed(packet, []) if isinstance(packet, Packet) else None
                if found is not None:
                    pairs.add(min(found.flow, reverse(found.flow)))
                if len(pairs) > 1:
                    return True
    return False
