"""Read bytes anywhere in a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from wiredump.storage.errors import ChangedError, translated

if TYPE_CHECKING:
    from pyarrow import NativeFile

__all__ = ["LocalFile", "RangedFile", "RemoteFile"]

BLOCK: Final = 1 << 20
"""The least that is read from a remote file at a time, so that a chain of short headers is one
request."""


class RangedFile:
    """An open file of ``size`` bytes. ``version`` is what the file system has to tell its content
    from another one: an entity tag, or the time of modification."""

    name: str
    size: int
    version: str

    def read_at(self, position: int, size: int) -> bytes:
        """Return ``size`` bytes from a position, or those that are left."""
        raise NotImplementedError

    @property
    def number(self) -> int | None:
        """The file descriptor; None for remote files."""
        return None

    def close(self) -> None:
        raise NotImplementedError

    def require(self, version: str) -> None:
        """Raise ChangedError unless the file has this version."""
        if version and version != self.version:
            raise ChangedError(
                f"{self.name} changed while it was being read: run the command again once nothing "
                "writes to it"
            )

    def __enter__(self) -> RangedFile:
        return self

    def __exit__(self, *about: object) -> None:
        self.close()


class LocalFile(RangedFile):
    """A local file, which may grow: it has no version."""

    version = ""

    def __init__(self, path: str) -> None:
        self.name = path
        self._number = os.open(path, os.O_RDONLY)
        self.size = os.fstat(self._number).st_size

    def read_at(self, position: int, size: int) -> bytes:
        return os.pread(self._number, size, position)

    @property
    def number(self) -> int:
        return self._number

    def close(self) -> None:
        os.close(self._number)


class RemoteFile(RangedFile):
    """A file that pyarrow opened. Short reads are served from the last block."""

    def __init__(self, file: NativeFile, name: str, version: str) -> None:
        self.name = name
        self.version = version
        self._file = file
        with translated(name):
            self.size = file.size()
        self._block = b""
        self._start = 0

    def read_at(self, position: int, size: int) -> bytes:
        start = position - self._start
        if start < 0 or start + size > len(self._block):
            wanted = min(max(size, BLOCK), max(0, self.size - position))
            with translated(self.name):
                block = self._file.read_at(wanted, position) if wanted else b""
            if len(block) < wanted:
                raise ChangedError(f"{self.name} was truncated while it was being read")
            if size >= BLOCK:
                return block
            self._block, self._start, start = block, position, 0
        return self._block[start : start + size]

    def close(self) -> None:
        self._file.close()
