"""What a micro-batch leaves to the next: the connections that may go on, in files.

A state file is one line of JSON that says what it is (``Head``), and then entries, sorted by key::

    >HqI    bytes of the key, when the last connection was closed (-1: one is open), bytes of rest
    key     the two ends, as in ``columns``
    rest    a pickle of ``connections.Carried``: reassembly, frames, pairing, counts

Entries are read and written one after the other, so that a task holds one; an entry that no packet
came for is copied as it is. A pickle is as good as the code that wrote it: the head names the
release, and no other reads it. Nothing but this package's own classes, and a few containers, is
made of what a file says.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from struct import Struct
from types import MethodType, TracebackType
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

import kproto
from kproto.dialects import Dialect, dialect
from kproto.errors import KprotoError

__all__ = ["Entry", "StateError", "StateReader", "StateWriter", "dump", "load"]

STATE_VERSION: Final = 1
_OPEN: Final = -1
_entry: Final = Struct(">HqI")
_BUFFER: Final = 1 << 20

_CONTAINERS: Final = frozenset(
    {
        ("builtins", "bytearray"), ("builtins", "set"), ("builtins", "frozenset"),
        ("collections", "deque"), ("collections", "OrderedDict"), ("copyreg", "_reconstructor"),
        ("builtins", "object"), ("kproto.journal", "ClientSoftware"),
        ("msgspec._utils", "rebuild"), ("msgspec._core", "rebuild"),
    }
)  # fmt: skip


class StateError(KprotoError):
    """A state file that cannot be gone on from: says which, and why."""


class Head(msgspec.Struct):
    """The first line of a state file."""

    what: str = "wiredump state"
    version: int = STATE_VERSION
    software: str = f"kproto {kproto.__version__}"


class Entry(NamedTuple):
    """What is known of two ends. ``closed_ns`` None: a connection is open."""

    key: bytes
    closed_ns: int | None
    rest: bytes


class StateWriter:
    """Writes a file; entries come sorted by key."""

    def __init__(self, path: str) -> None:
        self._file: BinaryIO = open(path, "wb", buffering=_BUFFER)  # noqa: SIM115 (closed by close)
        self._file.write(msgspec.json.encode(Head()) + b"\n")
        self._last: bytes | None = None
        self.count = 0

    def add(self, entry: Entry) -> None:
        """One more."""
        if self._last is not None and entry.key <= self._last:
            raise StateError("the ends do not come in order: a mistake of ours")
        self._last = entry.key
        closed_ns = _OPEN if entry.closed_ns is None else entry.closed_ns
        self._file.write(_entry.pack(len(entry.key), closed_ns, len(entry.rest)))
        self._file.write(entry.key)
        self._file.write(entry.rest)
        self.count += 1

    def close(self) -> None:
        """The file is whole."""
        self._file.close()


class StateReader:
    """Iterate over the entries of a file, of which there are ``count``; no file has none."""

    def __init__(self, path: str | None, count: int = 0) -> None:
        self._path, self._count = path, count
        self._file: BinaryIO | None = None

    def __enter__(self) -> StateReader:
        if self._path is not None:
            try:
                self._file = open(self._path, "rb", buffering=_BUFFER)
            except OSError as error:
                raise StateError(f"{self._path} cannot be read: {error}") from error
            self._check()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def _check(self) -> None:
        assert self._file is not None
        line = self._file.readline(1000)
        try:
            head = msgspec.json.decode(line, type=Head)
        except msgspec.MsgspecError as error:
            raise StateError(f"{self._path} is no state of wiredump's: {error}") from None
        if head != Head():
            raise StateError(
                f"{self._path} was written by {head.software}, state {head.version}; this is "
                f"{Head().software}, state {STATE_VERSION}: end the stream with the release that "
                "began it (--available-now), or begin anew"
            )

    def __iter__(self) -> Iterator[Entry]:
        found = 0
        while self._file is not None:
            head = self._file.read(_entry.size)
            if not head:
                break
            if len(head) < _entry.size:
                raise StateError(f"{self._path} ends in the midst of an entry")
            key_size, closed_ns, size = _entry.unpack(head)
            key, rest = self._file.read(key_size), self._file.read(size)
            if len(key) + len(rest) < key_size + size:
                raise StateError(f"{self._path} ends in the midst of an entry")
            yield Entry(key, None if closed_ns == _OPEN else closed_ns, rest)
            found += 1
        if found != self._count:
            raise StateError(f"{self._path} has {found} entries and should have {self._count}")


# -- entries ---------------------------------------------------------------------------------------


class _Pickler(pickle.Pickler):
    """Dialects are not written, but named: they are large, and the same for all. A finder that
    belongs to an object is that object's method again."""

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
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: BinaryIO, codec: Dialect) -> None:
        super().__init__(file)
        self._codec = codec

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == (__name__, "_dialect"):
            return lambda named: dialect(named) if named else self._codec
        if (module, name) in _CONTAINERS or (module == __name__ and name in ("_method", "_view")):
            return super().find_class(module, name)
        if module.partition(".")[0] == "wiredump" and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise StateError(f"a state that names {module}.{name} is none of ours")


def _dialect(name: str) -> Dialect:
    """Stands in pickles for a dialect; ``_Unpickler`` knows which."""
    raise NotImplementedError


def _method(whose: Any, name: str) -> Any:
    """A method of an object that may not be whole yet."""
    return MethodType(getattr(type(whose), name), whose)


def _view(raw: bytes) -> memoryview:
    """Of what a view was of."""
    return memoryview(raw)


def dump(carried: Any, codec: Dialect) -> bytes:
    """An entry's rest."""
    out = io.BytesIO()
    _Pickler(out, codec).dump(carried)
    return out.getvalue()


def load(rest: bytes, codec: Dialect) -> Any:
    """The same again. Raises StateError for what is not ours."""
    try:
        return _Unpickler(io.BytesIO(rest), codec).load()
    except (pickle.UnpicklingError, EOFError, AttributeError, TypeError, ValueError) as error:
        raise StateError(f"a state that cannot be read: {error}") from error
