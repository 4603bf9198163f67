"""What the name of an output stands for: a file that can be replaced, or something that is written
to directly (a device, a FIFO, an open file of this process).
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import re
import stat
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, cast

__all__ = ["NamedFile", "Target", "closing", "keep_owner_and_mode", "require_access", "sync_folder"]

_MOST_LINKS: Final = 40
_DESCRIPTOR: Final = re.compile(r"/(?:dev|proc/(\d+)(?:/task/\d+)?)/fd/(\d+)")


class Target:
    """Where the bytes of an output go. ``descriptor`` is a file that this process has open."""

    def __init__(self, path: str) -> None:
        self.descriptor: int | None = None
        self.path, self.is_direct = path, True
        self.stream: BinaryIO | None = None
        if path == "-":
            self._use_stdout()
            return
        self.descriptor = _descriptor_of(path)
        if self.descriptor is not None:
            return
        if not os.path.basename(path):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        try:
            mode = os.stat(path).st_mode
        except FileNotFoundError:
            mode = stat.S_IFREG
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if stat.S_ISREG(mode):
            self.path, self.is_direct = os.path.realpath(path), False

    def _use_stdout(self) -> None:
        if sys.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        sys.stdout.flush()
        if sys.stdout.isatty():
            self.stream = cast(BinaryIO, _TerminalBytes())
            return
        try:
            self.descriptor = sys.stdout.fileno()
        except (AttributeError, io.UnsupportedOperation):  # replaced, by a test for example
            self.stream = sys.stdout.buffer

    def open(self, shown: str) -> BinaryIO:
        """Open a target that is not replaced."""
        if self.stream is not None:
            return _Unclosed(self.stream)
        where = self.path if self.descriptor is None else os.dup(self.descriptor)
        return io.BufferedWriter(NamedFile(where, shown))


class NamedFile(io.FileIO):
    """Its errors have the output's name."""

    def __init__(self, where: str | int, shown: str) -> None:
        super().__init__(where, "w")
        self._shown = shown

    def write(self, data: Any, /) -> Any:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = self._shown
            raise


class _TerminalBytes(io.RawIOBase):
    """Standard output as UTF-8, through the guard that ``sys.stdout`` has for terminals."""

    def __init__(self) -> None:
        super().__init__()
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        sys.stdout.write(self._decode(bytes(data)))
        sys.stdout.flush()
        return len(data)


class _Unclosed(io.BufferedWriter):
    """A stream that others go on to use."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__(stream)
        self._is_detached = False

    def close(self) -> None:
        if not self._is_detached:
            self._is_detached = True
            self.detach()


def _descriptor_of(path: str) -> int | None:
    """Return the number of the open file that a path names: /dev/stdout, /dev/fd/3, or a link to
    one."""
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(path)
        path = os.path.join(os.path.realpath(folder), name)
        found = _DESCRIPTOR.fullmatch(path)
        if found is not None:
            is_own = found[1] is None or int(found[1]) == os.getpid()
            return int(found[2]) if is_own else None
        if not os.path.islink(path):
            break
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return None


def keep_owner_and_mode(path: str, old: os.stat_result) -> None:
    new = os.stat(path)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with contextlib.suppress(PermissionError):
            os.chown(path, old.st_uid, old.st_gid)
    os.chmod(path, stat.S_IMODE(old.st_mode))


def require_access(path: str, mode: int) -> None:
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if not os.access(path, mode):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def sync_folder(folder: str) -> None:
    # Some systems cannot sync a folder, or do not allow opening it.
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


@contextlib.contextmanager
def closing(file: BinaryIO) -> Iterator[None]:
    """Close a file; its errors count unless there is another one."""
    try:
        yield
        file.close()
    except BaseException:
        with contextlib.suppress(OSError, ValueError):
            file.close()
        raise
