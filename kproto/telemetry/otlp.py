"""Reads OpenTelemetry metrics, ``MetricsData`` of OTLP 1.x, from protobuf. No state.

Only what a tester reads of a push is kept: resources, scopes, and the metrics with their points.
Descriptions, exemplars and flags are skipped. The reader is ours rather than the package
``opentelemetry-proto`` because that needs ``protobuf``, a compiled dependency of the whole package
for a dozen messages. ``ProtobufError`` is the only error.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import msgspec

from kproto.errors import KprotoError

__all__ = ["Attributes", "Metric", "Point", "ProtobufError", "read_metrics"]

AttributeValue: TypeAlias = Any
"""Text, a flag, a number, bytes, or a list or an object of these."""
Attributes: TypeAlias = dict[str, AttributeValue]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DEEPEST: Final = 16
"""The deepest attribute value that is read."""
_DOUBLE: Final = struct.Struct("<d")

_TYPES: Final = {5: "gauge", 7: "sum", 9: "histogram", 10: "exponential_histogram", 11: "summary"}
"""The field of a ``Metric`` -> its type."""
_ATTRIBUTES_OF: Final = {
    "gauge": 7, "sum": 7, "histogram": 9, "exponential_histogram": 1, "summary": 7,
}  # fmt: skip
"""The type of a metric -> the field of a point with its attributes."""
_TEMPORALITIES: Final = {1: "delta", 2: "cumulative"}


class ProtobufError(KprotoError, ValueError):
    """The bytes are no ``MetricsData``; the text says where."""


class Point(msgspec.Struct, frozen=True):
    """A value of a metric. ``value`` is a number of a gauge or a sum, and otherwise an object with
    ``count`` and ``sum``, of a histogram also ``buckets`` and ``bounds``. Times are in nanoseconds
    since the epoch, 0 if the client gives none."""

    attributes: Attributes
    value: float | int | dict[str, Any] | None
    time_ns: int
    start_ns: int


class Metric(msgspec.Struct, frozen=True):
    """A metric of a push. ``temporality`` is delta or cumulative; None if the type has none."""

    name: str
    type: str
    unit: str
    temporality: str | None
    monotonic: bool
    scope: str
    resource: Attributes
    points: tuple[Point, ...]


_Field: TypeAlias = tuple[int, int, int | bytes]
"""(number, wire type, value)"""


def read_metrics(data: bytes) -> tuple[Metric, ...]:
    """The metrics of a push, in its order. Raises ProtobufError."""
    return tuple(
        metric
        for resource_metrics in _messages(data, 1, "resource_metrics")
        for metric in _of_resource(resource_metrics)
    )


def _of_resource(data: bytes) -> Iterator[Metric]:
    attributes: Attributes = {}
    for resource in _messages(data, 1, "resource"):
        attributes.update(_attributes(resource, 1))
    for scope_metrics in _messages(data, 2, "scope_metrics"):
        scope = ""
        for each in _messages(scope_metrics, 1, "scope"):
            scope = _text(each, 1, "scope.name")
        for metric in _messages(scope_metrics, 2, "metrics"):
            yield _metric(metric, scope, attributes)


def _metric(data: bytes, scope: str, resource: Attributes) -> Metric:
    name, unit = _text(data, 1, "metric.name"), _text(data, 3, "metric.unit")
    found, content = "none", b""
    for number, _, value in _fields(data, "metric"):
        if number in _TYPES:
            found, content = _TYPES[number], _as_bytes(value, name)
    temporality = _integer(content, 2, name)
    return Metric(
        name=name,
        type=found,
        unit=unit,
        temporality=_TEMPORALITIES.get(temporality) if found not in ("gauge", "summary") else None,
        monotonic=found == "sum" and bool(_integer(content, 3, name)),
        scope=scope,
        resource=resource,
        points=tuple(_point(each, found) for each in _messages(content, 1, name)),
    )


def _point(data: bytes, kind: str) -> Point:
    value: float | int | dict[str, Any] | None = None
    start = time = 0
    summary: dict[str, Any] = {"count": 0, "sum": None}
    for number, wire, content in _fields(data, "point"):
        match number:
            case 2:
                start = _as_integer(content, "start_time_unix_nano")
            case 3:
                time = _as_integer(content, "time_unix_nano")
            case 4 if kind in ("gauge", "sum"):
                value = _as_double(content, wire, "as_double")
            case 6 if kind in ("gauge", "sum"):
                value = _signed(_as_integer(content, "as_int"))
            case 4:
                summary["count"] = _as_integer(content, "count")
            case 5:
                summary["sum"] = _as_double(content, wire, "sum")
            case 6 if kind == "histogram":
                summary.setdefault("buckets", []).extend(_packed(content, wire, "Q"))
            case 7 if kind == "histogram":
                summary.setdefault("bounds", []).extend(_packed(content, wire, "d"))
    if kind not in ("gauge", "sum"):
        value = summary
    return Point(_attributes(data, _ATTRIBUTES_OF.get(kind, 7)), value, time, start)


def _attributes(data: bytes, field: int) -> Attributes:
    return {
        _text(each, 1, "key"): _value(each, 2, 0) for each in _messages(data, field, "attributes")
    }


def _value(data: bytes, field: int, depth: int) -> AttributeValue:
    """An ``AnyValue`` in this field of a message; None without one."""
    if depth > _DEEPEST:
        raise ProtobufError("attributes: nested too deep")
    found: AttributeValue = None
    for each in _messages(data, field, "value"):
        for number, wire, value in _fields(each, "value"):
            match number:
                case 1:
                    found = _decoded(_as_bytes(value, "string_value"), "string_value")
                case 2:
                    found = bool(_as_integer(value, "bool_value"))
                case 3:
                    found = _signed(_as_integer(value, "int_value"))
                case 4:
                    found = _as_double(value, wire, "double_value")
                case 5:
                    array = _as_bytes(value, "array_value")
                    found = [
                        _value(_wrapped(item), 1, depth + 1)
                        for item in _messages(array, 1, "values")
                    ]
                case 6:
                    pairs = _messages(_as_bytes(value, "kvlist_value"), 1, "values")
                    found = {_text(p, 1, "key"): _value(p, 2, depth + 1) for p in pairs}
                case 7:
                    found = _as_bytes(value, "bytes_value").hex()
    return found


def _wrapped(data: bytes) -> bytes:
    """A message whose field 1 is this message."""
    size, length = bytearray(), len(data)
    while length > 0x7F:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    return b"\x0a" + bytes(size) + bytes([length]) + data


# ---- the wire format -----------------------------------------------------------------------------


def _fields(data: bytes, what: str) -> Iterator[_Field]:
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at, what)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise ProtobufError(f"{what}: field number 0 at byte {at}")
        if wire == _VARINT:
            value, at = _varint(data, at, what)
            yield number, wire, value
            continue
        if wire == _BYTES:
            length, at = _varint(data, at, what)
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
        else:
            raise ProtobufError(f"{what}: wire type {wire} at byte {at}")
        if length > end - at:
            raise ProtobufError(f"{what}: field {number} has {length} bytes, {end - at} are left")
        content = data[at : at + length]
        at += length
        yield number, wire, content if wire == _BYTES else int.from_bytes(content, "little")


def _varint(data: bytes, at: int, what: str) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at + place + 1
    raise ProtobufError(f"{what}: a number at byte {at} does not end")


def _messages(data: bytes, field: int, what: str) -> Iterator[bytes]:
    for number, _, value in _fields(data, what):
        if number == field:
            yield _as_bytes(value, what)


def _text(data: bytes, field: int, what: str) -> str:
    found = ""
    for each in _messages(data, field, what):
        found = _decoded(each, what)
    return found


def _integer(data: bytes, field: int, what: str) -> int:
    found = 0
    for number, _, value in _fields(data, what):
        if number == field:
            found = _as_integer(value, what)
    return found


def _decoded(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ProtobufError(f"{what}: not UTF-8 ({error.reason})") from None


def _as_bytes(value: int | bytes, what: str) -> bytes:
    if isinstance(value, int):
        raise ProtobufError(f"{what}: a number in place of bytes")
    return value


def _as_integer(value: int | bytes, what: str) -> int:
    if isinstance(value, bytes):
        raise ProtobufError(f"{what}: bytes in place of a number")
    return value


def _as_double(value: int | bytes, wire: int, what: str) -> float:
    if wire != _FIXED64:
        raise ProtobufError(f"{what}: wire type {wire} in place of a double")
    found: float = _DOUBLE.unpack(_as_integer(value, what).to_bytes(8, "little"))[0]
    return found


def _packed(value: int | bytes, wire: int, code: str) -> list[float]:
    """Numbers of eight bytes, packed or one alone."""
    data = value.to_bytes(8, "little") if isinstance(value, int) and wire == _FIXED64 else value
    if isinstance(data, int) or len(data) % 8:
        raise ProtobufError("histogram: numbers that are not eight bytes long")
    return list(struct.unpack(f"<{len(data) // 8}{code}", data))


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
