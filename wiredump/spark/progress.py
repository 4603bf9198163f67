"""The progress of a stream: a dictionary for each batch, which the command prints as a line of JSON
on standard error or appends to a file.

The record of a batch has it, so that any process that can read the stream's folder can follow the
stream, beside it or afterwards: also the client of a Connect server, on which the batches run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from wiredump.rows.schema import TABLES
from wiredump.skipped import damage_of, unread_of
from wiredump.spark.stream_folder import Record, StreamFolder
from wiredump.storage import shown
from wiredump.tables.parts import Counts

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Follower", "Progress", "append_line", "summary_of"]

Progress: TypeAlias = Callable[[dict[str, Any]], object]

_PAUSE: Final = 0.2


def summary_of(record: Record, before: Record | None, made: Counts, left: int) -> dict[str, Any]:
    """Return the summary of a batch that made these counts, and ``left`` so many complete files
    unread. ``ended`` and ``seconds`` are added when the batch is published."""
    earlier = before.rows if before is not None else {}
    now = time.time()
    newest = max((each.file.modified_ns for each in record.files), default=0)
    return {
        "batch": record.batch,
        "ended": 0.0,
        "seconds": 0.0,
        "files": len(record.files),
        "last_file": shown(record.files[-1].file.path) if record.files else None,
        "bytes": sum(each.file.size for each in record.files),
        "rows": {
            table: count - earlier.get(table, 0)
            for table, count in record.rows.items()
            if table in TABLES and count > earlier.get(table, 0)
        },
        "unread": unread_of(made.account),
        "damage": damage_of(made.account),
        "lag": {"files": left, "seconds": round(max(0.0, now - newest / 1e9), 3) if newest else 0},
        "state": {
            "entries": sum(each.entries for each in record.state.values()),
            "bytes": sum(used for each in record.state.values() for _, used in each.files.values()),
        },
        "bad": [{"file": shown(each.file.path), "reason": each.reason} for each in record.bad],
        "damaged": record.summary["damaged"],
        "others": record.summary["others"],
    }


class Follower:
    """Calls ``progress`` with the summary of each batch of a stream, from batch ``first`` on."""

    def __init__(self, folder: str, first: int, progress: Progress) -> None:
        self._store = StreamFolder(folder)
        self._next = first
        self._progress = progress

    def poll(self) -> None:
        """Report the batches that were completed since the last time."""
        while (record := self._store.record(self._next)) is not None:
            self._next += 1
            self._progress(record.summary)

    def follow(self, query: StreamingQuery) -> None:
        """Report batches from another thread, as long as the query runs."""

        def run() -> None:
            while query.isActive:
                self.poll()
                time.sleep(_PAUSE)
            self.poll()

        threading.Thread(target=run, name="wiredump-progress", daemon=True).start()


def append_line(path: str, line: str) -> None:
    """Append a line to a file of progress, which other programs may read meanwhile."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{line}\n")
