"""The telemetry of a cluster as values for testers."""

from __future__ import annotations

from typing import Any

import msgspec

from kproto.telemetry.otlp import Metric, ProtobufError, read_metrics
from kproto.telemetry.summaries import finite

__all__ = ["ClientView", "Push", "SubscriptionView", "TelemetryView", "telemetry_json"]


class Push(msgspec.Struct, frozen=True):
    """A PushTelemetry that a broker accepted. ``number`` counts from 1 in the cluster, ``at_ms`` is
    on the simulated clock, ``size`` that of the metrics on the wire; ``data`` is the metrics
    without compression."""

    number: int
    at_ms: int
    broker_id: int
    client_instance_id: str
    client_id: str | None
    terminating: bool
    compression: str
    size: int
    data: bytes

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The OpenTelemetry metrics. Raises ProtobufError."""
        return read_metrics(self.data)

    @property
    def problem(self) -> str | None:
        """Why the data cannot be read as OpenTelemetry metrics; None if it can."""
        try:
            read_metrics(self.data)
        except ProtobufError as error:
            return str(error)
        return None


class SubscriptionView(msgspec.Struct, frozen=True):
    """A subscription: prefixes of metrics, the push interval, and ``name=pattern`` of clients."""

    name: str
    metrics: tuple[str, ...]
    interval_ms: int
    match: tuple[str, ...]


class ClientView(msgspec.Struct, frozen=True):
    """A client instance that a broker knows, with what it is to push. ``last_error`` is the code of
    its last push."""

    client_instance_id: str
    broker_id: int
    client_id: str | None
    software: str | None
    metrics: tuple[str, ...]
    interval_ms: int
    subscription_id: int
    terminating: bool
    last_error: int


class TelemetryView(msgspec.Struct, frozen=True):
    """The telemetry of a cluster: subscriptions, client instances by broker, and the newest pushes,
    oldest first."""

    subscriptions: tuple[SubscriptionView, ...]
    clients: tuple[ClientView, ...]
    pushes: tuple[Push, ...]


def telemetry_json(view: TelemetryView) -> dict[str, Any]:
    """Return the object of ``GET /telemetry``."""
    return {
        "subscriptions": [msgspec.structs.asdict(each) for each in view.subscriptions],
        "clients": [msgspec.structs.asdict(each) for each in view.clients],
        "pushes": [_push_json(each) for each in view.pushes],
    }


def _push_json(push: Push) -> dict[str, Any]:
    found = msgspec.structs.asdict(push)
    del found["data"]
    try:
        metrics = push.metrics
    except ProtobufError as error:
        return {**found, "metrics": [], "problem": str(error)}
    return {**found, "metrics": finite(msgspec.to_builtins(metrics)), "problem": None}
