"""Write output files and folders whole: readers find the old content or the new, never a part.

A file is written beside its target, synced and renamed over it. The mode of an existing file is
kept, and a symbolic link is followed. If the block of ``open_output`` fails, also by SIGINT,
SIGTERM or SIGHUP, the target is as before and the temporary file is gone. A killed process leaves
the temporary file, ``.NAME.XXXXXXXX.part``; the next output to the same target removes it.

What cannot be replaced is written to directly: devices, FIFOs, ``-`` and open files of this process
(``/dev/stdout``, ``/dev/fd/N``). A reader of these may see a part.

The files of a folder are complete in ``FOLDER/.kproto-new`` before the first one is published.
While they are renamed one by one, ``FOLDER/.kproto-incomplete`` exists; ``require_complete``
refuses a folder that still has it.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import importlib
import io
import os
import re
import secrets
import shutil
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, BinaryIO, Final, NoReturn, cast

from kproto.errors import KprotoError
from kproto.os_errors import os_error_text

__all__ = [
    "INCOMPLETE",
    "FolderOutput",
    "IncompleteFolderError",
    "NotEmptyError",
    "OutputError",
    "OutputStream",
    "check_output",
    "check_output_folder",
    "is_locked",
    "locked",
    "open_folder_output",
    "open_output",
    "require_complete",
    "uninterrupted",
    "unwinding",
    "write_output",
]

_locks: Any = None
with contextlib.suppress(ImportError):  # Windows, which does not remove a file that is open
    _locks = importlib.import_module("fcntl")

INCOMPLETE: Final = ".kproto-incomplete"
"""In a folder whose files are being published."""
_ENDING: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_STAGING: Final = ".kproto-new"
_MOST_LINKS: Final = 40
_NAME_BYTES: Final = 200
"""Of the target's name in that of the temporary file; most file systems allow 255."""
_DESCRIPTOR: Final = re.compile(r"/(?:dev|proc/(\d+)(?:/task/\d+)?)/fd/(\d+)")


class OutputError(KprotoError):
    """An output cannot be written. The message has its name and the reason."""


class NotEmptyError(OutputError):
    """A file that would be overwritten."""


class IncompleteFolderError(KprotoError):
    """A folder has files of two runs, because publishing the second one was interrupted."""


# ---- one file ------------------------------------------------------------------------------------


def check_output(path: str) -> None:
    """Raise OutputError if no file can be written to ``path``: a folder, a missing or read-only
    parent, a read-only file. Nothing is changed."""
    with _refusals(path):
        target = _Target(path)
        if target.descriptor is not None:
            os.write(target.descriptor, b"")
        elif target.stream is not None:
            pass
        elif target.is_direct:
            _require_access(target.path, os.W_OK)
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
    with _refusals(shown):
        target = _Target(shown)
    if target.is_direct:
        with _refusals(shown):
            file: BinaryIO = target.open(shown)
        with _closing(file):
            yield file
        return
    with unwinding():
        with _refusals(shown):
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


class _Target:
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
        return io.BufferedWriter(_File(where, shown))


class _File(io.FileIO):
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


