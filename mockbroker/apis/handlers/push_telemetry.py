"""PushTelemetry (72, KIP-714): metrics of a client, as OpenTelemetry's ``MetricsData``.

Version 0 alone, flexible. See ``get_telemetry_subscriptions``.
"""

from __future__ import annotations

from kproto.messages.push_telemetry_request import PushTelemetryRequest
from kproto.messages.push_telemetry_response import PushTelemetryResponse
from mockbroker.apis.handlers.get_telemetry_subscriptions import client_facts
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.clients.telemetry.client_instances import PushedMetrics

__all__ = ["push_telemetry"]


@register(72, "0")
def push_telemetry(call: Call) -> PushTelemetryResponse:
    body: PushTelemetryRequest = call.body
    telemetry = call.cluster.telemetry
    metrics = bytes(body.metrics)
    pushed = PushedMetrics(
        body.subscription_id,
        body.terminating,
        body.compression_type,
        len(metrics),
        telemetry.max_bytes(call.broker_id),
    )
    facts = client_facts(call, body.client_instance_id)
    code = telemetry.push(call.broker_id, facts, call.session.connection_id, pushed, metrics)
    return PushTelemetryResponse(error_code=code)
