"""The base of every message class: value semantics from msgspec, codecs fetched on first use.

This file knows no wire rule. Encoders and decoders are functions that ``codec`` makes from a plan
the first time a class meets a version; they are kept on the class by version.

``unknown_tags`` costs nothing until used: structs share one immutable empty dict, and reading the
attribute of a struct that has none gives that struct a dict of its own. Codecs look at the slot
itself (``_unknown_tags``) so that decoding and encoding never create it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

import msgspec

if TYPE_CHECKING:
    from kproto.schema.model import MessageSchema
    from kproto.schema.versions import Versions

__all__ = ["NO_TAGS", "Buffer", "Message", "MessageStruct"]

Buffer = bytes | bytearray | memoryview
"""What decoders take: any contiguous buffer. Bytes are decoded in place, others copied once."""

M = TypeVar("M", bound="Message")


class _NoTags(dict[int, bytes]):
    """The unknown tags of a struct that has none. Shared, so it must never change."""

    __slots__ = ()

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise TypeError(
            "this empty dict is shared; read .unknown_tags of the struct to get its own"
        )

    __setitem__ = __ior__ = setdefault = update = _refuse

    def __reduce__(self) -> str:
        return "NO_TAGS"

    def __copy__(self) -> _NoTags:
        return self

    def __deepcopy__(self, _memo: object) -> _NoTags:
        return self


NO_TAGS = _NoTags()


class MessageStruct(msgspec.Struct, kw_only=True, gc=False):
    """A struct of a message.

    ``unknown_tags`` maps the tag of each tagged field the schema does not know to its bytes, in
    ascending order of tag; an encoder writes them back between the known ones. Instances take no
    part in reference cycles unless a caller makes one, so they are not tracked by the collector.
    """

    unknown_tags: dict[int, bytes] = NO_TAGS

    if TYPE_CHECKING:
        # The slot itself; a property here, or type checkers take it for one more field.
        @property
        def _unknown_tags(self) -> dict[int, bytes]: ...
        @_unknown_tags.setter
        def _unknown_tags(self, tags: Mapping[int, bytes]) -> None: ...

    def __repr__(self) -> str:
        names = [name for name in self.__struct_fields__ if name != "unknown_tags"]
        if self._unknown_tags:
            names.append("unknown_tags")
        inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__name__}({inner})"

    def __rich_repr__(self) -> Any:
        for name in self.__struct_fields__:
            if name != "unknown_tags" or self._unknown_tags:
                yield name, getattr(self, name)


def _own_tags(self: MessageStruct) -> dict[int, bytes]:
    tags = self._unknown_tags
    if tags is NO_TAGS:
        tags = self._unknown_tags = {}
    return tags


def _set_tags(self: MessageStruct, tags: Mapping[int, bytes]) -> None:
    self._unknown_tags = tags


# The slot stays reachable under the second name; the first becomes the lazy view of it.
type.__setattr__(MessageStruct, "_unknown_tags", MessageStruct.__dict__["unknown_tags"])
type.__setattr__(MessageStruct, "unknown_tags", property(_own_tags, _set_tags))


class Message(MessageStruct, kw_only=True, gc=False):
    """A whole message: a request or response body, a header, a record of the metadata log, ...

    The version is always an argument. An absent field takes its default; a non-default value of a
    field that the version lacks raises UnsupportedVersionError unless the schema says ignorable.
    """

    MESSAGE_NAME: ClassVar[str]
    MESSAGE_TYPE: ClassVar[str]
    API_KEY: ClassVar[int | None] = None
    VALID_VERSIONS: ClassVar[Versions]
    FLEXIBLE_VERSIONS: ClassVar[Versions]
    STRUCTS: ClassVar[Mapping[str, type[MessageStruct]]] = {}
    """Schema name of each nested struct -> its class."""

    _SCHEMA: ClassVar[MessageSchema | None] = None
    _ENCODERS: ClassVar[dict[int, Callable[[Any], bytes]]]
    _DECODERS: ClassVar[dict[int, Callable[[Any, int], tuple[Any, int]]]]
    _READERS: ClassVar[dict[int, Callable[[Any], Any]]]
    _VALIDATORS: ClassVar[dict[int, Callable[[Any, int], int]]]

    def __init_subclass__(cls, **config: Any) -> None:
        super().__init_subclass__(**config)
        type.__setattr__(cls, "_ENCODERS", {})
        type.__setattr__(cls, "_DECODERS", {})
        type.__setattr__(cls, "_READERS", {})
        type.__setattr__(cls, "_VALIDATORS", {})

    def encode(self, version: int) -> bytes:
        """The body's bytes at ``version``: no size, no header.

        Raises UnsupportedVersionError for a version the message does not have or a field value it
        cannot carry, EncodeError (with ``path``) for a value the schema cannot.
        """
        try:
            encoder = self._ENCODERS[version]
        except KeyError:
            encoder = _codec().encoder(type(self), version)
        return encoder(self)

    @classmethod
    def decode(cls: type[M], data: Buffer, version: int, *, allow_trailing: bool = False) -> M:
        """Read one body that fills ``data``. Raises DecodeError with offset and path.

        ``allow_trailing`` accepts bytes after the body; ``decode_from`` tells where they begin.
        """
        if type(data) is not bytes:
            data = memoryview(data).tobytes()
        if allow_trailing:
            return cls.decode_from(data, version)[0]
        try:
            reader = cls._READERS[version]
        except KeyError:
            reader = _codec().reader(cls, version)
        return reader(data)  # type: ignore[no-any-return]  # made by generated code

    @classmethod
    def decode_from(cls: type[M], data: Buffer, version: int, offset: int = 0) -> tuple[M, int]:
        """Read one body that begins at ``offset``; return it and the offset after its last byte."""
        if type(data) is not bytes:
            data = memoryview(data).tobytes()
        try:
            decoder = cls._DECODERS[version]
        except KeyError:
            decoder = _codec().decoder(cls, version)
        return decoder(data, offset)

    @classmethod
    def validate(cls, data: Buffer, version: int, *, allow_trailing: bool = False) -> None:
        """As ``decode``, and raises what it raises, but makes no message. Several times as fast
        where the native engine runs."""
        if type(data) is not bytes:
            data = memoryview(data).tobytes()
        try:
            validator = cls._VALIDATORS[version]
        except KeyError:
            validator = cls._VALIDATORS[version] = _codec().validator(cls, version)
        end = validator(data, 0)
        if end != len(data) and not allow_trailing:
            raise _codec().trailing_bytes(data, end)

    def to_json(self, version: int) -> str:
        """The text Kafka's JsonConverter writes for this version (uuid as URL-safe base64, bytes
        as padded base64, tagged fields left out at their default). Records are base64, where
        Kafka's writes an empty string, or only their size."""
        return str(_json_form().dumps(self, version))

    def to_json_value(self, version: int) -> dict[str, Any]:
        """As ``to_json``, as the dict before it becomes text."""
        return dict(_json_form().to_value(self, version))

    @classmethod
    def from_json(cls: type[M], data: str | bytes | Mapping[str, Any], version: int) -> M:
        """Read what ``to_json`` writes, as text or as parsed JSON. A missing untagged field is a
        JsonError (a DecodeError) whose ``path`` names it."""
        return _json_form().from_value(cls, data, version)  # type: ignore[no-any-return]  # lazy


def _codec() -> Any:
    # Imported on first use: a program that only builds messages pays for no generator.
    from kproto.codegen import codec

    return codec


def _json_form() -> Any:
    from kproto.codegen import json_form

    return json_form
