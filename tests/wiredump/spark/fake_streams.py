"""Structured Streaming without Java: the calls that Spark makes to a source and to foreachBatch,
and the logs of offsets and commits by which it repeats the batch that was killed."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from tests.wiredump.spark.fake_session import FakeSession
from wiredump.spark.capture_files import CaptureFiles, FileReader
from wiredump.spark.streaming import Stream, _Each
from wiredump.storage import Location

Offset = dict[str, Any]


class _Rows(NamedTuple):
    sparkSession: FakeSession  # Spark's name
    rows: list[tuple[Any, ...]]

    def collect(self) -> list[tuple[Any, ...]]:
        return self.rows


class _Log:
    """One of Spark's logs: a file a batch, which is there as a whole or not at all."""

    def __init__(self, folder: Location) -> None:
        self._folder = folder

    def last(self) -> int:
        found = self._folder.listed(recursive=False)
        return max((int(name) for name, _ in found if name.isdigit()), default=-1)

    def read(self, batch: int) -> Offset:
        found: Offset = json.loads((self._folder / str(batch)).read_bytes())
        return found

    def write(self, batch: int, offset: Offset) -> None:
        self._folder.mkdir()
        (self._folder / str(batch)).replace_bytes(json.dumps(offset).encode())


def run_query(session: FakeSession, stream: Stream, *, available_now: bool) -> int:
    """Run a query until there is nothing to do; returns how many batches it ran."""
    stream.begin(session)  # type: ignore[arg-type]
    each = _Each(stream.batch)
    reader = CaptureFiles(stream.source_options).streamReader(None)
    assert isinstance(reader, FileReader)
    checkpoint = Location(stream.checkpoint)
    offsets, commits = _Log(checkpoint / "offsets"), _Log(checkpoint / "commits")
    if available_now:
        reader.prepareForTriggerAvailableNow()
    # As Spark: the last batch of the log is repeated, unless it is the last that was committed.
    batch, ran = offsets.last(), 0
    if batch >= 0 and commits.last() != batch:
        batch -= 1
    start = offsets.read(batch) if batch >= 0 else reader.initialOffset()
    while True:
        batch += 1
        if offsets.last() == batch:
            end = offsets.read(batch)
        else:
            end = _through_json(reader.latestOffset(start, reader.getDefaultReadLimit()))
            if end == start:
                return ran
            offsets.write(batch, end)
        parts = reader.partitions(start, end)
        each(_Rows(session, [row for part in parts for row in reader.read(part)]), batch)
        commits.write(batch, {})
        start, ran = end, ran + 1


def _through_json(offset: Offset) -> Offset:
    found: Offset = json.loads(json.dumps(offset))
    return found


class FinishedQuery:
    """A query that has ended."""

    isActive = False  # Spark's names

    def awaitTermination(self) -> bool:
        return True

    def stop(self) -> None:
        return


def start(stream: Stream, session: FakeSession, when: object) -> FinishedQuery:
    """Stands for ``Stream.start``: runs the query to its end."""
    run_query(session, stream, available_now=True)
    return FinishedQuery()