class _Temporary:
    """A new file beside ``path``, locked as long as its process lives."""

    def __init__(self, path: str, shown: str) -> None:
        self._path = path
        self._folder, name = os.path.split(path)
        kept = os.fsdecode(os.fsencode(name)[:_NAME_BYTES])
        try:
            old: os.stat_result | None = os.stat(path)
            _require_access(path, os.W_OK)
        except FileNotFoundError:
            old = None
        if not os.path.isdir(self._folder):
            raise OutputError(f"{shown}: there is no folder {self._folder}")
        _require_access(self._folder, os.W_OK | os.X_OK)
        _remove_left(self._folder, kept)
        number = -1
        while number < 0:
            self.name = os.path.join(self._folder, f".{kept}.{secrets.token_hex(4)}.part")
            number = _created(self.name)
        self.file: BinaryIO = io.BufferedWriter(_File(number, shown))
        try:
            if old is not None:
                _keep_owner_and_mode(self.name, old)
        except BaseException:
            self.discard()
            raise

    def publish(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        os.replace(self.name, self._path)
        _sync_folder(self._folder)

    def discard(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self.file.close()
        with contextlib.suppress(OSError):
            os.unlink(self.name)


def _created(name: str) -> int:
    """Create a file and lock it; returns -1 if another process took it for one that was left."""
    number = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    _lock(number, wait=True)
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
        if _lock(number):
            os.unlink(path)
    finally:
        os.close(number)


def _lock(number: int, *, wait: bool = False) -> bool:
    """Lock an open file or folder; returns whether this succeeded."""
    if _locks is None:
        return True
    try:
        _locks.flock(number, _locks.LOCK_EX | (0 if wait else _locks.LOCK_NB))
    except OSError:  # another process has it, or the file system has no locks
        return False
    return True


def _keep_owner_and_mode(path: str, old: os.stat_result) -> None:
    new = os.stat(path)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with contextlib.suppress(PermissionError):
            os.chown(path, old.st_uid, old.st_gid)
    os.chmod(path, stat.S_IMODE(old.st_mode))


def _require_access(path: str, mode: int) -> None:
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if not os.access(path, mode):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def _sync_folder(folder: str) -> None:
    # Some systems cannot sync a folder, or do not allow opening it.
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


# ---- a file that grows ---------------------------------------------------------------------------


class OutputStream:
    """A file that is written while its process runs, and therefore not replaced as a whole. A
    file that is not empty is only replaced with ``overwrite``.

    Raises OutputError if the file cannot be created, NotEmptyError if it is not empty.
    """

    def __init__(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        shown = os.fspath(path)
        self._size = 0
        with _refusals(shown):
            target = _Target(shown)
            self._is_regular = not target.is_direct
            if target.is_direct:
                self._file: BinaryIO = target.open(shown)
                return
            if not overwrite and os.path.exists(shown) and os.path.getsize(shown):
                raise NotEmptyError(f"{shown} is not empty: name another file")
            self._file = io.BufferedWriter(_File(target.path, shown))

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


# ---- a folder of files ---------------------------------------------------------------------------


def check_output_folder(path: str) -> None:
    """Raise OutputError if no files can be written to a folder, which may be missing: there is a
    file of this name, its parent is read-only, another process writes to it. Nothing is changed."""
    with _refusals(path):
        missing = _missing_folders(path)
        parent = os.path.dirname(missing[0]) if missing else path
        if not os.path.isdir(parent or "."):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), parent)
        _require_access(parent or ".", os.W_OK | os.X_OK)
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
            with _refusals(shown):
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
        if _locks is None:
            shutil.rmtree(self._staging, ignore_errors=True)
            os.mkdir(self._staging)
            return -1
        while True:
            os.makedirs(self._staging, exist_ok=True)
            number = os.open(self._staging, os.O_RDONLY)
            if not _lock(number) and is_locked(self._staging):
                os.close(number)
                raise OutputError(f"{self._folder}: another process is writing to it")
            if _is_same(number, self._staging):
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
        file = io.BufferedWriter(_File(number, os.path.join(self._folder, name)))
        with _closing(file):
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
                _keep_owner_and_mode(staged, os.stat(place))
            os.replace(staged, place)
        self._made.clear()
        for name in self._removed.difference(places):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self._folder, name))
        for folder in {os.path.dirname(place) for place in places.values()}:
            _sync_folder(folder)
        os.unlink(mark)
        _sync_folder(self._folder)

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


@contextlib.contextmanager
def locked(path: str) -> Iterator[None]:
    """Lock a file or folder for the block. The end of the process unlocks it, however it ends."""
    if _locks is None:
        yield
        return
    number = os.open(path, os.O_RDONLY)
    try:
        _lock(number)
        yield
    finally:
        os.close(number)


def is_locked(path: str) -> bool:
    """Whether a process has locked a file or folder (``locked``)."""
    if _locks is None:
        return False
    try:
        number = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        _locks.flock(number, _locks.LOCK_EX | _locks.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # the file system has no locks
        return False
    finally:
        os.close(number)
    return False


def _is_same(number: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(number), os.stat(path))
    except FileNotFoundError:
        return False


# ---- both ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def _refusals(shown: str) -> Iterator[None]:
    """Turn errors of a target that cannot be used into OutputError."""
    try:
        yield
    except ValueError:
        raise OutputError(f"{shown!r}: not the name of a file") from None
    except OSError as error:
        if error.filename in (None, shown, os.path.realpath(shown)):
            reason = error.strerror or str(error)
        else:
            reason = os_error_text(error)
        raise OutputError(f"{shown}: {reason}") from None


@contextlib.contextmanager
def _closing(file: BinaryIO) -> Iterator[None]:
    """Close a file; its errors count unless there is another one."""
    try:
        yield
        file.close()
    except BaseException:
        with contextlib.suppress(OSError, ValueError):
            file.close()
        raise


@contextlib.contextmanager
def unwinding() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise SystemExit in the block, so that it can clean up, unless the
    program handles or ignores them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    replaced = [each for each in _ENDING if signal.getsignal(each) is signal.SIG_DFL]
    for each in replaced:
        signal.signal(each, _exit)
    try:
        yield
    finally:
        for each in replaced:
            signal.signal(each, signal.SIG_DFL)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer SIGINT, SIGTERM and SIGHUP to the end of the block, which is to be short."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    before = {each: signal.getsignal(each) for each in _ENDING}
    for each in before:
        if before[each] is not None:  # a handler that was not installed from Python
            signal.signal(each, lambda number, frame: received.append(number))
    try:
        yield
    finally:
        for each, handler in before.items():
            if handler is not None:
                signal.signal(each, handler)
        for each in received:
            signal.raise_signal(each)


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
