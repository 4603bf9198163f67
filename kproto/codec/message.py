"""``Message``, the base class of every message: encode, decode, validate and JSON.

This module contains no wire rules. ``registry`` makes the encoder and decoder of a (class, version)
on first use; the class keeps them, by version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kproto.codec import json_form, registry
from kproto.codec.structs import RootStruct

__all__ = ["Buffer", "Message", "RequestMessage"]

Buffer = bytes | bytearray | memoryview
"""What decoders accept: any contiguous buffer. Bytes are decoded in place; other buffers are copied
once."""

M = TypeVar("M", bound="Message")
R_co = TypeVar("R_co", covariant=True)


class Message(RootStruct, kw_only=True, gc=False):
    """A whole message: a request or response body, a header, a record of the metadata log, ...

    The version is always an argument. An absent field takes its default; a non-default value of a
    field that the version lacks raises UnsupportedVersionError unless the schema marks the field
    ignorable.
    """

    def encode(self, version: int) -> bytes:
        """Return the body's bytes at ``version``, without size and header.

        Raises UnsupportedVersionError for a version that the message does not have, or for a field
        value that the version cannot carry; EncodeError, with ``path``, for a value that the
        schema does not allow.
        """
        try:
            encoder = self._ENCODERS[version]
        except KeyError:
            encoder = registry.encoder(type(self), version)
        return encoder(self)

    def encode_parts(self, version: int) -> list[Buffer]:
        """Return what ``encode`` returns, as buffers that follow each other.

        Values of bytes are buffers of their own, and are not copied. A field of bytes or records
        that has no tag may also hold a tuple of buffers, which follow each other; ``encode`` takes
        it, too, but joins them.
        """
        try:
            encoder = self._PARTS_ENCODERS[version]
        except KeyError:
            encoder = registry.parts_encoder(type(self), version)
        return encoder(self)

    @classmethod
    def decode(cls: type[M], data: Buffer, version: int, *, allow_trailing: bool = False) -> M:
        """Decode one body that fills ``data``. Raises DecodeError with offset and path.

        ``allow_trailing`` permits bytes after the body; ``decode_from`` returns where they begin.
        """
        if type(data) is not bytes:
            data = memoryview(data).tobytes()
        if allow_trailing:
            return cls.decode_from(data, version)[0]
        try:
            reader = cls._READERS[version]
        except KeyError:
            reader = registry.reader(cls, version)
        return reader(data)  # type: ignore[no-any-return]  # made by generated code

    @classmethod
    def decode_from(cls: type[M], data: Buffer, version: int, offset: int = 0) -> tuple[M, int]:
        """Decode one body that begins at ``offset``. Returns it and the offset of the byte after
        it."""
        if type(data) is not bytes:
            data = memoryview(data).tobytes()
        try:
            decoder = cls._DECODERS[version]
        except KeyError:
            decoder = registry.decoder(cls, version)
        return decoder(data, offset)

    @classmethod
    def validate(cls, data: Buffer, version: int, *, allow_trailing: bool = False) -> None:
        """Raise what ``decode`` raises, without making a message.

        Several times as fast as ``decode`` on the native engine.
        """
        if type(data) is not bytes:
            data = memoryview(data).tobytes()
        try:
            validator = cls._VALIDATORS[version]
        except KeyError:
            validator = cls._VALIDATORS[version] = registry.validator(cls, version)
        end = validator(data, 0)
        if end != len(data) and not allow_trailing:
            raise registry.trailing_bytes(data, end)

    def to_json(self, version: int) -> str:
        """Return the text that Kafka's JsonConverter writes for this version.

        A uuid is URL-safe base64 without padding, bytes are padded base64, and tagged fields at
        their default are left out. Records are base64, where Kafka's converter writes an empty
        string or only their size.
        """
        return json_form.dumps(self, version)

    def to_json_value(self, version: int) -> dict[str, Any]:
        """Return what ``to_json`` writes, before it becomes text."""
        return json_form.to_value(self, version)

    @classmethod
    def from_json(
        cls: type[M], data: str | bytes | Mapping[str, Any], version: int, *, fill: bool = False
    ) -> M:
        """Make a message from what ``to_json`` writes, as text or as parsed JSON.

        A missing untagged field raises JsonError (a DecodeError) whose ``path`` names the field, or
        has its default with ``fill``.
        """
        return json_form.from_value(cls, data, version, fill=fill)


if TYPE_CHECKING:

    class RequestMessage(Message, Generic[R_co], kw_only=True, gc=False):
        """The body of a request whose response is an ``R_co``."""

else:

    class RequestMessage(Message, kw_only=True, gc=False):
        """The body of a request; type checkers read ``RequestMessage["HeartbeatResponse"]``."""

        def __class_getitem__(cls, _response):
            # Not Generic: importing a request must not import its response.
            return cls
