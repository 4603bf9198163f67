"""The survey of a job's files, which its plan needs. The driver opens each file once."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from typing import Final, NamedTuple

from wiredump.sources.kinds import Kind, recognise
from wiredump.spark.heads import head_of
from wiredump.storage import Location, StorageError
from wiredump.tables.run import RunDigest

__all__ = ["Surveyed", "survey"]

_HEAD: Final = 64 * 1024


class Surveyed(NamedTuple):
    """``version`` is that of the file (``storage.RangedFile``). ``is_whole``: only one task can
    read it."""

    kind: Kind
    size: int
    version: str
    is_whole: bool


def survey(
    paths: Mapping[int, str], digest: RunDigest | None = None, *, lenient: bool = False
) -> dict[int, Surveyed]:
    """Open the files with these numbers, and add each to ``digest``. Raises OSError and
    StorageError for one that cannot be opened; with ``lenient`` it is left out."""
    found = {}
    for number, path in paths.items():
        with suppress(OSError, StorageError) if lenient else nullcontext():
            found[number] = _opened(path, digest)
    return found


def _opened(path: str, digest: RunDigest | None) -> Surveyed:
    place = Location(path)
    with place.open_ranged() as file:
        try:
            head = file.read_at(0, _HEAD)
        except IsADirectoryError:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), place.shown) from None
        kind = recognise(io.BufferedReader(io.BytesIO(head), _HEAD), follow=False)
        is_whole = kind == "capture" and head_of(file) is None
        if digest is not None:
            digest.add(file)
        return Surveyed(kind, file.size, file.version, is_whole)
