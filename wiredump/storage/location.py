"""A file or folder by path or by URI, with the operations of ``pathlib.Path`` that are needed.

Where there are no folders (object stores), creating one does nothing, and one exists if something
is in it. ``pyarrow`` is imported only for URIs, and for operations that its readers and writers of
Parquet need.
"""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from kproto.outputs import write_output
from wiredump.storage.connections import Uri, connect, is_object_store, local, parsed
from wiredump.storage.errors import NO_BUCKET, StorageError, not_found, translated
from wiredump.storage.patterns import divided, regular
from wiredump.storage.ranged import LocalFile, RangedFile, RemoteFile

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.fs import FileInfo, FileSystem

__all__ = ["Info", "Location", "absolute", "is_uri", "shown", "sync_all"]

_BUFFER: Final = 64 * 1024
_REMOTE_BUFFER: Final = 1 << 20
_SYNCS: Final = 8
"""Files that are synced at a time."""

_buckets: Final[set[tuple[Uri | None, str]]] = set()
"""Those that exist."""


class Info(NamedTuple):
    """``modified_ns`` is 0 where the file system does not have it."""

    size: int
    modified_ns: int
    is_file: bool


def is_uri(where: str) -> bool:
    """Whether a name is a URI of a remote file system. ``file://`` is local."""
    uri = parsed(where)
    return uri is not None and uri.scheme != "file"


def absolute(where: str) -> str:
    """Return a name that means the same in another working directory."""
    return where if is_uri(where) else os.path.abspath(_local_path(where))


def shown(where: str) -> str:
    """Return a name for people and for tables: a URI without credentials and query."""
    uri = parsed(where)
    return where if uri is None else uri.shown


def _local_path(where: str) -> str:
    uri = parsed(where)
    return where if uri is None else f"/{uri.path}"


