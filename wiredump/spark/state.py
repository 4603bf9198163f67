"""What a micro-batch leaves to the next: the connections that may go on, in files.

A task has an index, anew with each batch, and files of data, which several batches share. Either is
one line of JSON that says what it is (``Head``), and then, in an index, entries sorted by key::

    >H?qQQI bytes of the key; whether a connection is open; the time of the last packet or, if none
            is open, when the last connection was closed; the batch whose data file has the rest;
            where in it, and how many bytes
    key     the two ends, as in ``columns``

and in a data file, one behind the other, what ``dump`` made of ``connections.Carried``: reassembly,
frames, pairing, counts. So a batch writes the connections that packets came for, and passes on
where the others are. A data file of which less than half is of use is emptied into the newest, and
so is the oldest of too many.

Entries are read and written one after the other, so that a task holds one. ``dump`` pickles, and
makes nothing but this package's own classes, and a few containers, of what a file says.

``STATE_VERSION`` is that of the entries and of the classes in them, whatever the release: it rises
when either changes, and then ``_READS`` has what the version before needs to be read.
Index files are written anew by each batch, so that they always have the current version.
"""

from __future__ import annotations

import io
import pickle
from array import array
from collections.abc import Callable, Iterator
from struct import Struct
from types import MethodType
from typing import IO, Any, BinaryIO, Final, NamedTuple

import msgspec

from kproto.dialects import Dialect, dialect
from kproto.errors import KprotoError
from wiredump.storage import Location, RangedFile

__all__ = [
    "Entry",
    "State",
    "StateError",
    "StateReader",
    "StateWriter",
    "dump",
    "load",
    "read_one",
    "write_one",
]

STATE_VERSION: Final = 6
_entry: Final = Struct(">H?qQQI")
_entry_4: Final = Struct(">HqQQI")
_LONGEST_HEAD: Final = 1000
_MOST_FILES: Final = 8

_CONTAINERS: Final = frozenset(
    {
        ("builtins", "bytearray"), ("builtins", "set"), ("builtins", "frozenset"),
        ("collections", "deque"), ("collections", "OrderedDict"), ("collections", "Counter"),
        ("copyreg", "_reconstructor"), ("builtins", "object"), ("kproto.journal", "ClientSoftware"),
        ("msgspec._utils", "rebuild"), ("msgspec._core", "rebuild"),
    }
)  # fmt: skip


_OWN: Final = ("_method", "_view", "_integers")


class StateError(KprotoError):
    """A state file cannot be read. The message names it and the reason."""


class Head(msgspec.Struct):
    """The first line of a state file."""

    what: str = "wiredump state"
    version: int = STATE_VERSION


_HEAD: Final = msgspec.json.encode(Head()) + b"\n"


class Entry(NamedTuple):
    """Two ends. ``at_ns`` is the time of the last packet or, unless a connection ``is_open``, when
    the last one was closed. ``batch``, ``at`` and ``size`` say where the rest is."""

    key: bytes
    is_open: bool
    at_ns: int
    batch: int
    at: int
    size: int


def _read_4(file: IO[bytes], newest_ns: int) -> tuple[int, bool, int, int, int, int]:
    """Version 4 lacks the time of an open connection's last packet: it counts from now on."""
    size, closed_ns, *where = _entry_4.unpack(_exactly(file, _entry_4.size))
    is_open = closed_ns == -1
    return size, is_open, newest_ns if is_open else closed_ns, *where


def _read_5(file: IO[bytes], newest_ns: int) -> tuple[int, bool, int, int, int, int]:
    return _entry.unpack(_exactly(file, _entry.size))


_READS: Final = {4: _read_4, 5: _read_5, STATE_VERSION: _read_5}
"""How the numbers of an entry are read, by version."""


def _exactly(file: IO[bytes], size: int) -> bytes:
    read = file.read(size)
    if len(read) < size:
        raise StateError("a state file ends in the middle of an entry")
    return read


class State(msgspec.Struct, frozen=True):
    """The state of a task: the index and its number of entries and, by batch, the size of the data
    file and how many of its bytes are in use. ``data`` is the file that this batch wrote."""

    index: str
    entries: int
    data: str
    files: dict[int, tuple[int, int]]


class StateWriter:
    """Writes the index and the data of a batch; entries come sorted by key."""

    def __init__(self, index: Location, data: Location, batch: int) -> None:
        self._paths = index, data
        self._batch = batch
        self._index = index.open_writer()
        try:
            self._data = data.open_writer()
        except BaseException:
            self._index.close()
            raise
        self._index.write(_HEAD)
        self._data.write(_HEAD)
        self._at = len(_HEAD)
        self._last: bytes | None = None
        self._used: dict[int, int] = {}
        self._entries = 0

    def add(self, key: bytes, is_open: bool, at_ns: int, rest: bytes) -> None:
        """Add the current state of two ends."""
        self._data.write(rest)
        self.keep(Entry(key, is_open, at_ns, self._batch, self._at, len(rest)))
        self._at += len(rest)

    def keep(self, entry: Entry) -> None:
        """Keep the state of two ends where it is."""
        if self._last is not None and entry.key <= self._last:
            raise StateError("entries are not sorted by key, which is a bug")
        self._last = entry.key
        key, *rest = entry
        self._index.write(_entry.pack(len(key), *rest) + key)
        self._used[entry.batch] = self._used.get(entry.batch, 0) + entry.size
        self._entries += 1

    def close(self, before: State | None) -> State:
        """Complete the files. ``before`` has the sizes of older ones."""
        self.close_files()
        sizes = {batch: size for batch, (size, _) in before.files.items()} if before else {}
        sizes[self._batch] = self._at
        files = {batch: (sizes[batch], used) for batch, used in self._used.items()}
        return State(str(self._paths[0]), self._entries, str(self._paths[1]), files)

    def close_files(self) -> None:
        """Close both files, whatever they hold; more than once does no harm."""
        self._index.close()
        self._data.close()


