"""Publish the files of a run, so that readers can tell complete tables from others.

Object stores do not rename, and no file system renames several files at once. So everything is
written to ``_staging`` first, where readers do not look. Then::

    _manifests/RUN.json     the files of the run by table, with their rows; not complete
    _SUCCESS                removed, if an earlier run left it
    TABLE/run=RUN/...       each file, renamed or, in an object store, copied within the store
    _manifests/RUN.json     complete
    _SUCCESS                written last
    _staging                removed

A run that fails removes what it published. If its process is killed in the midst of this, the
manifest names the files, and readers refuse the folder. On a local file system, whose locks tell a
killed process from a running one, the next run removes them. In other file systems it is refused
until they are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from typing import Final

import msgspec
import pyarrow.parquet as pq

from kproto.outputs import OutputError, is_locked, locked, uninterrupted
from wiredump.rows.schema import TABLES
from wiredump.storage import Location, StorageError
from wiredump.tables.run import Mode, run_folder

__all__ = [
    "MANIFESTS",
    "STAGING",
    "SUCCESS",
    "WRITING",
    "OutputError",
    "Part",
    "Publication",
    "RunFolder",
    "RunManifest",
    "is_complete",
]

STAGING: Final = "_staging"
"""The folder of files until all of a run are complete."""
MANIFESTS: Final = "_manifests"
SUCCESS: Final = "_SUCCESS"
WRITING: Final = "_writing"
"""In the staging folder: the run that writes to it. If it cannot be written, nothing can."""
_ABOUT: Final = ("lineage", "account", "anomalies", "packets")
"""Tables that have rows even if no connection was read."""
_AT_ONCE: Final = 8
"""Files that are published at a time."""


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


def is_complete(manifest: bytes) -> bool:
    """Whether a run published all its files."""
    try:
        return msgspec.json.decode(manifest, type=RunManifest).complete
    except msgspec.MsgspecError:  # the process was killed while it wrote this
        return False


class RunFolder:
    """A folder of tables, and in it the places of the files of ``run``."""

    def __init__(self, folder: str, run: str) -> None:
        self._root, self._run = Location(folder), run

    def require(self, mode: Mode) -> None:
        """Raise OutputError for a folder that has something: with ``append``, something but
        complete tables of other runs; with ``overwrite``, something but tables."""
        _remove_killed(self._root)
        if mode == "overwrite":
            _require_tables(self._root)
        else:
            _require_room(self._root, self._run, append=mode == "append")

    def folder_of(self, table: str) -> Location:
        """Return where the files of a table belong."""
        return run_folder(self._root, table, self._run)

    def write_empty(self, table: str, name: str) -> None:
        """Write a file without rows, which has the columns of its table."""
        from wiredump.tables.arrow import arrow_schema, of_rows

        file = self.folder_of(table) / name
        # ``empty_table`` would import pandas.
        rows = of_rows(arrow_schema(table), [])
        pq.write_table(rows, file.path, filesystem=file.filesystem)

    def begin_change(self) -> None:
        """Remove the mark of complete tables."""
        (self._root / SUCCESS).unlink(missing_ok=True)

    def succeed(self) -> None:
        """Mark the tables as complete."""
        (self._root / SUCCESS).write_bytes(b"")


class Publication(RunFolder):
    """The way of a run's files to ``folder``: what its ``mode`` allows is checked first
    (``require``), files are written to ``staging``, then published or abandoned."""

    def __init__(self, folder: str, run: str, mode: Mode = "error") -> None:
        super().__init__(folder, run)
        self._mode = mode
        self.staging = self._root / STAGING
        self.require(mode)
        self._existed = self._root.exists()
        self._lock = ExitStack()
        try:
            self.staging.mkdir()
            if self._root.is_local:
                self._lock.enter_context(locked(self._root.path))
            (self.staging / WRITING).write_bytes(run.encode())
        except BaseException:
            self.abandon()
            raise

    def publish(self, tables: Iterable[str], parts: Iterable[Mapping[str, Part]]) -> None:
        """Publish the files in the manifests of tasks, and remove the staging folder; with
        ``overwrite``, all other tables in the folder first."""
        with uninterrupted() if self._root.is_local else nullcontext():
            self._publish(tables, list(parts))
        self._lock.close()

    def _publish(self, tables: Iterable[str], parts: Sequence[Mapping[str, Part]]) -> None:
        manifest = RunManifest(self._run, False, {name: {} for name in tables})
        for each in parts:
            for name, part in each.items():
                manifest.files[name][part.file] = part.rows
        if self._mode == "overwrite":
            self._require_rows(manifest)
        place = self._manifest
        place.parent.mkdir()
        place.replace_bytes(msgspec.json.encode(manifest))
        self.begin_change()
        if self._mode == "overwrite":
            for name in TABLES:
                (self._root / name).remove()
            for old in place.parent.iterdir():
                if old != place:
                    old.unlink()
        self._move(manifest.files, parts)
        manifest.complete = True
        place.replace_bytes(msgspec.json.encode(manifest))
        self.succeed()
        with suppress(OSError, StorageError):
            self.staging.remove()

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
            if self._mode != "overwrite" or self._is_incomplete():
                for name in TABLES:
                    with suppress(OSError, StorageError):
                        self.folder_of(name).remove()
                        (self._root / name).rmdir()
                self._manifest.unlink(missing_ok=True)
                self._manifest.parent.rmdir()
            (self.staging if self._existed else self._root).remove()
        self._lock.close()

    def _is_incomplete(self) -> bool:
        """Whether this run began to be published, and not more."""
        return self._manifest.exists() and not is_complete(self._manifest.read_bytes())

    @property
    def _manifest(self) -> Location:
        return self._root / MANIFESTS / f"{self._run or 'all'}.json"


def _remove_killed(folder: Location) -> None:
    """Remove what a killed run left in a local folder."""
    staging = folder / STAGING
    if not folder.is_local or not (staging / WRITING).exists() or is_locked(folder.path):
        return
    manifests = folder / MANIFESTS
    kept = False
    for place in manifests.glob("*.json"):
        if is_complete(place.read_bytes()):
            kept = True
            continue
        run = "" if place.name == "all.json" else place.name.removesuffix(".json")
        for name in TABLES:
            run_folder(folder, name, run).remove()
            (folder / name).rmdir()
        place.unlink()
    if not kept:
        manifests.remove()
    staging.remove()


def _require_room(folder: Location, run: str, append: bool) -> None:
    """Raise OutputError if ``folder`` is not empty; with ``append``, if it has anything but
    complete tables of other runs."""
    if not append or not folder.is_dir():
        if folder.is_file() or any(folder.iterdir()):
            raise OutputError(f"{folder.shown} is not empty: name another folder, or empty it")
        return
    if (folder / STAGING).exists():
        raise OutputError(
            f"{(folder / STAGING).shown} exists: another run is writing to the folder, or was "
            "killed; if no run is writing, remove it, and the folders run=ID of tables that "
            f"were published without {folder.shown}/_SUCCESS"
        )
    if any(folder.glob(f"*/run={run}/*")):
        raise OutputError(f"{folder.shown} already has the run {run}: set another id with --run")
    if any(folder.glob("*/*.parquet")):
        raise OutputError(f"{folder.shown} has tables without a run id: name another folder")


def _require_tables(folder: Location) -> None:
    """Raise OutputError if a folder to overwrite has anything but tables."""
    if folder.is_file():
        raise OutputError(f"{folder.shown} is a file: name another folder")
    for each in folder.iterdir():
        if each.name not in {*TABLES, MANIFESTS, SUCCESS}:
            raise OutputError(
                f"{folder.shown} is not overwritten, because it has {each.name}, "
                "which is not a table"
            )
