"""A folder of tables: any file whose name ends in .parquet, at any depth of a table's folder,
whichever program wrote it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from kproto.errors import KprotoError
from wiredump.rows.schema import SCHEMA_VERSION, TABLES
from wiredump.tables.publishing import MANIFESTS, is_complete

__all__ = ["InputError", "TableFolder", "require_published", "table_files", "unpublished"]

_OLDEST: Final = 5
"""The version of the schema since which columns were only added."""
_READABLE: Final = [str(version) for version in range(_OLDEST, SCHEMA_VERSION + 1)]


class InputError(KprotoError):
    """A folder, or a file in it, cannot be read as tables. The message names it and the reason."""


class TableFolder:
    """A folder that ``wiredump table`` or ``wiredump spark`` wrote. ``names`` are the tables that
    it has.

    Raises InputError for a folder without tables, and for one whose publishing was interrupted.
    """

    def __init__(self, folder: str) -> None:
        self.path = folder
        self._folder = Path(folder)
        if not self._folder.is_dir():
            raise InputError(f"{folder} is not a folder of tables")
        require_published(self._folder)
        self.names = [name for name in TABLES if (self._folder / name).is_dir()]
        if not self.names:
            raise InputError(f"{folder} has no tables ({', '.join(TABLES)})")

    def require_schema(self) -> None:
        """Raise InputError for a file that cannot be read, or has another version of the tables'
        schema."""
        for name in self.names:
            for path in table_files(self._folder, name):
                _require_schema(path)


def table_files(folder: Path, table: str) -> list[Path]:
    """Return the files of a table, but for those of runs that are not published yet."""
    hidden = {folder / table / f"run={run}" for run in unpublished(folder)}
    files = sorted((folder / table).rglob("*.parquet"))
    return [file for file in files if hidden.isdisjoint(file.parents)] if hidden else files


def require_published(folder: Path) -> None:
    """Raise InputError if all that a folder has are files of a run that is being published, or
    whose process was killed meanwhile."""
    hidden = unpublished(folder)
    if not hidden:
        return
    runs = {
        place.name.removeprefix("run=") for name in TABLES for place in folder.glob(f"{name}/*")
    }
    if "all" in hidden or runs <= hidden:
        raise InputError(
            f"{folder} is incomplete: the run {min(hidden)} is publishing its tables, or was "
            "killed; if it was, write the tables again with the same command"
        )


def unpublished(folder: Path) -> set[str]:
    """Return the runs whose files are only partly published; ``all`` for files of no run."""
    manifests = (folder / MANIFESTS).glob("*.json")
    return {path.stem for path in manifests if not is_complete(path.read_bytes())}


def _require_schema(path: Path) -> None:
    try:
        schema = pq.read_schema(path)
    except FileNotFoundError:  # it was compacted since
        return
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    version = (schema.metadata or {}).get(b"wiredump.schema")
    if version is not None and version.decode(errors="replace") not in _READABLE:
        found = version.decode(errors="replace")
        raise InputError(
            f"{path} has version {found} of the tables' schema, but this release reads versions "
            f"{_READABLE[0]} to {_READABLE[-1]}: write the tables again"
        )
