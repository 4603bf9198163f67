"""What a stream keeps between batches beside Spark's own checkpoint: a folder with the unfinished
state, and a record of each batch.

::

    stream.json             the settings of the stream, with which later runs have to agree
    batches/000007.json     the record of batch 7, written when readers can see its rows
    files/000000-000100     what the records of these batches say of files, a line each
    state/000007/           connections that continue after batch 7 (``state``), an index a task
    data/000007/            their data, as written by batch 7
    fragments/000007        incomplete datagrams
    names/000007.parquet    names of topics from batches up to 7
    excerpts/000007-00001   exchanges that others depend on, for the tables that follow them
    unnamed/TABLE/          rows that wait for a topic's name
    ending.json             the end has begun: only it can follow
    end.json                the result of the end, after which nothing follows
    work/                   files of the batch that is running
    work/made.json          the batch is made, and is being published

Spark's log decides which files are batch 7. The rest is a function of those files and of record 6,
and has fixed names, so that a batch that is repeated replaces what it left before. Once it is made,
it is not made again, but published again. Record 7 comes last. What only earlier batches needed is
removed after it.

Records are few, however many batches there were: a hundred are merged into a file of ``files``, and
a hundred of those, and excerpts likewise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import pyarrow.parquet as pq

from kproto.errors import KprotoError
from kproto.outputs.locks import has_locks, is_locked, locked
from wiredump.spark.rotation import Rotated
from wiredump.spark.sinks import Layout
from wiredump.spark.state import State
from wiredump.storage import Location, absolute, shown
from wiredump.tables.deferred_rows import EXCERPTS, schema_of
from wiredump.tables.parts import Counts
from wiredump.tables.publishing import Part

__all__ = [
    "RESTORE",
    "Bad",
    "BatchMade",
    "Ended",
    "Planned",
    "Record",
    "Settings",
    "StreamError",
    "StreamFolder",
    "Taken",
    "Waiting",
    "put",
]

RESTORE: Final = (
    "restore the checkpoint and its state, both as of one moment; or begin a new stream with "
    "another --checkpoint, with --mode append and --start-after the last file that was read"
)
_VERSION: Final = 2
_KINDS: Final = ("state", "data", "fragments", "names")
_MERGED: Final = 100
"""Records, and files of merged records, that are merged into one."""
_Record = TypeVar("_Record")


class StreamError(KprotoError):
    """A stream cannot be continued. The message has the reason and a remedy."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The options that a stream was started with. ``idle_ns``: how long a connection may be silent
    before it counts as ended; None for ever. ``zone`` is the name of the time zone of request logs;
    None in streams of earlier releases. ``skipped`` are the files up to ``--start-after``, ``id``
    tells the numbers of this stream's batches from those of another one."""

    where: str
    out: str
    partitions: int
    tables: tuple[str, ...]
    dialect: str
    ports: tuple[int, ...]
    bodies: bool
    values: bool
    secrets: bool
    idle_ns: int | None
    zone: str | None = None
    run: str = ""
    skipped: list[Rotated] = []
    layout: Layout = Layout()
    id: str = ""
    version: int = _VERSION


class Taken(msgspec.Struct, frozen=True):
    """A file, and its number among all files of the stream."""

    number: int
    file: Rotated


class Bad(msgspec.Struct, frozen=True):
    """A file without rows, and the reason."""

    file: Rotated
    reason: str


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """What Spark's log says of a batch: its files, those at fault, the names of files that are of
    no kind, and how many files were left for later batches."""

    files: list[Taken]
    bad: list[Bad] = []
    others: list[str] = []
    left: int = 0


class Waiting(msgspec.Struct, frozen=True):
    """The topic ids without a name in a file of rows, and the time of the batch that wrote it."""

    ids: list[str]
    since_ns: int


class Noted(msgspec.Struct, kw_only=True):
    """What a record says of the batch's files: bytes read and times by number."""

    batch: int
    files: list[Taken] = []
    bad: list[Bad] = []
    read: dict[int, int] = {}
    times: dict[int, tuple[int, int]] = {}


class Record(Noted, kw_only=True):
    """The result of a batch. ``count`` files were taken so far, ``last`` is the last of them, and
    ``newest_ns`` the latest time of a first packet; ``total`` and ``rows`` sum all batches.
    ``excerpts`` counts rows that were set aside for the end; None in records of earlier releases.
    ``summary`` is what ``progress`` says of this batch alone, ``learnt`` whether it showed a port
    of brokers that no earlier one did."""

    count: int
    learnt: bool = False
    last: Rotated | None = None
    newest_ns: int = 0
    state: dict[int, State] = {}
    fragments: str | None = None
    names: str | None = None
    unnamed: dict[str, Waiting] = {}
    total: Counts = msgspec.field(default_factory=Counts)
    rows: dict[str, int] = {}
    excerpts: int | None = None
    summary: dict[str, Any] = {}


