"""A folder of tables: any file whose name ends in .parquet, at any depth of a table's folder,
whichever program wrote it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kproto.errors import KprotoError
from wiredump.rows.schema import SCHEMA_VERSION, TABLES
from wiredump.tables.publishing import MANIFESTS, is_complete

__all__ = ["InputError", "TableFolder"]


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
        _require_published(self._folder)
        self.names = [name for name in TABLES if (self._folder / name).is_dir()]
        if not self.names:
            raise InputError(f"{folder} has no tables ({', '.join(TABLES)})")

    def require_schema(self) -> None:
        """Raise InputError for a file that cannot be read, or has another version of the tables'
        schema."""
        for name in self.names:
            for path in sorted((self._folder / name).rglob("*.parquet")):
                _require_schema(path)


def _require_published(folder: Path) -> None:
    """Raise InputError if the files of a run are being published, or its process was killed
    meanwhile."""
    for path in sorted((folder / MANIFESTS).glob("*.json")):
        if not is_complete(path.read_bytes()):
            raise InputError(
                f"{folder} is incomplete: the run {path.stem} is publishing its tables, or was "
                "killed; if it was, write the tables again with the same command"
            )


def _require_schema(path: Path) -> None:
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    version = (schema.metadata or {}).get(b"wiredump.schema")
    if version is not None and version != str(SCHEMA_VERSION).encode():
        found = version.decode(errors="replace")
        raise InputError(
            f"{path} has version {found} of the tables' schema, but this release reads version "
            f"{SCHEMA_VERSION}: write the tables again"
        )
