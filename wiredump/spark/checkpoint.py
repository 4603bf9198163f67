"""A stream's checkpoint: a folder that says how far the tables go, and what goes on.

::

    stream.json         what the stream was begun with; another run has to agree
    intents/000007.json the files of batch 7, written before anything is done
    commits/000007.json what batch 7 came to, written when its rows are where readers look
    state/000007/       connections that go on behind batch 7 (``state``), an index a task
    data/000007/        of these, what batch 7 wrote
    fragments/000007    datagrams that are not whole
    names/000007.parquet    topics' names, as far as batches to 7 told them
    aside/heard/        exchanges that others depend on, for the end
    aside/unnamed-*/    rows that want a topic's name, until there is one
    end.json            what the tables have beyond the last batch: goes, where more comes
    work/               of the batch under way

A batch counts once its commit is there. Whatever a run that was killed left of a batch without one
is removed, and the batch is done again: from the same files, and from the state of the batch
before, which is kept until then. Each file is written under another name first.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import msgspec

from kproto.errors import KprotoError
from wiredump.spark.rotation import Rotated
from wiredump.spark.state import State

__all__ = ["Checkpoint", "CheckpointError", "Commit", "End", "Intent", "Settings", "Taken", "put"]

_VERSION: Final = 2
_KINDS: Final = ("state", "data", "fragments", "names")
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


class Commit(msgspec.Struct, kw_only=True):
    """The results of a batch. ``state`` has files by task; ``unnamed`` has, for each file of rows
    without topic names, the topic ids without one. ``read`` has bytes by file number; the counts
    are those of this batch alone."""

    batch: int
    files: list[Taken]
    state: dict[int, State] = {}
    fragments: str | None = None
    names: str | None = None
    unnamed: dict[str, list[str]] = {}
    heard: list[str] = []
    rows: dict[str, int] = {}
    account: dict[str, int] = {}
    connections: int = 0
    expected: int = 0
    read: dict[int, int] = {}
    times: dict[int, tuple[int, int]] = {}


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


class Checkpoint:
    """A checkpoint. As a context manager it locks out other processes."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.commits: list[Commit] = []
        self._lock: IO[str] | None = None

    def __enter__(self) -> Checkpoint:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = open(self.folder / "lock", "w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise CheckpointError(f"another run is using {self.folder}") from None
        return self

    def __exit__(self, *about: object) -> None:
        if self._lock is not None:
            self._lock.close()

    @property
    def run(self) -> str | None:
        """The run id of the stream that was started here; None without one."""
        before = self.settings
        return before.run if before is not None else None

    @property
    def settings(self) -> Settings | None:
        """The options of the stream that was started here; None without one."""
        return self._read("stream.json", Settings)

    def committed(self, batch: int) -> int:
        """Return the last batch committed so far, which is ``batch`` or a later one."""
        while (self.folder / f"commits/{batch + 1:06d}.json").exists():
            batch += 1
        return batch

    def begin(self, settings: Settings) -> bool:
        """Read the checkpoint; returns whether there is one. Raises CheckpointError if it was
        started with other settings, or if the folder is not a checkpoint."""
        before = self.settings
        if before is None:
            if {each.name for each in self.folder.iterdir()} - {"lock", "stream.new"}:
                raise CheckpointError(
                    f"{self.folder} is neither a checkpoint nor empty: name another folder"
                )
            self.write("stream.json", settings)
            return False
        for name in settings.__struct_fields__:
            was, now = getattr(before, name), getattr(settings, name)
            if was != now:
                raise CheckpointError(
                    f"{self.folder} was started with {name} {was!r}, but this run has {now!r}: "
                    "the two must be equal"
                )
        for number in range(1, 1 << 62):
            commit = self._read(f"commits/{number:06d}.json", Commit)
            if commit is None:
                return True
            self.commits.append(commit)
        raise AssertionError("no end of batches")

    # -- records -----------------------------------------------------------------------------

    def _read(self, name: str, kind: type[_Record]) -> _Record | None:
        path = self.folder / name
        try:
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise CheckpointError(f"cannot read {path}: {error}") from None

    def write(self, name: str, record: Any) -> None:
        """Write a file atomically."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        new = path.with_suffix(".new")
        with open(new, "wb") as file:
            file.write(msgspec.json.encode(record))
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
        _sync(path.parent)

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
        return self._read(f"intents/{self.batch + 1:06d}.json", Intent)

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
        for kind in _KINDS:
            for each in self.within(kind).iterdir():
                if _number(each) < commit.batch and self.relative(each) not in used:
                    _remove(each)
        for each in self.aside():
            if each.parent.name != "heard" and self.relative(each) not in commit.unnamed:
                _remove(each)

    # -- files -------------------------------------------------------------------------------

    def within(self, name: str) -> Path:
        """Return one of its folders, which is created if necessary."""
        path = self.folder / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def relative(self, path: Path) -> str:
        """Return a path in the form in which records have it."""
        return path.relative_to(self.folder).as_posix()

    def aside(self) -> list[Path]:
        """Return the files of what was set aside."""
        return sorted(self.within("aside").glob("*/*.parquet"))

    def clear(self) -> None:
        """Remove the files of batches that were not committed."""
        shutil.rmtree(self.folder / "work", ignore_errors=True)
        left = [each for kind in _KINDS for each in self.within(kind).iterdir()]
        for each in [*left, *self.aside()]:
            if _number(each) > self.batch:
                _remove(each)

    def end(self) -> End | None:
        """What the tables have beyond the last batch."""
        return self._read("end.json", End)

    def forget_end(self) -> None:
        """Record that the tables have nothing beyond the last batch."""
        (self.folder / "end.json").unlink(missing_ok=True)


def put(file: str | Path, place: Path) -> None:
    """Move a file to its place, replacing one of the same name, even to another file system."""
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.replace(file, place)
    except OSError:
        new = place.with_name(f".{place.name}.new")
        shutil.copyfile(file, new)
        os.replace(new, place)
        os.unlink(file)
    with open(place, "rb") as moved:
        os.fsync(moved.fileno())


def _number(path: Path) -> int:
    """Return the batch number at the beginning of a name."""
    return int(path.name[:6])


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
