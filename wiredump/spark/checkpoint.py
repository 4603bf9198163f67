"""A stream's checkpoint: a folder that records how far the tables go, and all unfinished state.

::

    stream.json         the settings of the stream, with which later runs have to agree
    intents/000007.json the files of batch 7, written before the batch begins
    commits/000007.json the result of batch 7, written when readers can see its rows
    state/000007/       connections that continue after batch 7 (``state``), an index for each task
    data/000007/        their data, as written by batch 7
    fragments/000007    incomplete datagrams
    names/000007.parquet    names of topics from batches up to 7
    aside/excerpts/     exchanges that others depend on, for the end
    aside/unnamed-*/    rows that wait for a topic's name
    end.json            rows beyond the last batch, which are removed if more batches follow
    work/               files of the current batch

A batch counts once it has a commit. If a run is killed, its batch without a commit is removed and
repeated from the same files and from the state of the previous batch, which is kept until then. No
file is visible before it is complete.

The folder may be in an object store or in HDFS. A local one is locked; elsewhere the newest run
owns it (``owner``), and one that finds another owner stops before its rows can be seen.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any, Final, TypeVar
from uuid import uuid4

import msgspec

from kproto.errors import KprotoError
from wiredump.spark.rotation import Rotated
from wiredump.spark.state import State
from wiredump.storage import Location, absolute, shown
from wiredump.tables.parts import Counts

__all__ = ["Checkpoint", "CheckpointError", "Commit", "End", "Intent", "Settings", "Taken", "put"]

_VERSION: Final = 3
_KINDS: Final = ("state", "data", "fragments", "names")
_BEFORE_ANY: Final = frozenset({"lock", "owner", "owner.new", "stream.json.new"})
"""What a run leaves that ends before anything was begun."""
_AT_ONCE: Final = 16
"""Records that are read at a time."""
_Record = TypeVar("_Record")


class CheckpointError(KprotoError):
    """A checkpoint cannot be continued. The message has the reason and a remedy."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The options that a stream was started with."""

    where: str
    out: str
    partitions: int
    tables: tuple[str, ...]
    dialect: str
    ports: tuple[int, ...]
    bodies: bool
    values: bool
    secrets: bool
    run: str = ""
    version: int = _VERSION


class Taken(msgspec.Struct, frozen=True):
    """A file, and its number among all files of the stream."""

    number: int
    file: Rotated


class Intent(msgspec.Struct, frozen=True):
    """The files of a batch."""

    batch: int
    files: list[Taken]


class Commit(Counts, msgspec.Struct, kw_only=True):
    """The results of a batch. ``state`` has files by task; ``unnamed`` has, for each file of rows
    without topic names, the topic ids without one. ``read`` has bytes by file number; the counts
    are those of this batch alone."""

    batch: int
    files: list[Taken]
    state: dict[int, State] = {}
    fragments: str | None = None
    names: str | None = None
    unnamed: dict[str, list[str]] = {}
    excerpts: list[str] = []
    rows: dict[str, int] = {}
    read: dict[int, int] = {}


class End(msgspec.Struct, kw_only=True):
    """The tables as if nothing followed: behind batch ``after``, with ``files``. ``done`` is set
    once they are complete. ``renamed`` are files of unnamed rows that have got names."""

    after: int
    files: list[Rotated]
    done: bool = False
    renamed: list[str] = []
    rows: dict[str, int] = {}
    account: dict[str, int] = {}
    connections: int = 0


# Made once: while threads make decoders of the same class for the first time, msgspec may crash.
_SETTINGS: Final = msgspec.json.Decoder(Settings)
_INTENT: Final = msgspec.json.Decoder(Intent)
_COMMIT: Final = msgspec.json.Decoder(Commit)
_END: Final = msgspec.json.Decoder(End)


