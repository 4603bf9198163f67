"""Runs: what makes rows of several runs of a command unique in one folder of tables.

``connection`` and ``capture`` count within one run. Files of a run lie in ``TABLE/run=ID``, which
readers of partitioned Parquet (Spark, pyarrow, pandas, DuckDB) take for a column ``run``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from stat import S_ISREG
from typing import Final

__all__ = ["derived_run", "is_run", "random_run", "run_folder"]

_SAMPLE: Final = 1 << 16
_DIGEST: Final = 8


def is_run(text: str) -> bool:
    """Whether it can be a run's id. It begins with a letter, so that no reader takes it for a
    number, and fits into a file's name."""
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]{0,63}", text) is not None


def derived_run(paths: Iterable[str]) -> str:
    """By the sizes of the sources, and their first and last 64 KiB, in their order: the same for
    the same files wherever they lie, and however they are read. Random where one of them is no
    file, and cannot be read twice."""
    digest = blake2b(digest_size=_DIGEST)
    for path in paths:
        try:
            if path == "-" or not S_ISREG(os.stat(path).st_mode):
                return random_run()
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                digest.update(size.to_bytes(8) + file.read(_SAMPLE))
                file.seek(max(_SAMPLE, size - _SAMPLE))
                digest.update(file.read(_SAMPLE))
        except OSError:  # whoever opens it to read will say so
            return random_run()
    return f"r{digest.hexdigest()}"


def random_run() -> str:
    """Nobody else's."""
    return f"r{os.urandom(_DIGEST).hex()}"


def run_folder(folder: Path, table: str, run: str) -> Path:
    """Where a run's files of a table are; of no run, the table's folder."""
    return folder / table / f"run={run}" if run else folder / table
