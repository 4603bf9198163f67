"""Every error of ours. What the *peer* reports is in ``kproto.client`` (``BrokerError``).

::

    KprotoError
    ├── SchemaError                 a schema file is wrong: says file, line, field and remedy
    ├── DecodeError                 bytes are not what the schema says: ``offset`` and ``path``
    │   ├── JsonError               JSON is not what the schema says: ``path``
    │   └── BodyError               one of many bodies: ``index``, and the place in it
    ├── EncodeError                 a value cannot be written: ``path``
    ├── UnsupportedFrameError       both a DecodeError and an UnsupportedVersionError
    ├── UnsupportedVersionError     a version, api key or field the codec or the peer lacks
    ├── ProtocolError
    │   ├── LocalProtocolError      we broke the rules of a connection
    │   └── RemoteProtocolError     the peer did (bad size, unknown correlation id, ...)
    ├── UnknownNameError            no message, field, dialect or profile of that name
    ├── SelectionError              chosen fields that no table of columns can hold
    ├── LimitError                  columns larger than they may be: ``index`` of the body
    └── MissingExtraError           an optional library is not installed: names the extra
"""

from __future__ import annotations

__all__ = [
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
    """The root of every error this distribution raises on purpose."""


class SchemaError(KprotoError):
    """A message schema that cannot be used.

    ``source`` is the file (or a name for text that has none), ``line`` counts from 1 (None when
    the error is about the whole file), ``field`` is a dotted path such as ``Topics.Partitions``.
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
    """Bytes that do not follow the schema.

    ``offset`` is the first byte of the failing field, its length prefix included, counted from
    the start of the buffer that was passed. ``path`` reads ``topics[3].partitions[0].replicas``.
    """

    def __init__(self, problem: str, *, offset: int, path: str = "") -> None:
        self.problem = problem
        self.offset = offset
        self.path = path
        field = f"{path}: " if path else ""
        super().__init__(f"{field}{problem} (at byte {offset})")


class JsonError(DecodeError):
    """JSON that does not follow the schema: ``path`` names the field as the JSON does.

    ``offset`` is where the text stops being JSON, else 0: a parsed value has no bytes.
    """

    def __init__(self, problem: str, *, offset: int = 0, path: str = "") -> None:
        super().__init__(problem, offset=offset, path=path)
        self.args = (f"{path}: {problem}" if path else problem,)


class BodyError(DecodeError):
    """One of many bodies does not follow the schema: what decoding it alone raises, with ``offset``
    and ``path`` in it, and its ``index`` among them."""

    def __init__(self, error: DecodeError, *, index: int) -> None:
        super().__init__(error.problem, offset=error.offset, path=error.path)
        self.index = index
        self.args = (f"body {index}: {error}",)


class EncodeError(KprotoError, ValueError):
    """A value that its schema cannot carry. ``path`` names the field as in ``DecodeError``."""

    def __init__(self, problem: str, *, path: str = "") -> None:
        self.problem = problem
        self.path = path
        super().__init__(f"{path}: {problem}" if path else problem)


class UnsupportedVersionError(KprotoError):
    """A version outside what the codec, or the peer that was negotiated with, can speak."""


class UnsupportedFrameError(DecodeError, UnsupportedVersionError):
    """A frame whose api key or version the dialect does not have; ``offset`` points at it."""


class ProtocolError(KprotoError):
    """A rule of the connection was broken; see the two subclasses for by whom."""


class LocalProtocolError(ProtocolError):
    """Our side asked for something the connection's state does not allow."""


class RemoteProtocolError(ProtocolError):
    """The peer sent something no correct peer sends; the connection cannot go on."""


class UnknownNameError(KprotoError, LookupError):
    """No message, struct, field, dialect or profile of that name; the text lists near matches."""


class SelectionError(KprotoError, ValueError):
    """Fields that cannot be columns of one table: the text says which, and what can."""


class LimitError(KprotoError, OverflowError):
    """The rows of the body at ``index`` would make columns larger than they may be."""

    def __init__(self, problem: str, *, index: int) -> None:
        self.index = index
        super().__init__(f"body {index}: {problem}")


class MissingExtraError(KprotoError, ImportError):
    """What was asked for needs a library of an ``extra`` that is not installed."""

    def __init__(self, problem: str, *, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{problem}: pip install 'kproto[{extra}]'")
