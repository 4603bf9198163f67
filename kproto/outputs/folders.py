"""The files of a folder, which take their places together."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import shutil
from collections.abc import Iterator
from typing import BinaryIO, Final

from kproto.outputs.errors import IncompleteFolderError, OutputError, refusals
from kproto.outputs.files import write_output
from kproto.outputs.locks import has_locks, is_locked, is_same, lock
from kproto.outputs.signals import uninterrupted, unwinding
from kproto.outputs.targets import (
    NamedFile,
    closing,
    keep_owner_and_mode,
    require_access,
    sync_folder,
)

__all__ = [
    "INCOMPLETE",
    "FolderOutput",
    "check_output_folder",
    "open_folder_output",
    "require_complete",
]

INCOMPLETE: Final = ".kproto-incomplete"
"""In a folder whose files are being published."""
_STAGING: Final = ".kproto-new"


def check_output_folder(path: str) -> None:
    """Raise OutputError if no files can be written to a folder, which may be missing: there is a
    file of this name, its parent is read-only, another process writes to it. Nothing is changed."""
    with refusals(path):
        missing = _missing_folders(path)
        parent = os.path.dirname(missing[0]) if missing else path
        if not os.path.isdir(parent or "."):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), parent)
        require_access(parent or ".", os.W_OK | os.X_OK)
        probe = os.path.join(parent, f".kproto-{secrets.token_hex(4)}")
        os.mkdir(probe)
        os.rmdir(probe)
        if not missing and is_locked(os.path.join(path, _STAGING)):
            raise OutputError(f"{path}: another process is writing to it")


def require_complete(folder: str | os.PathLike[str]) -> None:
    """Raise IncompleteFolderError for a folder whose publishing was interrupted."""
    if os.path.lexists(os.path.join(folder, INCOMPLETE)):
        raise IncompleteFolderError(
            f"{os.fspath(folder)}: a command was interrupted while it replaced these files; repeat "
            f"it ({INCOMPLETE} marks the folder)"
        )


@contextlib.contextmanager
def open_folder_output(folder: str | os.PathLike[str]) -> Iterator[FolderOutput]:
    """Yield a folder whose files are published when the block ends. If the block fails, the folder
    is as before.

    Raises OutputError if the folder cannot be written to, OSError with the file's name if a file
    cannot.
    """
    shown = os.fspath(folder)
    check_output_folder(shown)
    with unwinding():
        made = _missing_folders(shown)
        try:
            with refusals(shown):
                os.makedirs(shown, exist_ok=True)
                out = FolderOutput(shown)
            try:
                yield out
                with uninterrupted():
                    out.publish()
            finally:
                out.close()
        except BaseException:
            _remove_folders(made)
            raise


class FolderOutput:
    """Files that take their places in ``folder`` together."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._staging = os.path.join(folder, _STAGING)
        self._names: list[str] = []
        self._removed: set[str] = set()
        self._made: list[str] = []
        self._number = self._staged()

    def _staged(self) -> int:
        """Create the staging folder, empty, and lock it."""
        if not has_locks():
            shutil.rmtree(self._staging, ignore_errors=True)
            os.mkdir(self._staging)
            return -1
        while True:
            os.makedirs(self._staging, exist_ok=True)
            number = os.open(self._staging, os.O_RDONLY)
            if not lock(number) and is_locked(self._staging):
                os.close(number)
                raise OutputError(f"{self._folder}: another process is writing to it")
            if is_same(number, self._staging):
                break
            os.close(number)
        for each in os.listdir(self._staging):
            _remove(os.path.join(self._staging, each))
        return number

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Yield a new file; ``name`` may be in a folder within."""
        path = os.path.join(self._staging, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        file = io.BufferedWriter(NamedFile(number, os.path.join(self._folder, name)))
        with closing(file):
            yield file
            file.flush()
            os.fsync(number)
        self._names.append(name)

    def write(self, name: str, content: str | bytes) -> None:
        """Write a whole file; text becomes UTF-8."""
        with self.open(name) as file:
            file.write(content.encode() if isinstance(content, str) else content)

    def remove(self, name: str) -> None:
        """Remove a file that the folder has when the others are published."""
        self._removed.add(name)

    def publish(self) -> None:
        """Give all files their places."""
        places = {name: os.path.realpath(os.path.join(self._folder, name)) for name in self._names}
        for name, place in places.items():
            if os.path.lexists(place) and not os.path.isfile(place):
                raise OutputError(f"{os.path.join(self._folder, name)}: not a regular file")
        for folder in {os.path.dirname(place) for place in places.values()}:
            self._made += _missing_folders(folder)
            os.makedirs(folder, exist_ok=True)
        mark = os.path.join(self._folder, INCOMPLETE)
        write_output(mark, b"")
        for name, place in places.items():
            staged = os.path.join(self._staging, name)
            with contextlib.suppress(FileNotFoundError):
                keep_owner_and_mode(staged, os.stat(place))
            os.replace(staged, place)
        self._made.clear()
        for name in self._removed.difference(places):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self._folder, name))
        for folder in {os.path.dirname(place) for place in places.values()}:
            sync_folder(folder)
        os.unlink(mark)
        sync_folder(self._folder)

    def close(self) -> None:
        """Remove what was not published."""
        shutil.rmtree(self._staging, ignore_errors=True)
        _remove_folders(self._made)
        if self._number >= 0:
            os.close(self._number)


def _missing_folders(path: str) -> list[str]:
    """Return the folders that have to be created, outermost first."""
    missing: list[str] = []
    while path and not os.path.exists(path):
        if os.path.islink(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        missing.insert(0, path.rstrip("/"))
        path = os.path.dirname(path.rstrip("/"))
    return missing


def _remove_folders(folders: list[str]) -> None:
    for each in reversed(folders):
        with contextlib.suppress(OSError):
            os.rmdir(each)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)
