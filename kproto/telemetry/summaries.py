"""The metrics of a PushTelemetry in words, for people: name, type, unit and points."""

from __future__ import annotations

import math
from typing import Any, Final

from kproto.errors import KprotoError
from kproto.records.compression import decompress
from kproto.records.model import Compression
from kproto.telemetry.otlp import Metric, read_metrics

__all__ = ["finite", "summarize_metrics"]

_MOST_METRICS: Final = 200
_MOST_POINTS: Final = 20
_LONGEST: Final = 4 << 20
"""The most bytes that metrics are decompressed to."""


def summarize_metrics(data: bytes, compression_type: int) -> list[dict[str, Any]]:
    """Return a description of each metric as JSON values, at most 200 with 20 points each.

    ``compression_type`` is the field of the request. Metrics that cannot be decompressed or read
    are described by their ``problem``.
    """
    try:
        codec = Compression(compression_type)
        metrics = read_metrics(decompress(codec, data, limit=_LONGEST))
    except (KprotoError, ValueError) as error:
        return [{"problem": str(error)}]
    found = [_metric(each) for each in metrics[:_MOST_METRICS]]
    if len(metrics) > _MOST_METRICS:
        found.append({"more": len(metrics) - _MOST_METRICS})
    return found


def _metric(metric: Metric) -> dict[str, Any]:
    made: dict[str, Any] = {"name": metric.name, "type": metric.type}
    if metric.unit:
        made["unit"] = metric.unit
    if metric.temporality is not None:
        made["temporality"] = metric.temporality
    if metric.resource:
        made["resource"] = finite(metric.resource)
    made["points"] = [
        ({"attributes": finite(point.attributes)} if point.attributes else {})
        | {"value": finite(point.value)}
        for point in metric.points[:_MOST_POINTS]
    ]
    if len(metric.points) > _MOST_POINTS:
        made["more"] = len(metric.points) - _MOST_POINTS
    return made


def finite(value: Any) -> Any:
    """Return a value with texts in place of the numbers that JSON lacks, such as NaN."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)