class Location:
    """A file or folder. Raises StorageError for a file system that cannot be used."""

    def __init__(self, where: str) -> None:
        uri = parsed(where)
        if uri is not None and uri.scheme == "file":
            where, uri = f"/{uri.path}", None
        self._uri: Uri | None = uri
        self._path = where if uri is None else uri.path

    # -- names -------------------------------------------------------------------------------

    def __str__(self) -> str:
        """The name, from which an equal location can be made."""
        uri = self._uri
        if uri is None:
            return self._path
        return f"{uri.scheme}://{uri.authority}/{self._path}{uri.query}"

    def __repr__(self) -> str:
        return f"Location({self.shown!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Location) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __truediv__(self, name: str) -> Location:
        path = f"{self._path.rstrip('/')}/{name}" if self._path else name
        return self._at(path)

    def _at(self, path: str) -> Location:
        if self._uri is None:
            return Location(path)
        return Location(self._uri._replace(path=path).text)

    @property
    def shown(self) -> str:
        """The name for people, without credentials and query."""
        return self._path if self._uri is None else self._uri._replace(path=self._path).shown

    @property
    def name(self) -> str:
        return self._path.rstrip("/").rpartition("/")[2]

    @property
    def parent(self) -> Location:
        return self._at(self._path.rstrip("/").rpartition("/")[0])

    @property
    def is_local(self) -> bool:
        """Whether it is on the local file system, which may be mounted from elsewhere."""
        return self._uri is None

    @property
    def is_object(self) -> bool:
        """Whether it is in an object store, which has no folders and cannot rename."""
        return self._uri is not None and is_object_store(self._uri.scheme)

    # -- pyarrow -----------------------------------------------------------------------------

    @property
    def filesystem(self) -> FileSystem:
        """The file system, as pyarrow's functions take it beside ``path``."""
        return local() if self._uri is None else self._connected()[0]

    @property
    def path(self) -> str:
        """The path in ``filesystem``."""
        if self._uri is None:
            return self._path
        root = self._connected()[1]
        if not self._path:
            return root
        return f"{root.rstrip('/')}/{self._path}" if root else self._path

    def _connected(self) -> tuple[FileSystem, str]:
        assert self._uri is not None
        return connect(self._uri.scheme, self._uri.authority, self._uri.query)

    def _pyarrow_info(self) -> FileInfo:
        with translated(self.shown):
            return self.filesystem.get_file_info(self.path)

    def _require_bucket(self) -> None:
        """Raise StorageError if the bucket of the URI does not exist."""
        if not self.is_object:
            return
        files, root = self._connected()
        bucket = self._store, root or self._path.partition("/")[0]
        if bucket in _buckets:
            return
        with translated(self.shown):
            about = files.get_file_info(bucket[1])
        if about.type.name == "NotFound":
            raise StorageError(f"{self.shown}: {NO_BUCKET}")
        _buckets.add(bucket)

    # -- listing -----------------------------------------------------------------------------

    def info(self) -> Info:
        """Return its size and time. Raises FileNotFoundError."""
        if self._uri is None:
            about = os.stat(self._path)
            return Info(about.st_size, about.st_mtime_ns, os.path.isfile(self._path))
        from pyarrow.fs import FileType

        found = self._pyarrow_info()
        if found.type == FileType.NotFound:
            self._require_bucket()
            raise not_found(self.shown)
        return _info(found)

    def exists(self) -> bool:
        try:
            self.info()
        except FileNotFoundError:
            return False
        return True

    def is_file(self) -> bool:
        try:
            return self.info().is_file
        except FileNotFoundError:
            return False

    def is_dir(self) -> bool:
        try:
            return not self.info().is_file
        except FileNotFoundError:
            return False

    def iterdir(self) -> Iterator[Location]:
        """Yield what is in a folder, in the order of names; nothing if it does not exist."""
        for path, _ in self.listed(recursive=False):
            yield self / path

    def files(self) -> Iterator[Location]:
        """Yield the files in a folder and in those within, in the order of names."""
        for path, about in self.listed(recursive=True):
            if about.is_file:
                yield self / path

    def listed(self, *, recursive: bool) -> list[tuple[str, Info]]:
        """Return what is in a folder, or nothing if it does not exist: paths relative to it, in
        the order of names."""
        from pyarrow.fs import FileSelector

        base = self.path
        selector = FileSelector(base, allow_not_found=True, recursive=recursive)
        with translated(self.shown):
            try:
                found = self.filesystem.get_file_info(selector)
            except NotADirectoryError:
                # pyarrow asks fsspec whether there is a folder, and then whether there is anything:
                # another process may have made the folder in between.
                found = self.filesystem.get_file_info(selector)
        if not found:
            self._require_bucket()
        start = len(base.strip("/"))
        names = [(each.path.strip("/")[start:].lstrip("/"), _info(each)) for each in found]
        return sorted((name, about) for name, about in names if name)

    def glob(self, pattern: str) -> Iterator[Location]:
        """Yield the files within a folder that match a pattern, in the order of names."""
        yield from (self / name for name, _ in self.matching(pattern))

    def matching(self, pattern: str) -> Iterator[tuple[str, Info]]:
        """Yield the same by paths relative to the folder."""
        fixed, rest = divided(pattern)
        place = self / fixed if fixed else self
        matched = re.compile(regular(rest)).fullmatch
        for name, about in place.listed(recursive="/" in rest or "**" in rest):
            if about.is_file and matched(name):
                yield (f"{fixed}/{name}" if fixed else name), about

    # -- reading -----------------------------------------------------------------------------

    def open(self) -> io.BufferedReader:
        """Open a file from its beginning. Raises OSError and StorageError."""
        if self._uri is None:
            return io.BufferedReader(io.FileIO(self._path), _BUFFER)
        return io.BufferedReader(cast(Any, self._native()), _REMOTE_BUFFER)

    def open_input(self) -> NativeFile:
        """Open a file, as pyarrow's readers take it."""
        return self._native()

    def _native(self) -> Any:
        try:
            with translated(self.shown):
                return self.filesystem.open_input_file(self.path)
        except (OSError, StorageError):
            # To pyarrow, a bucket that does not exist and a folder are files that do not exist.
            if not self.info().is_file:
                raise IsADirectoryError(
                    errno.EISDIR, os.strerror(errno.EISDIR), self.shown
                ) from None
            raise

    def open_ranged(self) -> RangedFile:
        """Open a file for reads anywhere. Raises OSError and StorageError."""
        if self._uri is None:
            return LocalFile(self._path)
        about = self.info()
        file = self._native()
        return RemoteFile(file, self.shown, _version(file, about))

    def read_bytes(self) -> bytes:
        with self.open() as file:
            return file.read()

    # -- writing -----------------------------------------------------------------------------

    def mkdir(self, mode: int = 0o777, parents: bool = True, exist_ok: bool = True) -> None:
        """Create a folder and those it is in, unless they exist or folders do not have to."""
        if self._uri is None:
            os.makedirs(self._path, exist_ok=True)
        elif not self.is_object:
            with translated(self.shown):
                self.filesystem.create_dir(self.path, recursive=True)

    def create(self) -> NativeFile:
        """Create a file or replace one, as a file of pyarrow's; the folder must exist."""
        with translated(self.shown):
            return self.filesystem.open_output_stream(self.path)

    def open_writer(self) -> io.BufferedWriter:
        """Create a file or replace one, for many short writes."""
        raw = io.FileIO(self._path, "w") if self._uri is None else cast(Any, self.create())
        return io.BufferedWriter(raw, _REMOTE_BUFFER)

    def write_bytes(self, data: bytes) -> None:
        """Write a file as a whole."""
        with translated(self.shown), self.create() as file:
            file.write(data)

    def replace_bytes(self, data: bytes) -> None:
        """Write a file as a whole, so that readers find the old content or the new, even if the
        process or the machine dies."""
        if self.is_object:  # an object is visible once it is complete
            self.write_bytes(data)
            return
        if self._uri is None:
            write_output(self._path, data)
            return
        new = self.parent / f"{self.name}.new"
        new.write_bytes(data)
        new.publish(self)

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove a file."""
        if missing_ok and not self.exists():
            return
        if self._uri is None:
            os.unlink(self._path)
            return
        with translated(self.shown):
            self.filesystem.delete_file(self.path)

    def remove(self) -> None:
        """Remove a file, or a folder with everything in it, if it exists."""
        try:
            is_file = self.info().is_file
        except FileNotFoundError:
            return
        if is_file:
            self.unlink()
            return
        with translated(self.shown):
            self.filesystem.delete_dir(self.path)

    def rmdir(self) -> None:
        """Remove an empty folder; does nothing if it has something."""
        if self._uri is None:
            with suppress(OSError):
                os.rmdir(self._path)
            return
        if self.is_dir() and not self.listed(recursive=False):
            with translated(self.shown):
                self.filesystem.delete_dir(self.path)

    def publish(self, target: Location) -> None:
        """Put a complete file where readers find it, in place of one that is there. Object stores
        copy it, without a byte passing through here; the source stays until its folder is removed.
        Other file systems rename it. Between file systems it is copied."""
        with translated(target.shown):
            if self._store != target._store:
                self._copy(target)
            elif self._uri is None:
                try:
                    os.replace(self._path, target._path)
                except OSError as error:
                    if error.errno != errno.EXDEV:
                        raise
                    self._copy(target)
            elif self.is_object:
                self.filesystem.copy_file(self.path, target.path)
            else:
                self._rename(target)

    @property
    def _store(self) -> Uri | None:
        """What two locations have in common that are on the same file system."""
        return None if self._uri is None else self._uri._replace(path="")

    def _rename(self, target: Location) -> None:
        # pyarrow has no way to say that an existing file is to be replaced.
        handler = getattr(self.filesystem, "handler", None)
        if handler is None:
            self.filesystem.move(self.path, target.path)
        else:
            handler.fs.mv(self.path, target.path, overwrite=True)

    def _copy(self, target: Location) -> None:
        new = target if target.is_object else target.parent / f"{target.name}.new"
        with self.open() as source, new.open_writer() as copy:
            shutil.copyfileobj(source, copy, _REMOTE_BUFFER)
        if new is not target:
            new.publish(target)
        self.unlink()

    def sync(self) -> None:
        """Wait until a local file and its name are on the disk. Other file systems do so
        themselves."""
        sync_all([self])
        sync_all([self.parent])


def sync_all(places: Iterable[Location]) -> None:
    """Wait until local files, or the names in local folders, are on the disk. At once, they take
    little more than one of them."""
    paths = dict.fromkeys(str(each) for each in places if each.is_local)
    if len(paths) < 2:
        for path in paths:
            _sync(path)
        return
    with ThreadPoolExecutor(min(len(paths), _SYNCS)) as pool:
        for _ in pool.map(_sync, paths):
            pass


def _sync(path: str) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _info(found: FileInfo) -> Info:
    return Info(found.size or 0, found.mtime_ns or 0, found.type.name == "File")


def _version(file: Any, about: Info) -> str:
    try:
        found = file.metadata() or {}
    except (NotImplementedError, AttributeError, OSError):
        found = {}
    tag = next((value for name, value in found.items() if _text(name).lower() == "etag"), None)
    return f"{about.size} {_text(tag) if tag is not None else about.modified_ns}"


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