class BatchMade(msgspec.Struct):
    """A batch whose files tasks wrote: its record, and the files."""

    record: Record
    parts: list[dict[str, Part]]


class Ended(msgspec.Struct, kw_only=True):
    """The end, behind ``batch``: rows by table and the account of everything."""

    batch: int
    rows: dict[str, int]
    account: dict[str, int]
    connections: int


# Made once: while threads make decoders of the same class for the first time, msgspec may crash.
_SETTINGS: Final = msgspec.json.Decoder(Settings)
_RECORD: Final = msgspec.json.Decoder(Record)
_NOTED: Final = msgspec.json.Decoder(Noted)
_ENDED: Final = msgspec.json.Decoder(Ended)
_MADE: Final = msgspec.json.Decoder(BatchMade)
_BATCH: Final = msgspec.json.Decoder(int)


class Span(NamedTuple):
    """Batches from ``first`` up to, without, ``end``."""

    first: int
    end: int

    @property
    def name(self) -> str:
        return f"{self.first:06d}-{self.end:06d}"

    @classmethod
    def named(cls, name: str) -> Span:
        """Parse the name of a file of merged records."""
        first, _, end = name.partition("-")
        return cls(int(first), int(end))


class StreamFolder:
    """The folder of a stream."""

    def __init__(self, folder: str) -> None:
        self.folder = Location(absolute(folder))

    @contextmanager
    def changing(self) -> Iterator[None]:
        """For the block, be the only one that runs a batch or the end. Raises StreamError if
        another driver does; only local file systems tell."""
        if not self.folder.is_local or not has_locks():
            yield
            return
        if not self.folder.is_dir():
            raise StreamError(f"{self.folder.shown} is gone: {RESTORE}")
        with locked(self.folder.path) as is_alone:
            if not is_alone and is_locked(self.folder.path):
                raise StreamError(
                    f"another driver is running the stream of {self.folder.shown}: wait for its "
                    "end, or stop it, and start again"
                )
            yield

    def path(self, name: str) -> str:
        """Return the path of a file that a record names."""
        return str(self.folder / name)

    # -- records -----------------------------------------------------------------------------

    def _read(self, name: str, decoder: msgspec.json.Decoder[_Record]) -> _Record | None:
        place = self.folder / name
        try:
            return decoder.decode(place.read_bytes())
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise StreamError(f"cannot read {place.shown}: {error}") from None

    def _write(self, name: str, record: Any) -> None:
        place = self.folder / name
        place.parent.mkdir()
        place.replace_bytes(msgspec.json.encode(record))

    @property
    def settings(self) -> Settings | None:
        """The options of the stream that was started here; None without one."""
        return self._read("stream.json", _SETTINGS)

    def begin(self, settings: Settings) -> None:
        """Begin a stream. Raises StreamError if one was begun with other settings."""
        before = self.settings
        if before is None:
            self._write("stream.json", settings)
            return
        for name in settings.__struct_fields__:
            was, now = getattr(before, name), getattr(settings, name)
            if was != now and not (name == "zone" and was is None):
                was, now = (shown(each) if isinstance(each, str) else each for each in (was, now))
                raise StreamError(
                    f"{self.folder.shown} was started with {name} {was!r}, but this run has "
                    f"{now!r}: the two must be equal"
                )

    def record(self, batch: int) -> Record | None:
        """Return the record of a batch; None without one."""
        return self._read(_name(batch), _RECORD)

    @property
    def batches(self) -> int:
        """How many batches have a record."""
        return max((batch for batch in self._numbers()), default=-1) + 1

    def last(self) -> Record | None:
        """The record of the last batch."""
        batches = self.batches
        return self.record(batches - 1) if batches else None

    def require_whole(self) -> None:
        """Raise StreamError unless everything is there that the next batch continues."""
        record = self.last()
        if record is None:
            kept_numbers = (
                _number(name)
                for kind in _KINDS
                for name, _ in (self.folder / kind).listed(recursive=False)
            )
            if self._merged() or any(number > 0 for number in kept_numbers):
                raise StreamError(f"{self.folder.shown} lacks all records of batches: {RESTORE}")
            return
        done = 0
        for span in self._merged():
            done = span.end if span.first == done else 0
        kept = set(self._numbers())
        lacking = [_name(batch) for batch in range(done, record.batch) if batch not in kept]
        wanted = [each for each in (record.fragments, record.names, *record.unnamed) if each]
        for task, each in record.state.items():
            data = (f"data/{batch:06d}/part-{task:05d}" for batch in each.files)
            wanted += [each.index, *data]
        lacking += [each for each in wanted if not (self.folder / each).is_file()]
        if lacking:
            raise StreamError(f"{self.folder.shown} lacks {lacking[0]}: {RESTORE}")

    def _numbers(self) -> list[int]:
        found = (self.folder / "batches").listed(recursive=False)
        return [int(name[:-5]) for name, _ in found if name.endswith(".json")]

    def commit(self, record: Record) -> None:
        """Write the record of a batch."""
        self._write(_name(record.batch), record)

    @property
    def ended(self) -> Ended | None:
        """The end; None if the stream goes on."""
        return self._read("end.json", _ENDED)

    def end(self, ended: Ended) -> None:
        """Record that nothing follows."""
        self._write("end.json", ended)

    @property
    def last_of_all(self) -> int | None:
        """The batch behind which the stream ends, or has begun to; None if it goes on."""
        return self._read("ending.json", _BATCH)

    def begin_end(self, batch: int) -> None:
        """Record that only the end can follow."""
        self._write("ending.json", batch)

    @property
    def made(self) -> BatchMade | None:
        """The batch that was made, and may have been published; None without one."""
        return self._read("work/made.json", _MADE)

    def keep_made(self, made: BatchMade) -> None:
        """Record that a batch was made."""
        self._write("work/made.json", made)

    # -- files of all batches ----------------------------------------------------------------

    def noted(self) -> Iterator[Noted]:
        """Yield what the records say of files, in order."""
        merged = self._merged()
        done = 0
        for span in merged:
            done = span.end
            with (self.folder / "files" / span.name).open() as file:
                yield from map(_NOTED.decode, file)
        for batch in sorted(self._numbers()):
            if batch >= done:
                found = self.record(batch)
                assert found is not None
                yield found

    def _merged(self) -> list[Span]:
        """Return the files of merged records, without those that a larger one has."""
        names = [name for name, _ in (self.folder / "files").listed(recursive=False)]
        return _largest(Span.named(name) for name in names if not name.endswith(".new"))

    def excerpts(self, record: Record | None) -> list[str]:
        """Return the paths of the files of excerpts. Raises StreamError if some are lacking."""
        places = [self.folder / EXCERPTS / name for _, name in self._excerpts()]
        if record is not None and record.excerpts is not None:
            found = sum(map(_rows_in, places))
            if found != record.excerpts:
                raise StreamError(
                    f"{(self.folder / EXCERPTS).shown} has {found} rows instead of "
                    f"{record.excerpts}: {RESTORE}"
                )
        return list(map(str, places))

    def _excerpts(self) -> list[tuple[Span, str]]:
        """Return the files of excerpts and their batches, without those that were merged."""
        found = []
        for name, _ in (self.folder / EXCERPTS).listed(recursive=False):
            first, _, rest = name.partition("-")
            end, is_merged, _ = rest.partition(".merged")
            span = Span(int(first), int(end) if is_merged else int(first) + 1)
            found.append((span, name))
        whole = _largest(span for span, name in found if ".merged" in name)
        return sorted(
            (span, name)
            for span, name in found
            if span in whole or not any(_has(each, span) for each in whole)
        )

    # -- what later batches do not need ------------------------------------------------------

    def compact(self, record: Record) -> None:
        """Remove what only earlier batches needed, and merge what grows with their number."""
        used = {record.fragments, record.names}
        used |= {f"data/{batch:06d}" for each in record.state.values() for batch in each.files}
        for kind in _KINDS:
            for name, _ in (self.folder / kind).listed(recursive=False):
                path = f"{kind}/{name}"
                if _number(name) < record.batch and path not in used:
                    (self.folder / path).remove()
        for name, about in (self.folder / "unnamed").listed(recursive=True):
            if about.is_file and f"unnamed/{name}" not in record.unnamed:
                (self.folder / "unnamed" / name).unlink()
        self._merge_records(record.batch + 1)
        self._merge_excerpts(record.batch + 1)

    def _merge_records(self, count: int) -> None:
        merged, numbers = self._merged(), self._numbers()
        done = merged[-1].end if merged else 0
        for first in range(done, count - count % _MERGED, _MERGED):
            span = Span(first, first + _MERGED)
            with _Replacing(self.folder / "files" / span.name) as file:
                for batch in range(*span):
                    record = self.record(batch)
                    assert record is not None
                    fields = {each: getattr(record, each) for each in Noted.__struct_fields__}
                    file.write(msgspec.json.encode(Noted(**fields)) + b"\n")
            merged.append(span)
            done = span.end
        for span in _to_merge(merged):
            with _Replacing(self.folder / "files" / span.name) as file:
                for each in merged:
                    if _has(span, each):
                        file.write((self.folder / "files" / each.name).read_bytes())
        kept = {span.name for span in self._merged()}
        for name, _ in (self.folder / "files").listed(recursive=False):
            if name not in kept:
                (self.folder / "files" / name).unlink()
        for batch in numbers:
            if batch < min(done, count - 1):
                (self.folder / _name(batch)).unlink()

    def _merge_excerpts(self, count: int) -> None:
        found = self._excerpts()
        due = {
            Span(first, first + _MERGED)
            for (first, end), _ in found
            if end - first == 1
            for first in [first - first % _MERGED]
            if first + _MERGED <= count
        }
        whole = [span for span, name in found if ".merged" in name] + sorted(due)
        for span in [*sorted(due), *_to_merge(sorted(whole))]:
            parts = [name for each, name in self._excerpts() if _has(span, each)]
            self._merge_parquet(parts, f"{span.name}.merged")
        kept = {name for _, name in self._excerpts()}
        for name, _ in (self.folder / EXCERPTS).listed(recursive=False):
            if name not in kept:
                (self.folder / EXCERPTS / name).unlink()

    def _merge_parquet(self, names: Iterable[str], name: str) -> None:
        folder = self.folder / EXCERPTS
        new = self.folder / "work" / name
        new.parent.mkdir()
        with pq.ParquetWriter(
            new.path, schema_of(EXCERPTS), filesystem=new.filesystem, compression="zstd"
        ) as writer:
            for each in names:
                with (folder / each).open_input() as source, pq.ParquetFile(source) as part:
                    for batch in part.iter_batches():
                        writer.write_batch(batch)
        put(new, folder / name)
        (folder / name).sync()

    def clear_after(self, batch: int) -> None:
        """Remove what a killed run left of batches after this one."""
        self.clear_work()
        for kind in (*_KINDS, EXCERPTS):
            for name, _ in (self.folder / kind).listed(recursive=False):
                if ".merged" not in name and _number(name) > batch:
                    (self.folder / kind / name).remove()
        for name, about in (self.folder / "unnamed").listed(recursive=True):
            if about.is_file and _number(name.rpartition("/")[2]) > batch:
                (self.folder / "unnamed" / name).unlink()

    @property
    def work(self) -> Location:
        """The folder of files that are not at their places."""
        return self.folder / "work"

    def clear_work(self) -> None:
        """Remove them."""
        self.work.remove()