class Checkpoint:
    """A checkpoint. As a context manager it locks out other processes."""

    def __init__(self, folder: str) -> None:
        self.folder = Location(absolute(folder))
        self.commits: list[Commit] = []
        self._lock: IO[str] | None = None
        self._owner = uuid4().hex.encode()

    def __enter__(self) -> Checkpoint:
        self.folder.mkdir()
        if not self.folder.is_local:
            (self.folder / "owner").replace_bytes(self._owner)
            return self
        self._lock = open(str(self.folder / "lock"), "w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise CheckpointError(f"another run is using {self.folder}") from None
        return self

    def __exit__(self, *about: object) -> None:
        if self._lock is not None:
            self._lock.close()

    def require_owner(self) -> None:
        """Raise CheckpointError if another run has begun since. No run has to, to read."""
        if not self.folder.is_local and (self.folder / "owner").read_bytes() != self._owner:
            raise CheckpointError(
                f"another run is using {self.folder.shown}: only one can, so this one stops"
            )

    @property
    def run(self) -> str | None:
        """The run id of the stream that was started here; None without one."""
        before = self.settings
        return before.run if before is not None else None

    @property
    def settings(self) -> Settings | None:
        """The options of the stream that was started here; None without one."""
        return self._read("stream.json", _SETTINGS)

    def committed(self, batch: int) -> int:
        """Return the last batch committed so far, which is ``batch`` or a later one."""
        names = self._commits()
        while f"{batch + 1:06d}.json" in names:
            batch += 1
        return batch

    def _commits(self) -> list[str]:
        """Return the names of the commits, in order."""
        found = (self.folder / "commits").listed(recursive=False)
        return [name for name, _ in found if name.endswith(".json")]

    def begin(self, settings: Settings) -> bool:
        """Read the checkpoint; returns whether there is one. Raises CheckpointError if it was
        started with other settings, or if the folder is not a checkpoint."""
        before = self.settings
        if before is None:
            if {each.name for each in self.folder.iterdir()} - _BEFORE_ANY:
                raise CheckpointError(
                    f"{self.folder.shown} is neither a checkpoint nor empty: name another folder"
                )
            self.write("stream.json", settings)
            return False
        for name in settings.__struct_fields__:
            was, now = getattr(before, name), getattr(settings, name)
            if was != now:
                was, now = (shown(each) if isinstance(each, str) else each for each in (was, now))
                raise CheckpointError(
                    f"{self.folder.shown} was started with {name} {was!r}, but this run has "
                    f"{now!r}: the two must be equal"
                )
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            found = threads.map(
                lambda name: self._read(f"commits/{name}", _COMMIT), self._commits()
            )
            self.commits = [each for each in found if each is not None]
        return True

    # -- records -----------------------------------------------------------------------------

    def _read(self, name: str, decoder: msgspec.json.Decoder[_Record]) -> _Record | None:
        place = self.folder / name
        try:
            return decoder.decode(place.read_bytes())
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise CheckpointError(f"cannot read {place.shown}: {error}") from None

    def write(self, name: str, record: Any) -> None:
        """Write a file atomically."""
        self.require_owner()
        place = self.folder / name
        place.parent.mkdir()
        place.replace_bytes(msgspec.json.encode(record))

    @property
    def last(self) -> Commit | None:
        """The last committed batch."""
        return self.commits[-1] if self.commits else None

    @property
    def batch(self) -> int:
        """Its number; 0 without one."""
        return len(self.commits)

    @property
    def files(self) -> list[Taken]:
        """All files read so far, in order."""
        return [each for commit in self.commits for each in commit.files]

    def intent(self) -> Intent | None:
        """The intent of the batch after the last committed one."""
        return self._read(f"intents/{self.batch + 1:06d}.json", _INTENT)

    def intend(self, files: list[Taken]) -> Intent:
        """Write the intent of the next batch."""
        intent = Intent(self.batch + 1, files)
        self.write(f"intents/{intent.batch:06d}.json", intent)
        return intent

    def commit(self, commit: Commit) -> None:
        """Commit a batch, and remove what only earlier batches needed."""
        self.write(f"commits/{commit.batch:06d}.json", commit)
        self.commits.append(commit)
        used = {commit.fragments, commit.names}
        used |= {f"data/{batch:06d}" for each in commit.state.values() for batch in each.files}
        for batch, path in self._of_batches():
            kind = path.split("/")[1] if path.startswith("aside/") else ""
            old = path not in commit.unnamed if kind else batch < commit.batch and path not in used
            if old and kind != "excerpts":
                (self.folder / path).remove()

    # -- files -------------------------------------------------------------------------------

    def _of_batches(self) -> Iterator[tuple[int, str]]:
        """Yield the files and folders of batches, by paths relative to the folder."""
        for kind in _KINDS:
            for name, _ in (self.folder / kind).listed(recursive=False):
                yield int(name[:6]), f"{kind}/{name}"
        for name, about in (self.folder / "aside").listed(recursive=True):
            if about.is_file:
                yield int(name.rpartition("/")[2][:6]), f"aside/{name}"

    def clear(self) -> None:
        """Remove the files of batches that were not committed."""
        self.clear_work()
        for batch, path in self._of_batches():
            if batch > self.batch:
                (self.folder / path).remove()

    def clear_work(self) -> None:
        """Remove the files of a batch that are not at their places."""
        (self.folder / "work").remove()

    def end(self) -> End | None:
        """What the tables have beyond the last batch."""
        return self._read("end.json", _END)

    def forget_end(self) -> None:
        """Record that the tables have nothing beyond the last batch."""
        (self.folder / "end.json").unlink(missing_ok=True)


def put(file: Location, place: Location) -> None:
    """Move a file to its place, replacing one of the same name, even to another file system."""
    place.parent.mkdir()
    file.publish(place)
    place.sync()
