"""The reader of OpenTelemetry metrics."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.telemetry.otlp import Metric, Point, ProtobufError, read_metrics
from tests.telemetry.protobuf import attribute, field, fixed, gauge, metrics_data, number


@pytest.mark.requirement("TELEM-21")
def test_a_gauge() -> None:
    (metric,) = read_metrics(metrics_data(gauge("a.b", 1.5)))
    assert metric == Metric(
        "a.b", "gauge", "", None, False, "scope", {"client": "c"}, (Point({}, 1.5, 5, 0),)
    )


def test_a_sum_has_its_temporality() -> None:
    points = field(1, fixed(2, 3) + fixed(3, 4) + fixed(6, -7) + attribute(7, "k", number(3, 9)))
    data = field(1, "n") + field(3, "s") + field(7, points + number(2, 1) + number(3, 1))
    (metric,) = read_metrics(metrics_data(data))
    assert (metric.type, metric.temporality, metric.monotonic) == ("sum", "delta", True)
    assert metric.unit == "s"
    assert metric.points == (Point({"k": 9}, -7, 4, 3),)


def test_a_histogram() -> None:
    point = fixed(4, 3) + fixed(5, 2.5) + field(6, struct.pack("<2Q", 1, 2))
    point += field(7, struct.pack("<d", 0.5)) + attribute(9, "k", field(1, "v"))
    (metric,) = read_metrics(metrics_data(field(1, "h") + field(9, field(1, point))))
    assert metric.points[0].value == {"count": 3, "sum": 2.5, "buckets": [1, 2], "bounds": [0.5]}
    assert metric.points[0].attributes == {"k": "v"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (field(1, "text"), "text"),
        (number(2, 1), True),
        (number(3, (1 << 64) - 2), -2),
        (fixed(4, 0.25), 0.25),
        (field(5, field(1, number(3, 1)) + field(1, field(1, "x"))), [1, "x"]),
        (field(6, attribute(1, "k", number(2, 0))), {"k": False}),
        (field(7, b"\xff"), "ff"),
        (b"", None),
    ],
)
def test_values_of_attributes(value: bytes, expected: object) -> None:
    point = attribute(7, "k", value) + fixed(4, 1.0)
    (metric,) = read_metrics(metrics_data(field(1, "n") + field(5, field(1, point))))
    assert metric.points[0].attributes == {"k": expected}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\x0a\x05ab", "resource_metrics: field 1 has 5 bytes, 2 are left"),
        (b"\x80", "a number at byte 0 does not end"),
        (b"\x0b", "wire type 3 at byte 1"),
        (b"\x02\x00", "field number 0"),
        (number(1, 4), "a number in place of bytes"),
        (metrics_data(field(1, b"\xff")), "metric.name: not UTF-8"),
        (metrics_data(field(5, field(1, number(4, 1)))), "in place of a double"),
        (metrics_data(field(5, field(1, field(3, b"x")))), "bytes in place of a number"),
        (metrics_data(field(9, field(1, field(6, b"x")))), "not eight bytes long"),
    ],
)
def test_what_is_wrong_with_bytes(data: bytes, problem: str) -> None:
    with pytest.raises(ProtobufError, match=problem):
        read_metrics(data)


def test_values_do_not_nest_without_end() -> None:
    value = field(1, "x")
    for _ in range(100):
        value = field(5, field(1, value))
    point = attribute(7, "k", value)
    with pytest.raises(ProtobufError, match="too deep"):
        read_metrics(metrics_data(field(1, "n") + field(5, field(1, point))))


@given(st.binary(max_size=64), st.integers(0, 200), st.integers(0, 255))
def test_damaged_bytes_never_raise_another_error(noise: bytes, at: int, byte: int) -> None:
    good = bytearray(metrics_data(gauge("a", 1.0), field(1, "h") + field(9, field(1, fixed(4, 1)))))
    good[at % len(good)] = byte
    for data in (noise, bytes(good), bytes(good[:at])):
        with contextlib.suppress(ProtobufError):
            read_metrics(data)