class _Replacing:
    """Writes a file under another name until it is complete."""

    def __init__(self, place: Location) -> None:
        self._place = place
        self._new = place.parent / f"{place.name}.new"

    def __enter__(self) -> Any:
        self._place.parent.mkdir()
        self._file = self._new.open_writer()
        return self._file

    def __exit__(self, kind: object, *about: object) -> None:
        self._file.close()
        if kind is None:
            self._new.publish(self._place)
            self._place.sync()


def _name(batch: int) -> str:
    return f"batches/{batch:06d}.json"


def _number(name: str) -> int:
    """Return the batch that a file or folder is named after."""
    found = re.match(r"\d+", name)
    assert found is not None
    return int(found[0])


def _has(outer: Span, inner: Span) -> bool:
    """Whether a span contains another, smaller one."""
    return outer.first <= inner.first and inner.end <= outer.end and outer != inner


def _largest(spans: Iterable[Span]) -> list[Span]:
    found = sorted(spans)
    return [each for each in found if not any(_has(other, each) for other in found)]


def _to_merge(merged: list[Span]) -> list[Span]:
    """Return the spans of a hundred hundreds that are complete and not merged yet."""
    size = _MERGED * _MERGED
    small = [each for each in merged if each.end - each.first == _MERGED]
    ends = merged[-1].end if merged else 0
    firsts = sorted({each.first - each.first % size for each in small})
    return [Span(first, first + size) for first in firsts if first + size <= ends]


def _rows_in(place: Location) -> int:
    with place.open_input() as file, pq.ParquetFile(file) as part:
        return int(part.metadata.num_rows)


def put(file: Location, place: Location) -> None:
    """Move a file to its place, replacing one of the same name, even to another file system. The
    caller syncs it."""
    place.parent.mkdir()
    file.publish(place)
