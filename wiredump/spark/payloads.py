"""Read payloads back from captures by position: packets of local captures are shuffled without
them. Those of remote captures travel with their rows.

Few files are open at a time, and payloads that are close together are read at once.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

from wiredump.spark.runs import Entries
from wiredump.storage import ChangedError

__all__ = ["Payloads"]

_FILES: Final = 64
_MOST_SKIPPED: Final = 4096
"""Up to this many bytes between two payloads are read rather than skipped."""
_MOST: Final = 1 << 20
"""The most bytes read at once."""


class Payloads:
    """``paths`` are those of captures by number; ``copies`` those of what the compressed ones hold,
    where there are any. Rows come in the order in which they are needed."""

    def __init__(self, paths: Mapping[int, str], copies: Mapping[int, str] | None = None) -> None:
        self._paths = dict(paths)
        self._copies = copies or {}
        self._files: OrderedDict[int, int] = OrderedDict()
        self._open: tuple[tuple[int, int], ...] = ()
        self._captures: list[int] = []
        self._places: list[int] = []
        self._sizes: list[int] = []
        self._held = memoryview(b"")
        self._start = self._end = 0
        self._capture = -1

    def expect(self, captures: list[int], places: list[int], sizes: list[int]) -> None:
        """Set the rows whose payloads will be read, by number."""
        self._captures, self._places, self._sizes = captures, places, sizes

    def payload(self, row: int) -> memoryview:
        """Return the payload of a row."""
        place, size = self._places[row], self._sizes[row]
        if place < self._start or place + size > self._end or self._captures[row] != self._capture:
            self._read(row)
        at = place - self._start
        return self._held[at : at + size]

    def _read(self, row: int) -> None:
        """Read the payload of a row, and of the rows after it that are close."""
        capture, start = self._captures[row], self._places[row]
        end = start + self._sizes[row]
        places, sizes, captures = self._places, self._sizes, self._captures
        for following in range(row + 1, len(places)):
            place = places[following]
            if not sizes[following]:
                continue
            if captures[following] != capture or not end <= place <= end + _MOST_SKIPPED:
                break
            if place + sizes[following] - start > _MOST:
                break
            end = place + sizes[following]
        data = self._pread(capture, start, end)
        self._held, self._start, self._end, self._capture = memoryview(data), start, end, capture

    def _file(self, capture: int) -> int:
        file = self._files.pop(capture, None)
        if file is None:
            copy = self._copies.get(capture)
            if copy is not None and os.path.exists(copy):
                self._paths[capture] = copy
            file = os.open(self._paths[capture], os.O_RDONLY)
            if len(self._files) >= _FILES:
                os.close(self._files.popitem(last=False)[1])
        self._files[capture] = file
        self._open = ()
        return file

    def _pread(self, capture: int, start: int, end: int) -> bytes:
        data = os.pread(self._file(capture), end - start, start)
        if len(data) < end - start:
            raise self._shorter(capture)
        return data

    def _shorter(self, capture: int) -> ChangedError:
        return ChangedError(f"{self._paths[capture]} was truncated while it was being read")

    def bulk(self, module: ModuleType, run: Entries, data: bytes | None) -> Iterator[Any]:
        """Yield the packets of a run in bulk, in the form of the extension. ``data`` has their
        bytes; None: they are read from the capture."""
        if data is not None:
            yield module.carried_run(run, data)
            return
        number, count = 0, len(run)
        while number < count:
            try:
                packets, number = module.read_run(run, number, self._open, _MOST)
            except EOFError as error:
                raise self._shorter(int(str(error))) from None
            if packets is not None:
                yield packets
                continue
            self._file(int(run["capture"][number]))
            self._open = tuple(self._files.items())

    def close(self) -> None:
        """Close every file."""
        while self._files:
            os.close(self._files.popitem()[1])
        self._start = self._end = 0
