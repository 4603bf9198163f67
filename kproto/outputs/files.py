"""One file, complete and synced before it takes its name."""

from __future__ import annotations

import contextlib
import io
import os
import re
import secrets
from collections.abc import Iterator
from typing import BinaryIO, Final

from kproto.outputs.errors import OutputError, refusals
from kproto.outputs.locks import lock
from kproto.outputs.signals import unwinding
from kproto.outputs.targets import (
    NamedFile,
    Target,
    closing,
    keep_owner_and_mode,
    require_access,
    sync_folder,
)

__all__ = ["check_output", "open_output", "write_output"]

_NAME_BYTES: Final = 200
"""Of the target's name in that of the temporary file; most file systems allow 255."""


def check_output(path: str) -> None:
    """Raise OutputError if no file can be written to ``path``: a folder, a missing or read-only
    parent, a read-only file. Nothing is changed."""
    with refusals(path):
        target = Target(path)
        if target.descriptor is not None:
            os.write(target.descriptor, b"")
        elif target.stream is not None:
            pass
        elif target.is_direct:
            require_access(target.path, os.W_OK)
        else:
            new = _Temporary(target.path, path)
            new.discard()


@contextlib.contextmanager
def open_output(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a binary file whose content replaces ``path`` when the block ends.

    Raises OutputError if the file cannot be created, OSError with the file's name if it cannot be
    written.
    """
    shown = os.fspath(path)
    with refusals(shown):
        target = Target(shown)
    if target.is_direct:
        with refusals(shown):
            file: BinaryIO = target.open(shown)
        with closing(file):
            yield file
        return
    with unwinding():
        with refusals(shown):
            new = _Temporary(target.path, shown)
        try:
            yield new.file
            new.publish()
        except BaseException:
            new.discard()
            raise


def write_output(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a whole file; text becomes UTF-8. Raises what ``open_output`` raises."""
    with open_output(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


class _Temporary:
    """A new file beside ``path``, locked as long as its process lives."""

    def __init__(self, path: str, shown: str) -> None:
        self._path = path
        self._folder, name = os.path.split(path)
        kept = os.fsdecode(os.fsencode(name)[:_NAME_BYTES])
        try:
            old: os.stat_result | None = os.stat(path)
            require_access(path, os.W_OK)
        except FileNotFoundError:
            old = None
        if not os.path.isdir(self._folder):
            raise OutputError(f"{shown}: there is no folder {self._folder}")
        require_access(self._folder, os.W_OK | os.X_OK)
        _remove_left(self._folder, kept)
        number = -1
        while number < 0:
            self.name = os.path.join(self._folder, f".{kept}.{secrets.token_hex(4)}.part")
            number = _created(self.name)
        self.file: BinaryIO = io.BufferedWriter(NamedFile(number, shown))
        try:
            if old is not None:
                keep_owner_and_mode(self.name, old)
        except BaseException:
            self.discard()
            raise

    def publish(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        os.replace(self.name, self._path)
        sync_folder(self._folder)

    def discard(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self.file.close()
        with contextlib.suppress(OSError):
            os.unlink(self.name)


def _created(name: str) -> int:
    """Create a file and lock it; returns -1 if another process took it for one that was left."""
    number = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    lock(number, wait=True)
    if os.path.exists(name):
        return number
    os.close(number)
    return -1


def _remove_left(folder: str, name: str) -> None:
    """Remove what killed processes left. A running process holds a lock on its file."""
    pattern = re.compile(rf"\.{re.escape(name)}\.[0-9a-f]{{8}}\.part")
    for each in os.listdir(folder) if os.access(folder, os.R_OK) else ():
        if pattern.fullmatch(each):
            with contextlib.suppress(OSError):
                _remove_unlocked(os.path.join(folder, each))


def _remove_unlocked(path: str) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        if lock(number):
            os.unlink(path)
    finally:
        os.close(number)