class StateReader:
    """Yields the entries of a state; ``data_of`` returns the data file of a batch, ``newest_ns`` is
    the time up to which packets were read. A state of None has no entries."""

    def __init__(
        self, state: State | None, data_of: Callable[[int], str], newest_ns: int = 0
    ) -> None:
        self._state = state
        self._newest_ns = newest_ns
        self._data_of = data_of
        self._files: dict[int, RangedFile] = {}

    def __enter__(self) -> StateReader:
        return self

    def __exit__(self, *about: object) -> None:
        while self._files:
            self._files.popitem()[1].close()

    def __iter__(self) -> Iterator[Entry]:
        if self._state is None:
            return
        path, found = self._state.index, 0
        file, version = _opened(path)
        with file:
            while file.peek(1):
                try:
                    numbers = _READS[version](file, self._newest_ns)
                    key = _exactly(file, numbers[0])
                    yield Entry(key, *numbers[1:])
                except StateError as error:
                    raise StateError(f"{error}: {path}") from None
                found += 1
        if found != self._state.entries:
            raise StateError(f"{path} has {found} entries instead of {self._state.entries}")

    def rest(self, entry: Entry) -> bytes:
        """Return what ``dump`` made."""
        file = self._files.get(entry.batch)
        if file is None:
            file = Location(self._data_of(entry.batch)).open_ranged()
            self._files[entry.batch] = file
        rest = file.read_at(entry.at, entry.size)
        if len(rest) < entry.size:
            raise StateError(f"{file.name} ends in the middle of an entry")
        return rest

    @property
    def emptied(self) -> frozenset[int]:
        """The batches whose data files will not be needed any more."""
        files = self._state.files if self._state is not None else {}
        spent = {batch for batch, (size, used) in files.items() if 2 * used < size}
        kept = sorted(set(files) - spent)
        return frozenset(spent | set(kept[: max(0, len(kept) - _MOST_FILES)]))


def write_one(path: str, rest: bytes) -> None:
    """Write a file with the state of one entry."""
    with Location(path).open_writer() as file:
        file.write(_HEAD)
        file.write(rest)


def read_one(path: str) -> bytes:
    """Read such a file."""
    file, _ = _opened(path)
    with file:
        return file.read()


def _opened(path: str) -> tuple[io.BufferedReader, int]:
    """Open a state file behind its head; returns its version, too."""
    try:
        file = Location(path).open()
    except OSError as error:
        raise StateError(f"cannot read {path}: {error}") from error
    try:
        head = msgspec.json.decode(file.readline(_LONGEST_HEAD), type=Head)
    except msgspec.MsgspecError as error:
        file.close()
        raise StateError(f"{path} is not a state file of wiredump: {error}") from None
    if head.what != Head().what or head.version not in _READS:
        file.close()
        raise StateError(
            f"{path} has state version {head.version}, but this release reads "
            f"{min(_READS)} to {max(_READS)}: go on with the release that wrote it, or start a "
            "new stream behind its last file (--start-after)"
        )
    return file, head.version


# -- entries ---------------------------------------------------------------------------------------


class _Pickler(pickle.Pickler):
    """Dialects are replaced by their names, since they are large and always the same. A bound
    method is restored as the same object's method."""

    def __init__(self, file: BinaryIO, codec: Dialect) -> None:
        super().__init__(file, protocol=5)
        self._codec = codec

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Dialect):
            return _dialect, ("" if obj is self._codec else obj.name,)
        if isinstance(obj, MethodType):
            return _method, (obj.__self__, obj.__name__)
        if isinstance(obj, memoryview):
            return _view, (bytes(obj),)
        if isinstance(obj, array):
            return _integers, (obj.tobytes(),)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: BinaryIO, codec: Dialect) -> None:
        super().__init__(file)
        self._codec = codec

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == (__name__, "_dialect"):
            return lambda named: dialect(named) if named else self._codec
        if (module, name) in _CONTAINERS or (module == __name__ and name in _OWN):
            return super().find_class(module, name)
        if module.partition(".")[0] == "wiredump" and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise StateError(f"the state file refers to {module}.{name}, which is not allowed")


def _dialect(name: str) -> Dialect:
    """Stands for a dialect; ``_Unpickler`` knows which."""
    raise NotImplementedError


def _method(owner: Any, name: str) -> Any:
    """Return a method of an object that may be incomplete."""
    return MethodType(getattr(type(owner), name), owner)


def _view(raw: bytes) -> memoryview:
    """Return a view of the bytes."""
    return memoryview(raw)


def _integers(raw: bytes) -> array[int]:
    """An array of 64-bit integers (``readers.round_trips``)."""
    return array("Q", raw)


def dump(carried: Any, codec: Dialect) -> bytes:
    """Pickle the state of an entry."""
    out = io.BytesIO()
    _Pickler(out, codec).dump(carried)
    return out.getvalue()


def load(rest: bytes, codec: Dialect) -> Any:
    """Unpickle the state of an entry. Raises StateError for anything that is not a state of
    wiredump."""
    try:
        return _Unpickler(io.BytesIO(rest), codec).load()
    except (pickle.UnpicklingError, EOFError, AttributeError, TypeError, ValueError) as error:
        raise StateError(f"cannot read the state file: {error}") from error
