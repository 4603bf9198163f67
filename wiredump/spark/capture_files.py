"""The files of a rotating capture as a source of Structured Streaming: a row a file.

An offset has the files of its batch, so that Spark's log says which files a batch has, whatever is
in the folder when the batch is repeated. What earlier batches took is read once, from the stream's
folder.

Spark runs the reader in a process of its own. It needs the interfaces of Spark 4.2 (limits of a
batch, ``availableNow``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from kproto.errors import MissingExtraError
from wiredump.spark.rotation import FaultError, Rotated, Rotation, complete
from wiredump.spark.stream_folder import Bad, Planned, StreamError, StreamFolder, Taken
from wiredump.storage import shown

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        SupportsTriggerAvailableNow,
    )
except ImportError:
    raise MissingExtraError("streams need Spark 4.2 or later", extra="spark") from None

__all__ = ["FORMAT", "CaptureFiles", "FileReader", "planned_of"]

FORMAT: Final = "kafka_capture_files"
_SCHEMA: Final = (
    "what string, number int, path string, kind string, size long, modified_ns long, "
    "first_ns long, head long, reason string"
)


_HEADS: Final = 1000
"""Files whose copies are recognised. Of earlier ones the time tells that they are late."""


class _Offset(msgspec.Struct, frozen=True, kw_only=True):
    """Where a batch ends. ``count`` files were taken so far, ``last`` is the last of them."""

    count: int = 0
    last: Rotated | None = None
    planned: Planned = Planned(files=[])


class CaptureFiles(DataSource):
    """The data source, which ``stream`` registers and reads."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return _SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return FileReader({name.lower(): value for name, value in self.options.items()})


class _Files(InputPartition):
    def __init__(self, planned: bytes) -> None:
        super().__init__(planned)
        self.planned = planned


class FileReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Finds files; options have lower-case names: ``path``, ``folder`` (of the stream),
    ``maxfiles``, ``maxbytes``, ``closed`` (no file is being written) and ``onbadfile``."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._where = options["path"]
        self._folder = options["folder"]
        self._max_files = int(options["maxfiles"]) if "maxfiles" in options else None
        self._max_bytes = int(options["maxbytes"]) if "maxbytes" in options else None
        self._closed = options.get("closed") == "true"
        self._fails = options.get("onbadfile", "fail") == "fail"
        self._rotation: Rotation | None = None
        self._taken: dict[str, Rotated] = {}
        self._heads: dict[int, str] = {}
        self._named: set[str] = set()
        self._there: set[tuple[str, int | None]] | None = None

    # -- Spark's calls -----------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        settings = StreamFolder(self._folder).settings
        skipped = settings.skipped if settings is not None else []
        return _built(_Offset(last=skipped[-1] if skipped else None))

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()  # the limits of this class are tighter

    def prepareForTriggerAvailableNow(self) -> None:
        self._there = {(each.path, each.first_ns) for each in self._files.files()}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        before, files = _read(start), self._files
        self._take(self._read_in(before))
        bad: list[Bad] = []
        ready = self._ready(before, bad)
        taken: list[Rotated] = []
        size = 0
        for each in ready:
            size += each.size
            if taken and (
                len(taken) == self._max_files
                or (self._max_bytes is not None and size > self._max_bytes)
            ):
                break
            taken.append(each)
        others = [each for each in files.others if each not in self._named]
        if not taken and not bad:
            return start
        self._named.update(others)
        self._take(taken)
        self._taken |= {each.file.stem: each.file for each in bad}
        numbered = [Taken(number, file) for number, file in enumerate(taken, before.count)]
        left = len(ready) - len(taken)
        planned = Planned(files=numbered, bad=bad, others=others, left=left)
        last = taken[-1] if taken else before.last
        return _built(_Offset(count=before.count + len(taken), last=last, planned=planned))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [_Files(msgspec.json.encode(_read(end).planned))] if start != end else []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, _Files)
        planned = msgspec.json.decode(partition.planned, type=Planned)
        nothing = (None,) * 6
        for each in planned.files:
            yield "file", each.number, *_row(each.file), ""
        for bad in planned.bad:
            yield "bad", -1, *_row(bad.file), bad.reason
        for other in planned.others:
            yield "other", -1, other, *nothing[1:], ""
        yield "left", planned.left, *nothing, ""

    def commit(self, end: dict[str, Any]) -> None:
        return

    def stop(self) -> None:
        return

    # -- files -------------------------------------------------------------------------------

    @property
    def _files(self) -> Rotation:
        """The rotation, which knows the files of earlier batches that are still there."""
        if self._rotation is None:
            store = StreamFolder(self._folder)
            present = Rotation(self._where).listed_stems()
            settings = store.settings
            taken = {each.stem: each for each in (settings.skipped if settings else [])}
            self._note(taken.values())
            for noted in store.noted():
                read = [each.file for each in noted.files]
                self._note(read)
                files = [*read, *(each.file for each in noted.bad)]
                taken |= {file.stem: file for file in files if file.stem in present}
            self._taken = taken | self._taken
            self._rotation = Rotation(self._where, self._taken.values())
        return self._rotation

    def _take(self, files: Iterable[Rotated]) -> None:
        for each in files:
            self._taken[each.stem] = each
            self._note([each])

    def _note(self, files: Iterable[Rotated]) -> None:
        """Keep the beginnings of the last files that are read."""
        self._heads |= {each.head: each.path for each in files if each.head}
        for head in list(self._heads)[:-_HEADS]:
            del self._heads[head]

    def _read_in(self, before: _Offset) -> list[Rotated]:
        """Return the files of the batch that ends there, as it read them: some had grown."""
        record = StreamFolder(self._folder).last() if before.planned.files else None
        files = before.planned.files
        if record is not None and record.count == before.count:
            files = record.files
        return [each.file for each in files]

    def _ready(self, before: _Offset, bad: list[Bad]) -> list[Rotated]:
        """Return the files that can be taken: those that are complete and, with ``availableNow``,
        were there when the query began."""
        rotation = self._files
        found = rotation.new(self._taken, before.last, self._heads)
        present = rotation.stems
        self._taken = {stem: file for stem, file in self._taken.items() if stem in present}
        for fault in found.faults:
            if self._fails:
                raise FaultError(fault.reason)
            bad.append(Bad(fault.file, fault.reason))
        if found.files and (last := StreamFolder(self._folder).last_of_all) is not None:
            raise StreamError(
                f"{shown(found.files[0].path)} comes after the stream has ended with batch "
                f"{last}: start a new one, with another checkpoint and --start-after"
            )
        ready = found.files if self._closed else complete(found.files)
        if self._there is None:
            return ready
        return [each for each in ready if (each.path, each.first_ns) in self._there]


def _row(file: Rotated) -> tuple[Any, ...]:
    return file.path, file.kind, file.size, file.modified_ns, file.first_ns, file.head


def _built(offset: _Offset) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(offset)
    return built


def _read(offset: Mapping[str, Any]) -> _Offset:
    return msgspec.convert(offset, _Offset)


def planned_of(rows: Sequence[Any]) -> Planned:
    """Return what the rows of a batch say."""
    files, bad, others, left = [], [], [], 0
    for what, number, path, kind, size, modified_ns, first_ns, head, reason in rows:
        if what == "left":
            left = number
        elif what == "other":
            others.append(path)
        else:
            file = Rotated(path, size, modified_ns, first_ns, kind, head)
            if what == "file":
                files.append(Taken(number, file))
            else:
                bad.append(Bad(file, reason))
    files.sort(key=lambda each: each.number)
    return Planned(files=files, bad=bad, others=others, left=left)
