"""Run ids, which keep rows of several runs of a command apart in one folder of tables.

``connection`` and ``capture`` count within one run. The files of a run are in ``TABLE/run=ID``,
which readers of partitioned Parquet (Spark, pyarrow, pandas, DuckDB) show as a column ``run``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar

from wiredump.storage import Location, RangedFile

__all__ = ["MODES", "Mode", "RunDigest", "derived_run", "is_run", "random_run", "run_folder"]

Mode: TypeAlias = Literal["error", "append", "overwrite"]
"""What to do if the folder has tables: fail, write beside those of other runs, or replace them."""
MODES: Final = ("error", "append", "overwrite")

_SAMPLE: Final = 1 << 16
_DIGEST: Final = 8
_Folder = TypeVar("_Folder", Path, Location)


def is_run(text: str) -> bool:
    """Whether a text can be a run's id. It must begin with a letter, so that readers do not take it
    for a number, and must be usable in a file name."""
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]{0,63}", text) is not None


class RunDigest:
    """Derives the id of a run from open files, in their order."""

    def __init__(self) -> None:
        self._digest = blake2b(digest_size=_DIGEST)

    def add(self, file: RangedFile) -> None:
        size = file.size
        self._digest.update(size.to_bytes(8) + file.read_at(0, _SAMPLE))
        self._digest.update(file.read_at(max(_SAMPLE, size - _SAMPLE), _SAMPLE))

    @property
    def run(self) -> str:
        return f"r{self._digest.hexdigest()}"


def derived_run(paths: Iterable[str]) -> str:
    """Derive the id from the sizes of the sources and their first and last 64 KiB, in order: the
    same files give the same id, wherever they are and however they are read. The id is random if a
    source is not a file, since it cannot be read twice."""
    digest = RunDigest()
    for path in paths:
        try:
            if path == "-" or not Location(path).is_file():
                return random_run()
            with Location(path).open_ranged() as file:
                digest.add(file)
        except OSError:  # opening it later will report the error
            return random_run()
    return digest.run


def random_run() -> str:
    """Return a random id."""
    return f"r{os.urandom(_DIGEST).hex()}"


def run_folder(folder: _Folder, table: str, run: str) -> _Folder:
    """Return the folder of a run's files of a table; without a run, the table's folder."""
    return folder / table / f"run={run}" if run else folder / table
