"""Make the metrics of a PushTelemetry readable (KIP-714).

``metrics`` becomes a list of what each metric is: ``{"name", "type", "temporality", "points"}``. In
place of metrics that cannot be decompressed or read there is one ``{"problem": TEXT}``.
``metricsSize`` is the number of bytes on the wire.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from kproto.telemetry.summaries import summarize_metrics

__all__ = ["with_metrics"]

_PUSH_TELEMETRY: Final = 72


def with_metrics(api_key: int | None, body: Any) -> Any:
    """Return the body with what can be read in it."""
    if api_key != _PUSH_TELEMETRY or not isinstance(body, Mapping) or "metrics" not in body:
        return body
    try:
        data = base64.b64decode(body["metrics"], validate=True)
    except (TypeError, binascii.Error):
        return body
    metrics = summarize_metrics(data, body.get("compressionType", 0)) if data else []
    return {**body, "metrics": metrics, "metricsSize": len(data)}
