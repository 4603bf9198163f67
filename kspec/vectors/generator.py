"""Generate the vectors of every message and version, in the order of their names."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from kproto import Dialect, reference
from kproto.annotate import FrameField, request_fields, response_fields
from kproto.codec.message import Message
from kproto.codec.registry import schema_of
from kproto.errors import DecodeError
from kproto.schema.model import MessageSchema
from kspec.vectors.damage import InvalidBody, damaged
from kspec.vectors.frames import Wrapping, wrapping
from kspec.vectors.values import instances
from kspec.vectors.vector import Vector

__all__ = ["vectors"]

DAMAGED = "filled"
"""The pattern whose bytes are damaged. A message without fields only has ``default``."""


def vectors(dialect: Dialect, names: Collection[str] | None = None) -> Iterator[Vector]:
    """Yield the vectors of the messages called ``names``, or of all."""
    for name in dialect.message_names() if names is None else sorted(names):
        cls = dialect.message(name)
        if name != cls.MESSAGE_NAME:
            continue  # another name of a message that is also listed itself
        for version in cls.VALID_VERSIONS:
            yield from _Maker(dialect, cls, version).all()


class _Maker:
    """Generates the vectors of one message at one version."""

    def __init__(self, dialect: Dialect, cls: type[Message], version: int) -> None:
        self._dialect = dialect
        self._cls = cls
        self._schema: MessageSchema = schema_of(cls)
        self._version = version
        self._plain = wrapping(dialect, cls, version, unknown_tags=False)

    def all(self) -> Iterator[Vector]:
        bodies: dict[str, bytes] = {}
        for pattern, value in instances(self._cls, self._schema, self._version):
            bodies[pattern] = value.encode(self._version)
            yield self._valid(pattern, pattern, self._wrapping(pattern), bodies[pattern])
        whole = bodies.get(DAMAGED, bodies["default"])
        for each in damaged(self._schema, self._version, whole):
            if each.verdict == "valid":
                yield self._valid(_name(each), each.kind, self._plain, each.body)
            else:
                yield self._bad(each)

    def _wrapping(self, pattern: str) -> Wrapping:
        if pattern != "unknown-tags":
            return self._plain
        return wrapping(self._dialect, self._cls, self._version, unknown_tags=True)

    def _valid(self, name: str, kind: str, wrapped: Wrapping, body: bytes) -> Vector:
        data, at = wrapped.wrap(body)
        value = self._cls.decode(body, self._version)
        canonical = wrapped.wrap(value.encode(self._version))[0]
        header, header_version = wrapped
        header_json = None
        if header is not None and header_version is not None:
            header_json = header.to_json_value(header_version)
        return self._vector(
            name,
            kind,
            "valid",
            data,
            at,
            header=header_json,
            json=value.to_json_value(self._version),
            fields=tuple(self._fields(data)),
            canonical=canonical if canonical != data else None,
        )

    def _bad(self, damage: InvalidBody) -> Vector:
        data, at = self._plain.wrap(damage.body)
        try:
            self._cls.decode(damage.body, self._version)
        except DecodeError as error:
            found = DecodeError(error.problem, offset=error.offset + at, path=error.path)
            name = _name(damage)
            return self._vector(name, damage.kind, damage.verdict, data, at, error=found)
        raise AssertionError(f"{self._cls.MESSAGE_NAME} {self._version}: {damage} is decoded")

    def _fields(self, data: bytes) -> list[FrameField]:
        if self._plain.header is None:
            spans = reference.fields(self._schema, self._version, data)
            return [FrameField(*_as_tuple(span)) for span in spans]
        if self._cls.MESSAGE_TYPE == "request":
            return request_fields(self._dialect, data)
        assert self._cls.API_KEY is not None
        return response_fields(
            self._dialect, data, api_key=self._cls.API_KEY, api_version=self._version
        )

    def _vector(
        self, name: str, kind: str, verdict: Any, data: bytes, at: int, **more: Any
    ) -> Vector:
        cls, version = self._cls, self._version
        return Vector(
            f"{cls.MESSAGE_NAME}/{version}/{name}",
            cls.MESSAGE_NAME,
            cls.MESSAGE_TYPE,
            cls.API_KEY,
            version,
            self._plain.header_version,
            kind,
            verdict,
            data,
            at,
            **more,
        )


def _as_tuple(span: reference.FieldSpan) -> tuple[Any, ...]:
    return span.offset, span.length, span.path, span.type, span.value, span.leaf


def _name(damage: InvalidBody) -> str:
    return f"{damage.kind}/{damage.where}" if damage.where else damage.kind
