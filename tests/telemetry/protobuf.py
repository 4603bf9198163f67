"""Writes OpenTelemetry metrics as protobuf, for tests of the reader."""

import struct

__all__ = ["attribute", "field", "fixed", "gauge", "metrics_data", "number"]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, content: bytes | str) -> bytes:
    """A field with bytes, a text or a message."""
    data = content.encode() if isinstance(content, str) else content
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def number(place: int, value: int) -> bytes:
    """A field with a varint."""
    return _varint(place << 3) + _varint(value)


def fixed(place: int, value: int | float) -> bytes:
    """A field of eight bytes: an integer or a double."""
    code = "<d" if isinstance(value, float) else "<q"
    return _varint(place << 3 | 1) + struct.pack(code, value)


def attribute(place: int, key: str, value: bytes) -> bytes:
    """A ``KeyValue`` whose ``AnyValue`` has this field."""
    return field(place, field(1, key) + field(2, value))


def gauge(name: str, value: float) -> bytes:
    """A metric with one point."""
    return field(1, name) + field(5, field(1, fixed(3, 5) + fixed(4, value)))


def metrics_data(*metrics: bytes) -> bytes:
    """Metrics of one scope of one resource."""
    scope = field(1, field(1, "scope")) + b"".join(field(2, each) for each in metrics)
    resource = field(1, attribute(1, "client", field(1, "c")))
    return field(1, resource + field(2, scope))
