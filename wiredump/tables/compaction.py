"""Few large Parquet files in place of many small ones, in a local folder of tables, while others
read and write it.

Files that lie in one folder (``requests/run=ID/date=2026-01-31``) are merged. That folder changes
at once::

    _staging/_compact/parts/N    a copy of it: merged files, and the other files as hard links
    FOLDER <-> N                 exchanged by one call of the system
    N                            removed, with the small files

**Readers** that list the folder find the files of before or those of after, and each row once. A
reader that listed it before and opens a file after fails for lack of that file, and finds the new
ones when it lists again, as ``wiredump.questions.database`` does.

**Writers** publish files under a lock of the folder of tables (``publishing.changing``), as the
exchange is done. A file that was published since the copy was made gets a link, too. If one of the
small files has changed or gone, the folder stays as it is. Left alone are files of runs that are
being published, the last batch of a stream, which may be published again, and what the end of a
stream replaces. A file merged from batches knows how many rows each had (``batch_rows``).

**A kill** leaves every folder as before or as after. The next compaction, or the next run, removes
the copies. The manifest of a run is corrected after the exchange: a compaction does so for all.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from kproto.errors import KprotoError
from kproto.outputs import OutputError, exchange
from wiredump.rows.schema import TABLES
from wiredump.storage import Location, absolute
from wiredump.tables.publishing import MANIFESTS, RunStaging, changing, read_manifest
from wiredump.tables.reading import TableFolder, unpublished
from wiredump.tables.run import run_folder
from wiredump.tables.writer import ROW_GROUP, encodings

__all__ = ["Compacted", "CompactionError", "batch_rows", "batches_named", "compact"]

_ROW_GROUP_BYTES: Final = 32 * 1024 * 1024
"""More than of files that are written while captures are read: readers like large ones."""

_WORK: Final = "_compact"
"""The folder among those of runs, none of which can have this id."""
_BATCHES: Final = b"wiredump.batches"
_EMPTY: Final = ("none.parquet", "part-none.parquet")
"""Files without rows, for the columns."""
_State: TypeAlias = tuple[int, int, int]
"""Of a file: its number in the file system, its size, and the time of its last change."""


class CompactionError(KprotoError):
    """Tables cannot be compacted. The message has the reason and what to do instead."""


class Compacted(msgspec.Struct):
    """How many files of a table were merged into how many, and the bytes of the former. ``changed``
    are folders that were left alone because a writer changed them meanwhile."""

    merged: int = 0
    into: int = 0
    bytes: int = 0
    changed: list[str] = []


class _File(NamedTuple):
    path: Path
    state: _State
    schema: pa.Schema


class _Folder(NamedTuple):
    """A folder, and the groups of its files that are to be merged."""

    place: Path
    table: str
    groups: list[list[_File]]


def compact(folder: str, target_bytes: int) -> dict[str, Compacted]:
    """Merge files of less than half of ``target_bytes`` into files of at most so many, as long as
    there are two for one folder; returns what was done, by table. Rows keep their order.

    Raises CompactionError for a folder in which this would not be safe, and InputError for one
    without tables.
    """
    root = _require_local(folder)
    tables = TableFolder(root.path)
    _require_parquet(root, tables.names)
    try:
        staging = RunStaging(root, _WORK)
    except OutputError:
        raise CompactionError(f"{root.shown}: another process is compacting it") from None
    try:
        work = Path(staging.folder.path) / "parts"
        _require_exchange(root, work)
        found = {name: Compacted() for name in tables.names}
        for number, each in enumerate(list(_folders(Path(root.path), tables.names, target_bytes))):
            _compact(root, each, work / str(number), found[each.table])
        _correct_manifests(root)
        return found
    finally:
        staging.remove()


def batches_named(name: str) -> tuple[int, int] | None:
    """Return the batches of a stream whose rows a file has, by its name: the first, and the one
    behind the last. None for another file."""
    found = re.match(r"batch-(\d+)-|batches-(\d+)-(\d+)-", name)
    if found is None:
        return None
    if found[1] is not None:
        return int(found[1]), int(found[1]) + 1
    return int(found[2]), int(found[3])


def batch_rows(name: str, file: pq.ParquetFile) -> list[tuple[int, int]]:
    """Return the batches of which a file of a stream has rows, and how many, in their order."""
    batches = batches_named(name)
    assert batches is not None
    known = (file.schema_arrow.metadata or {}).get(_BATCHES)
    if known is not None:
        return [(batch, rows) for batch, rows in json.loads(known)]
    return [(batches[0], file.metadata.num_rows)]


# ---- what can be compacted ----------------------------------------------------------------------


def _require_local(folder: str) -> Location:
    root = Location(absolute(folder))
    if not root.is_local:
        raise CompactionError(
            f"{root.shown} is not a local folder, and no other file system exchanges two folders "
            "at once: write tables of Delta or Iceberg there, which are compacted "
            "beside readers"
        )
    return root


def _require_parquet(root: Location, tables: Sequence[str]) -> None:
    for form, inside in (("delta", "_delta_log"), ("iceberg", "metadata")):
        name = next((name for name in tables if (root / name / inside).is_dir()), None)
        if name is not None:
            raise CompactionError(
                f"{root / name} is a table of {form.title()}: compact it with --table-format {form}"
            )


def _require_exchange(root: Location, work: Path) -> None:
    """Raise CompactionError unless folders can be exchanged, and writers be locked out."""
    one, other = work / "one", work / "other"
    for each in (one, other):
        each.mkdir(parents=True)
    try:
        exchange(str(one), str(other))
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
            raise
        raise CompactionError(
            f"{root.shown}: its file system cannot exchange two folders at once, which readers "
            "need: copy the tables to one that can (ext4, XFS, Btrfs, tmpfs on Linux), or write "
            "tables of Delta or Iceberg"
        ) from None
    with changing(root) as is_alone:
        if not is_alone:
            raise CompactionError(
                f"{root.shown}: its file system has no locks, which keep a running stream from "
                "adding files meanwhile"
            )


def _folders(root: Path, tables: Sequence[str], target: int) -> Iterator[_Folder]:
    """Yield the folders with files to merge. A folder that has other folders is none of them."""
    hidden = unpublished(root)
    leaves: list[tuple[str, str, Path, list[str]]] = []
    last: dict[str, int] = {}
    for table in tables:
        for where, folders, names in os.walk(root / table):
            place = Path(where)
            run = _run_of(place.relative_to(root))
            if (run or "all") in hidden:
                continue
            for _, end in filter(None, map(batches_named, names)):
                last[run] = max(last.get(run, 0), end - 1)
            if not folders:
                leaves.append((table, run, place, names))
    for table, run, place, names in leaves:
        groups = list(_groups(place, _in_order(names, last.get(run, 0)), target))
        if groups:
            yield _Folder(place, table, groups)


def _run_of(place: Path) -> str:
    """Return the run of a folder ``TABLE/run=ID/...``; "" without one."""
    inside = place.parts[1] if len(place.parts) > 1 else ""
    return inside.removeprefix("run=") if inside.startswith("run=") else ""


def _in_order(names: Sequence[str], last: int) -> list[str]:
    """Return the files that may be merged, batches in their order."""
    batches = {name: batches_named(name) for name in names}
    may = [
        name for name, span in batches.items()
        if name.endswith(".parquet") and name[0] not in "._" and name not in _EMPTY
        and not name.startswith("end-") and (span is None or span[1] <= last)
    ]  # fmt: skip
    return sorted(may, key=lambda name: (batches[name] or (-1, -1), name))


def _groups(place: Path, names: Sequence[str], target: int) -> Iterator[list[_File]]:
    """Yield small files that follow each other, as many as the target takes."""
    group: list[_File] = []
    for name in names:
        path = place / name
        if path.is_symlink() or (state := _state(path)) is None or 2 * state[1] >= target:
            continue
        file = _File(path, state, pq.read_schema(path))
        if group and (
            sum(each.state[1] for each in group) + state[1] > target
            or not _is_alike(group[0], file)
        ):
            yield from [group] if len(group) > 1 else []
            group = []
        group.append(file)
    yield from [group] if len(group) > 1 else []


def _is_alike(one: _File, other: _File) -> bool:
    """Whether two files may be merged: they have the same columns, and are of a stream or not."""
    is_batch = [batches_named(each.path.name) is None for each in (one, other)]
    versions = [(each.schema.metadata or {}).get(b"wiredump.schema") for each in (one, other)]
    return (
        one.schema.equals(other.schema)
        and versions[0] == versions[1]
        and is_batch[0] == is_batch[1]
    )


def _state(path: Path) -> _State | None:
    try:
        about = path.stat()
    except FileNotFoundError:
        return None
    return about.st_ino, about.st_size, about.st_mtime_ns


# ---- a folder -----------------------------------------------------------------------------------


def _compact(root: Location, folder: _Folder, copy: Path, found: Compacted) -> None:
    copy.mkdir()
    _own(copy, folder.place)
    old = [file for group in folder.groups for file in group]
    try:
        for group in folder.groups:
            _merge(group, copy)
        with changing(root):
            is_same = all(_state(each.path) == each.state for each in old)
            if is_same:
                _link_others(folder.place, copy, {each.path.name for each in old})
                Location(str(copy)).sync()
                exchange(str(copy), str(folder.place))
                Location(str(folder.place)).sync()
    except (FileNotFoundError, IsADirectoryError):
        is_same = False
    if not is_same:
        found.changed.append(str(folder.place))
        return
    Location(str(copy)).remove()  # it has the small files now
    found.merged += len(old)
    found.into += len(folder.groups)
    found.bytes += sum(each.state[1] for each in old)


def _link_others(place: Path, copy: Path, merged: set[str]) -> None:
    """Link the files of a folder that were not merged. Raises IsADirectoryError for a folder."""
    for each in place.iterdir():
        if each.name in merged:
            continue
        if each.is_dir() and not each.is_symlink():
            raise IsADirectoryError(each)
        os.link(each, copy / each.name, follow_symlinks=False)


def _merge(group: Sequence[_File], folder: Path) -> None:
    """Write the rows of files to one, with as many rows in a row group as ``wiredump table``
    writes."""
    name, schema, batches = f"part-{uuid.uuid4().hex}.parquet", group[0].schema, []
    spans = [span for each in group if (span := batches_named(each.path.name)) is not None]
    if spans:
        name = f"batches-{spans[0][0]:06d}-{spans[-1][1]:06d}-{uuid.uuid4().hex[:8]}.parquet"
        for each in group:
            with pq.ParquetFile(each.path) as file:
                batches += batch_rows(each.path.name, file)
        schema = schema.with_metadata(
            {**(schema.metadata or {}), _BATCHES: json.dumps(batches).encode()}
        )
    new = folder / name
    with pq.ParquetWriter(new, schema, **encodings(schema)) as writer:
        for rows in _row_groups(group):
            writer.write_table(rows.cast(schema))
    _own(new, group[0].path)
    Location(str(new)).sync()
    expected = sum(pq.read_metadata(each.path).num_rows for each in group)
    made = pq.read_metadata(new).num_rows
    if made != expected or (batches and made != sum(rows for _, rows in batches)):
        raise CompactionError(f"{group[0].path.parent}: {made} rows were merged, not {expected}")


def _row_groups(group: Sequence[_File]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    for each in group:
        with pq.ParquetFile(each.path) as file:
            for batch in file.iter_batches(ROW_GROUP):
                held.append(batch)
                is_full = sum(map(len, held)) >= ROW_GROUP
                if is_full or sum(batch.nbytes for batch in held) >= _ROW_GROUP_BYTES:
                    yield pa.Table.from_batches(held)
                    held = []
    if held:
        yield pa.Table.from_batches(held)


def _own(new: Path, old: Path) -> None:
    """Give a file or folder the mode and, if this process may, the owner of the one it replaces."""
    shutil.copymode(old, new)
    about = old.stat()
    with suppress(PermissionError):
        os.chown(new, about.st_uid, about.st_gid)


# ---- manifests ----------------------------------------------------------------------------------


def _correct_manifests(root: Location) -> None:
    """Name the files that there are in the manifests of runs that are complete."""
    for place in (root / MANIFESTS).glob("*.json"):
        with changing(root):
            try:
                manifest = read_manifest(place.read_bytes())
            except FileNotFoundError:
                continue
            if manifest is None or not manifest.complete:
                continue
            files = {
                name: _named(Path(run_folder(root, name, manifest.run).path), known)
                for name, known in manifest.files.items()
                if name in TABLES
            }
            if files != manifest.files:
                manifest.files = files
                place.replace_bytes(msgspec.json.encode(manifest))


def _named(folder: Path, known: dict[str, int]) -> dict[str, int]:
    """Return the files of a folder, and the rows of each."""
    found = {}
    for path in sorted(folder.rglob("*.parquet")):
        name = path.relative_to(folder).as_posix()
        if name in known:
            found[name] = known[name]
        elif path.name not in _EMPTY:
            found[name] = pq.read_metadata(path).num_rows
    return found
