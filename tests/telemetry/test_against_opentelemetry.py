"""The reader of metrics beside the classes of OpenTelemetry's own package, which encode them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.telemetry.otlp import Metric, Point, read_metrics
from tests.support.toolchain import require_module

NUMBERS = st.integers(0, 2**64 - 1)
DOUBLES = st.floats(allow_nan=False)
SCALARS = st.one_of(
    st.text(max_size=20).map(lambda each: ("string_value", each)),
    st.booleans().map(lambda each: ("bool_value", each)),
    st.integers(-(2**63), 2**63 - 1).map(lambda each: ("int_value", each)),
    DOUBLES.map(lambda each: ("double_value", each)),
    st.binary(max_size=20).map(lambda each: ("bytes_value", each)),
)
KINDS = ("gauge", "sum", "histogram", "exponential_histogram", "summary")
TEMPORALITIES = {0: None, 1: "delta", 2: "cumulative"}


@pytest.fixture(scope="module")
def metrics() -> Any:
    return require_module("opentelemetry.proto.metrics.v1.metrics_pb2")


def fill(holder: Any, data: st.DataObject) -> dict[str, Any]:
    """Add attributes, some of them lists; returns what the reader makes of them."""
    expected: dict[str, Any] = {}
    for key in data.draw(st.lists(st.text(max_size=5), unique=True, max_size=3)):
        added = holder.add(key=key)
        drawn = data.draw(st.lists(SCALARS, min_size=1, max_size=3))
        shown = [each.hex() if isinstance(each, bytes) else each for _, each in drawn]
        if len(drawn) == 1:
            setattr(added.value, *drawn[0])
            expected[key] = shown[0]
            continue
        for kind, each in drawn:
            setattr(added.value.array_value.values.add(), kind, each)
        expected[key] = shown
    return expected


def add_point(holder: Any, kind: str, data: st.DataObject) -> Point:
    start, time = data.draw(NUMBERS), data.draw(NUMBERS)
    point = holder.data_points.add(start_time_unix_nano=start, time_unix_nano=time)
    value: Any
    if kind in ("gauge", "sum"):
        if data.draw(st.booleans()):
            value = point.as_double = data.draw(DOUBLES)
        else:
            value = point.as_int = data.draw(st.integers(-(2**63), 2**63 - 1))
    else:
        point.count = data.draw(NUMBERS)
        point.sum = data.draw(DOUBLES)
        # A summary has no presence for its sum: zero is not on the wire.
        absent = kind == "summary" and str(point.sum) == "0.0"
        value = {"count": point.count, "sum": None if absent else point.sum}
    if kind == "histogram":
        buckets = data.draw(st.lists(NUMBERS, max_size=3))
        bounds = data.draw(st.lists(DOUBLES, max_size=3))
        point.bucket_counts.extend(buckets)
        point.explicit_bounds.extend(bounds)
        value |= {"buckets": buckets} if buckets else {}
        value |= {"bounds": bounds} if bounds else {}
    return Point(fill(point.attributes, data), value, time, start)


@pytest.mark.requirement("TELEM-21")
@given(data=st.data())
def test_what_opentelemetry_writes_is_read(metrics: Any, data: st.DataObject) -> None:
    written = metrics.MetricsData()
    expected = []
    for _ in range(data.draw(st.integers(0, 2))):
        resource_metrics = written.resource_metrics.add()
        resource = fill(resource_metrics.resource.attributes, data)
        scope_metrics = resource_metrics.scope_metrics.add()
        scope = scope_metrics.scope.name = data.draw(st.text(max_size=5))
        for kind in data.draw(st.lists(st.sampled_from(KINDS), max_size=3)):
            name, unit = data.draw(st.text(max_size=9)), data.draw(st.text(max_size=3))
            metric = scope_metrics.metrics.add(name=name, unit=unit, description="about")
            holder = getattr(metric, kind)
            holder.SetInParent()
            points = tuple(
                add_point(holder, kind, data) for _ in range(data.draw(st.integers(0, 2)))
            )
            temporality = None
            if kind not in ("gauge", "summary"):
                holder.aggregation_temporality = data.draw(st.sampled_from(sorted(TEMPORALITIES)))
                temporality = TEMPORALITIES[holder.aggregation_temporality]
            if kind == "sum":
                holder.is_monotonic = data.draw(st.booleans())
            monotonic = kind == "sum" and holder.is_monotonic
            expected.append(
                Metric(name, kind, unit, temporality, monotonic, scope, resource, points)
            )
    assert read_metrics(written.SerializeToString()) == tuple(expected)
