"""Publish the files of a run, so that readers can tell complete tables from others.

Object stores do not rename, and no file system renames several files at once. So everything is
written to a folder of the run first, where readers do not look. Then::

    _staging/RUN/           the files of the run, until all are complete
    _manifests/RUN.json     the files of the run by table, with their rows; not complete
    TABLE/run=RUN/...       earlier files of the same run removed; then each file, renamed or, in
                            an object store, copied within the store
    _manifests/RUN.json     complete
    _SUCCESS                written last
    _staging/RUN            removed

Several runs may write to a folder at once. A run whose manifest is not complete does not exist for
readers of this package, and the tables of other runs stay readable. A run that fails removes what
it published. One that is killed is repeated with the same command: a run replaces the run of its
own id, whatever is left of that. On a local file system, whose locks tell a killed process from a
running one, any run removes what killed ones left. In other file systems the run that began last
owns the id (``_writing``); an earlier one that still lives stops before it publishes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Final
from uuid import uuid4

import msgspec
import pyarrow.parquet as pq

from kproto.outputs import OutputError, is_locked, locked, uninterrupted
from kproto.outputs.locks import has_locks, is_same, lock
from wiredump.rows.schema import TABLES
from wiredump.storage import Location, StorageError
from wiredump.tables.run import Mode, run_folder

__all__ = [
    "MANIFESTS", "RUNS", "STAGING", "SUCCESS", "WRITING", "OutputError", "Part", "Publication",
    "RunFolder", "RunManifest", "RunStaging", "changing", "is_complete", "read_manifest",
]  # fmt: skip

RUNS: Final = "_staging"
"""The folder of what runs write until all files of a run are complete: a folder for each run."""
STAGING: Final = "parts"
"""In the folder that tasks are given: the files that they write, by table."""
MANIFESTS: Final = "_manifests"
SUCCESS: Final = "_SUCCESS"
WRITING: Final = "_writing"
"""In the folder of a run: who writes to it. If it cannot be written, nothing can."""
_ABOUT: Final = ("lineage", "account", "anomalies", "packets")
"""Tables that have rows even if no connection was read."""
_AT_ONCE: Final = 8
"""Files that are published at a time."""
_ATTEMPTS: Final = 5
_PAUSE: Final = 0.1
"""Seconds between attempts to lock a folder."""


class Part(msgspec.Struct):
    """A file, and how many rows it has."""

    file: str
    rows: int


class RunManifest(msgspec.Struct):
    """The files of a run by table, with their rows. A table without rows has no file here, but one
    without rows in its folder."""

    run: str
    complete: bool
    files: dict[str, dict[str, int]]


# Made once: while threads make decoders of the same class for the first time, msgspec may crash.
_MANIFEST: Final = msgspec.json.Decoder(RunManifest)


def read_manifest(content: bytes) -> RunManifest | None:
    """Return the manifest of a run; None if its process was killed while it wrote this."""
    try:
        return _MANIFEST.decode(content)
    except msgspec.MsgspecError:
        return None


def is_complete(content: bytes) -> bool:
    """Whether a run published all its files, by its manifest."""
    manifest = read_manifest(content)
    return manifest is not None and manifest.complete


@contextmanager
def changing(root: Location) -> Iterator[bool]:
    """For the block, be the only process that adds files to the tables of a local folder or removes
    some, among those that use this. Yields whether the file system has locks; others have none."""
    with locked(root.path, wait=True) if root.is_local else nullcontext(False) as is_alone:
        yield is_alone


class RunFolder:
    """A folder of tables, and in it the places of the files of ``run``."""

    def __init__(self, folder: str, run: str) -> None:
        self._root, self._run = Location(folder), run

    def require(self, mode: Mode, tables: Iterable[str] = ()) -> None:
        """Raise OutputError for a folder that has something, unless it is this run with these
        ``tables``, which is replaced: with ``append``, something but tables of runs; with
        ``overwrite``, something but tables."""
        _remove_killed(self._root)
        if mode == "overwrite":
            _require_tables(self._root)
        else:
            _require_room(self._root, self._run, tables, append=mode == "append")

    def folder_of(self, table: str) -> Location:
        """Return where the files of a table belong."""
        return run_folder(self._root, table, self._run)

    def write_empty(self, table: str, name: str) -> None:
        """Write a file without rows, which has the columns of its table."""
        from wiredump.tables.arrow import arrow_schema, of_file, of_rows

        file = self.folder_of(table) / name
        # ``empty_table`` would import pandas.
        rows = of_file(table, of_rows(arrow_schema(table), []))
        pq.write_table(rows, file.path, filesystem=file.filesystem, coerce_timestamps="us")

    def begin_change(self) -> None:
        """Remove the mark of complete tables."""
        (self._root / SUCCESS).unlink(missing_ok=True)

    def succeed(self) -> None:
        """Mark the tables as complete."""
        (self._root / SUCCESS).write_bytes(b"")


class RunStaging:
    """The folder in which a run's tasks write (``folder``), below ``root``. What an earlier attempt
    at the run left there is removed. Raises OutputError if another process is writing the run."""

    def __init__(self, root: Location, run: str) -> None:
        self._root, self._run = root, run or "all"
        self._existed = root.exists()
        self._owner = uuid4().hex.encode()
        self._number: int | None = None
        self.folder = root / RUNS / self._run
        try:
            if root.is_local:
                self._lock()
            for each in self.folder.iterdir():
                each.remove()
            (self.folder / WRITING).write_bytes(self._owner)
        except BaseException:
            self.remove()
            raise

    def _lock(self) -> None:
        """Create and lock the folder, which a run that cleans up may remove in between."""
        path = self.folder.path
        for _ in range(_ATTEMPTS):
            with suppress(FileNotFoundError):
                os.makedirs(path, exist_ok=True)
                if not has_locks():
                    return
                number = os.open(path, os.O_RDONLY)
                is_free = lock(number) or not is_locked(path)  # or there are no locks
                if is_free and is_same(number, path):
                    self._number = number
                    return
                os.close(number)
                if not is_free:  # perhaps by a run that removes what a killed one left
                    time.sleep(_PAUSE)
        raise OutputError(
            f"{self._root.shown}: another process is writing the run {self._run}: wait for its "
            "end, or set another id with --run"
        )

    def require_owner(self) -> None:
        """Raise OutputError if another attempt at the run has begun since."""
        try:
            owner = (self.folder / WRITING).read_bytes()
        except FileNotFoundError:
            owner = b""
        if owner != self._owner:
            raise OutputError(
                f"{self._root.shown}: another process began to write the run {self._run}: this "
                "one stops"
            )

    def remove(self) -> None:
        """Remove the folder, and those around it that have nothing else if this made them."""
        with suppress(OSError, StorageError):
            if not self._root.is_local or self._number is not None or not has_locks():
                self.folder.remove()
            (self._root / RUNS).rmdir()
            if not self._existed:
                self._root.rmdir()
        self.release()

    def release(self) -> None:
        """Unlock the folder."""
        if self._number is not None:
            os.close(self._number)
            self._number = None


class Publication(RunFolder):
    """The way of a run's files to ``folder``: what its ``mode`` allows is checked first
    (``require``), tasks write to ``work``, into ``staging``; then files are published or
    abandoned. ``tables`` are those of the run."""

    def __init__(
        self, folder: str, run: str, mode: Mode = "error", tables: Iterable[str] = ()
    ) -> None:
        super().__init__(folder, run)
        self._mode = mode
        self.require(mode, tables)
        self._staging = RunStaging(self._root, run)
        self.work = str(self._staging.folder)
        self.staging = self._staging.folder / STAGING
        try:
            self.staging.mkdir()
        except BaseException:
            self._staging.remove()
            raise

    def publish(self, tables: Iterable[str], parts: Iterable[Mapping[str, Part]]) -> None:
        """Publish the files in the manifests of tasks, and remove what the tasks wrote; with
        ``overwrite``, all other tables in the folder first."""
        with uninterrupted() if self._root.is_local else nullcontext(), changing(self._root):
            self._publish(tables, list(parts))

    def _publish(self, tables: Iterable[str], parts: Sequence[Mapping[str, Part]]) -> None:
        manifest = RunManifest(self._run, False, {name: {} for name in tables})
        for each in parts:
            for name, part in each.items():
                manifest.files[name][part.file] = part.rows
        if self._mode == "overwrite":
            self._require_rows(manifest)
        self._staging.require_owner()
        place = self._manifest
        if self._mode == "error":  # other runs may have been published since
            _require_room(self._root, self._run, manifest.files, append=False)
        place.parent.mkdir()
        place.replace_bytes(msgspec.json.encode(manifest))
        if self._mode == "overwrite":
            self.begin_change()
            for name in TABLES:
                (self._root / name).remove()
            for old in place.parent.iterdir():
                if old != place:
                    old.unlink()
        else:
            self._remove_run()
        self._move(manifest.files, parts)
        manifest.complete = True
        place.replace_bytes(msgspec.json.encode(manifest))
        self.succeed()
        self._staging.remove()

    def _remove_run(self) -> None:
        """Remove the files of an earlier attempt at the run, or of an earlier run of its id."""
        if self._run:
            for name in TABLES:
                self.folder_of(name).remove()

    def _require_rows(self, manifest: RunManifest) -> None:
        """Raise OutputError if a run that read nothing would replace tables with rows."""
        if any(sum(manifest.files[name].values()) for name in manifest.files if name not in _ABOUT):
            return
        for path in (self._root / MANIFESTS).glob("*.json"):
            if is_complete(path.read_bytes()):
                raise OutputError(f"nothing was read: the tables in {self._root.shown} stay")

    def _move(self, tables: Iterable[str], parts: Iterable[Mapping[str, Part]]) -> None:
        """Move the files of the manifests to their places. A table without rows gets an empty file,
        which has its columns."""
        places = {name: self.folder_of(name) for name in tables}
        moves = [
            (self.staging / name / part.file, places[name] / part.file)
            for each in parts
            for name, part in each.items()
        ]
        for place in {*places.values(), *(target.parent for _, target in moves)}:
            place.mkdir()
        if self._root.is_local:  # each is renamed in no time
            for source, target in moves:
                source.publish(target)
        else:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(_AT_ONCE) as threads:
                for _ in threads.map(lambda move: move[0].publish(move[1]), moves):
                    pass
        for name in set(places).difference(*parts):
            self.write_empty(name, "part-none.parquet")

    def abandon(self) -> None:
        """Remove what a failed run wrote. What it was to replace stays, unless it began to be
        replaced."""
        with suppress(OSError, StorageError):
            if self._is_incomplete():
                for name in TABLES:
                    with suppress(OSError, StorageError):
                        self.folder_of(name).remove()
                        (self._root / name).rmdir()
                self._manifest.unlink(missing_ok=True)
                self._manifest.parent.rmdir()
        self._staging.remove()

    def _is_incomplete(self) -> bool:
        """Whether this run began to be published, and not more."""
        return self._manifest.exists() and not is_complete(self._manifest.read_bytes())

    @property
    def _manifest(self) -> Location:
        return self._root / MANIFESTS / f"{self._run or 'all'}.json"


def _remove_killed(folder: Location) -> None:
    """Remove what killed runs left in a local folder."""
    if not folder.is_local or not folder.is_dir():
        return
    staging = folder / RUNS
    for each in staging.iterdir():
        if is_locked(each.path):
            continue
        with suppress(FileNotFoundError), locked(each.path):
            _remove_incomplete(folder, each.name)
            each.remove()
    staging.rmdir()


def _remove_incomplete(folder: Location, run: str) -> None:
    """Remove the tables of a run that was killed while it was published."""
    place = folder / MANIFESTS / f"{run}.json"
    if not place.exists() or is_complete(place.read_bytes()):
        return
    for name in TABLES:
        run_folder(folder, name, "" if run == "all" else run).remove()
        (folder / name).rmdir()
    place.unlink()
    place.parent.rmdir()


def _require_room(folder: Location, run: str, tables: Iterable[str], append: bool) -> None:
    """Raise OutputError if ``folder`` has anything but this run; with ``append``, if it has tables
    that belong to no run, or this run with other tables."""
    if folder.is_file():
        raise OutputError(f"{folder.shown} is a file: name another folder")
    runs, others = _runs_in(folder)
    if not append and (others or runs - {run}):
        raise OutputError(f"{folder.shown} is not empty: name another folder, or empty it")
    if "" in runs:
        raise OutputError(f"{folder.shown} has tables without a run id: name another folder")
    if run in runs and not _is_repeated(folder / MANIFESTS / f"{run}.json", tables):
        raise OutputError(
            f"{folder.shown} already has the run {run}, with other tables or of a stream: set "
            "another id with --run, or --mode overwrite"
        )


def _runs_in(folder: Location) -> tuple[set[str], bool]:
    """Return the ids of the runs that have files in tables, "" for files of none; and whether there
    is anything but tables."""
    runs, others = set[str](), False
    for each in folder.iterdir():
        if each.name in TABLES:
            names = [name for name, _ in each.listed(recursive=False)]
            runs |= {name.removeprefix("run=") if name[:4] == "run=" else "" for name in names}
        elif each.name[0] != "_":  # those are for writers: manifests, quarantined files
            others = True
    return runs, others


def _is_repeated(manifest: Location, tables: Iterable[str]) -> bool:
    """Whether a run that is there may be replaced by one with these tables."""
    if not manifest.exists():
        return False
    content = manifest.read_bytes()
    if not is_complete(content):
        return True
    return set(_MANIFEST.decode(content).files) == set(tables)


def _require_tables(folder: Location) -> None:
    """Raise OutputError if a folder to overwrite has anything but tables."""
    if folder.is_file():
        raise OutputError(f"{folder.shown} is a file: name another folder")
    for each in folder.iterdir():
        if each.name == RUNS and folder.is_local:
            raise OutputError(f"{folder.shown}: another process is writing to it")
        if each.name not in TABLES and each.name[0] != "_":
            raise OutputError(
                f"{folder.shown} is not overwritten, because it has {each.name}, "
                "which is not a table"
            )
