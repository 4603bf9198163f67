"""All errors of this distribution. Errors that the *peer* reports are in ``kproto.client``.

::

    KprotoError
    ├── SchemaError                 invalid schema file: file, line, field and remedy
    ├── DecodeError                 bytes do not match the schema: ``offset`` and ``path``
    │   ├── JsonError               JSON does not match the schema: ``path``
    │   └── BodyError               one of many bodies: its ``index``, and offset and path in it
    ├── EncodeError                 a value that cannot be written: ``path``
    ├── UnsupportedFrameError       both a DecodeError and an UnsupportedVersionError
    ├── UnsupportedVersionError     a version, api key or field that the codec or the peer lacks
    ├── ProtocolError
    │   ├── LocalProtocolError      our side broke the rules of a connection
    │   └── RemoteProtocolError     the peer did (bad size, unknown correlation id, ...)
    ├── UnknownNameError            no message, field, dialect or profile with that name
    ├── SelectionError              selected fields that no table of columns can hold
    ├── LimitError                  columns above their size limit: ``index`` of the body
    ├── MissingExtraError           an optional library is not installed: names the extra
    └── AbsentError                 a program that is not on this machine: how to get it
"""

from __future__ import annotations

__all__ = [
    "AbsentError",
    "BodyError",
    "DecodeError",
    "EncodeError",
    "JsonError",
    "KprotoError",
    "LimitError",
    "LocalProtocolError",
    "MissingExtraError",
    "ProtocolError",
    "RemoteProtocolError",
    "SchemaError",
    "SelectionError",
    "UnknownNameError",
    "UnsupportedFrameError",
    "UnsupportedVersionError",
]


class KprotoError(Exception):
    """The base class of all errors that this distribution raises deliberately."""


class SchemaError(KprotoError):
    """A message schema that cannot be used.

    ``source`` is the file (or a name for text without one), ``line`` counts from 1 (None if the
    error concerns the whole file), and ``field`` is a dotted path such as ``Topics.Partitions``.
    """

    def __init__(
        self,
        problem: str,
        *,
        source: str = "",
        line: int | None = None,
        field: str = "",
        remedy: str = "",
    ) -> None:
        self.problem = problem
        self.source = source
        self.line = line
        self.field = field
        self.remedy = remedy
        where = source if line is None else f"{source}:{line}"
        parts = [part for part in (where, field, problem) if part]
        super().__init__(": ".join(parts) + (f" ({remedy})" if remedy else ""))


class DecodeError(KprotoError, ValueError):
    """Bytes that do not match the schema.

    ``offset`` is the first byte of the failing field, its length prefix included, counted from the
    start of the buffer that was passed. ``path`` reads ``topics[3].partitions[0].replicas``.
    """

    def __init__(self, problem: str, *, offset: int, path: str = "") -> None:
        self.problem = problem
        self.offset = offset
        self.path = path
        field = f"{path}: " if path else ""
        super().__init__(f"{field}{problem} (at byte {offset})")


class JsonError(DecodeError):
    """JSON that does not match the schema. ``path`` names the field as the JSON does.

    ``offset`` is where the text stops being JSON; it is 0 for a parsed value.
    """

    def __init__(self, problem: str, *, offset: int = 0, path: str = "") -> None:
        super().__init__(problem, offset=offset, path=path)
        self.args = (f"{path}: {problem}" if path else problem,)


class BodyError(DecodeError):
    """One of many bodies does not match the schema. ``offset`` and ``path`` are those of decoding
    it alone; ``index`` is its number among the bodies."""

    def __init__(self, error: DecodeError, *, index: int) -> None:
        super().__init__(error.problem, offset=error.offset, path=error.path)
        self.index = index
        self.args = (f"body {index}: {error}",)


class EncodeError(KprotoError, ValueError):
    """A value that the schema does not allow. ``path`` names the field as in ``DecodeError``."""

    def __init__(self, problem: str, *, path: str = "") -> None:
        self.problem = problem
        self.path = path
        super().__init__(f"{path}: {problem}" if path else problem)


class UnsupportedVersionError(KprotoError):
    """A version that the codec or the peer does not support."""


class UnsupportedFrameError(DecodeError, UnsupportedVersionError):
    """A frame whose api key or version the dialect lacks; ``offset`` points at it."""


class ProtocolError(KprotoError):
    """A rule of the connection was broken; the subclasses say by whom."""


class LocalProtocolError(ProtocolError):
    """Our side attempted something that the connection's state does not allow."""


class RemoteProtocolError(ProtocolError):
    """The peer sent something that no correct peer sends. The connection cannot continue."""


class UnknownNameError(KprotoError, LookupError):
    """There is no message, struct, field, dialect or profile with that name. The text lists near
    matches."""


class SelectionError(KprotoError, ValueError):
    """Fields that cannot be columns of one table. The text says which, and which can."""


class LimitError(KprotoError, OverflowError):
    """The rows of the body at ``index`` would exceed the size limit of columns."""

    def __init__(self, problem: str, *, index: int) -> None:
        self.index = index
        super().__init__(f"body {index}: {problem}")


class MissingExtraError(KprotoError, ImportError):
    """The operation needs a library of an ``extra`` that is not installed."""

    def __init__(self, problem: str, *, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{problem}: pip install 'kproto[{extra}]'")


class AbsentError(KprotoError):
    """A program that this machine lacks, or cannot build. The text says what is missing and how to
    get it."""
