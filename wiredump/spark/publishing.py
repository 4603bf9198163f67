"""Publish the files of a run, so that readers can tell complete tables from others.

Object stores do not rename, and no file system renames several files at once. So everything is
written to ``_staging`` first, where readers do not look. Then::

    _manifests/RUN.json     the files of the run by table, with their rows; not complete
    _SUCCESS                removed, if an earlier run left it
    TABLE/run=RUN/...       each file, renamed or, in an object store, copied within the store
    _manifests/RUN.json     complete
    _SUCCESS                written last

A run that fails removes what it published. If its driver is killed in the midst of this, the
manifest names the files; ``require_room`` refuses to add another run to the folder until they are
removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from wiredump.rows.schema import TABLES
from wiredump.storage import Location
from wiredump.tables.parts import STAGING, Part, commit
from wiredump.tables.writer import OutputError

__all__ = [
    "MANIFESTS",
    "SUCCESS",
    "RunManifest",
    "is_incomplete",
    "publish",
    "require_tables",
    "withdraw",
]

MANIFESTS: Final = "_manifests"
SUCCESS: Final = "_SUCCESS"


class RunManifest(msgspec.Struct):
    """The files of a run by table, with their rows. A table without rows has no file here, but one
    without rows in its folder."""

    run: str
    complete: bool
    files: dict[str, dict[str, int]]


def publish(
    folder: str, tables: Iterable[str], parts: Iterable[Mapping[str, Part]], run: str,
    *, overwrite: bool = False,
) -> None:  # fmt: skip
    """Publish the files in the manifests of tasks, and remove the staging folder. With
    ``overwrite`` all other tables in the folder are removed first."""
    root, parts = Location(folder), list(parts)
    manifest = RunManifest(run, False, {name: {} for name in tables})
    for each in parts:
        for name, part in each.items():
            manifest.files[name][part.file] = part.rows
    place = _place(root, run)
    place.parent.mkdir()
    place.write_bytes(msgspec.json.encode(manifest))
    (root / SUCCESS).unlink(missing_ok=True)
    if overwrite:
        for name in TABLES:
            (root / name).remove()
        for old in (root / MANIFESTS).iterdir():
            if old != place:
                old.unlink()
    commit(folder, manifest.files, parts, run)
    (root / STAGING).remove()
    manifest.complete = True
    place.write_bytes(msgspec.json.encode(manifest))
    (root / SUCCESS).write_bytes(b"")


def withdraw(folder: str, run: str) -> None:
    """Remove the manifest of a failed run, after its files."""
    place = _place(Location(folder), run)
    place.unlink(missing_ok=True)
    place.parent.rmdir()


def is_incomplete(folder: str, run: str) -> bool:
    """Whether this run began to be published, and not more."""
    place = _place(Location(folder), run)
    if not place.exists():
        return False
    return not msgspec.json.decode(place.read_bytes(), type=RunManifest).complete


def require_tables(folder: Location) -> None:
    """Raise OutputError if a folder to overwrite has anything but tables."""
    if folder.is_file():
        raise OutputError(f"{folder.shown} is a file: name another folder")
    for each in folder.iterdir():
        if each.name not in {*TABLES, MANIFESTS, SUCCESS}:
            raise OutputError(
                f"{folder.shown} is not overwritten, because it has {each.name}, which is no table"
            )


def _place(root: Location, run: str) -> Location:
    return root / MANIFESTS / f"{run or 'all'}.json"
