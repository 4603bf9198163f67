"""A file that grows while its process runs, such as a journal."""

from __future__ import annotations

import contextlib
import io
import os
from typing import BinaryIO

from kproto.outputs.errors import NotEmptyError, refusals
from kproto.outputs.targets import NamedFile, Target

__all__ = ["OutputStream"]


class OutputStream:
    """A file that is written while its process runs, and therefore not replaced as a whole. A
    file that is not empty is only replaced with ``overwrite``.

    Raises OutputError if the file cannot be created, NotEmptyError if it is not empty.
    """

    def __init__(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        shown = os.fspath(path)
        self._size = 0
        with refusals(shown):
            target = Target(shown)
            self._is_regular = not target.is_direct
            if target.is_direct:
                self._file: BinaryIO = target.open(shown)
                return
            if not overwrite and os.path.exists(shown) and os.path.getsize(shown):
                raise NotEmptyError(f"{shown} is not empty: name another file")
            self._file = io.BufferedWriter(NamedFile(target.path, shown))

    def write(self, data: bytes) -> None:
        """Write bytes through to the file. If this fails, the file ends before them; raises
        OSError."""
        try:
            self._file.write(data)
            self._file.flush()
        except OSError:
            self._cut()
            raise
        self._size += len(data)

    def _cut(self) -> None:
        """Close the file; end it after the last complete write."""
        number = os.dup(self._file.fileno())
        try:
            self.close()
            if self._is_regular:
                os.ftruncate(number, self._size)
        finally:
            os.close(number)

    def close(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # of bytes that could not be written
            self._file.close()
