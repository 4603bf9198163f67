"""GetTelemetrySubscriptions (71, KIP-714): which metrics a client is to push, and how often.

Version 0 alone, flexible. Only brokers with a receiver of metrics advertise it, which is the option
``client_telemetry``. No permission is needed.
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import Final

from kproto.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from kproto.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from kproto.schema.model import ZERO_UUID
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.clients.telemetry.subscriptions import ClientFacts

__all__ = ["client_facts", "get_telemetry_subscriptions"]

_ACCEPTED: Final = (4, 3, 1, 2)
"""zstd, lz4, gzip, snappy"""


@register(71, "0")
def get_telemetry_subscriptions(call: Call) -> GetTelemetrySubscriptionsResponse:
    body: GetTelemetrySubscriptionsRequest = call.body
    telemetry = call.cluster.telemetry
    instance_id = body.client_instance_id
    if instance_id == ZERO_UUID:
        instance_id = telemetry.new_instance_id()
    facts = client_facts(call, instance_id)
    code, instance = telemetry.get(call.broker_id, facts, call.session.connection_id)
    if code:
        return GetTelemetrySubscriptionsResponse(error_code=code)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=list(_ACCEPTED),
        push_interval_ms=instance.interval_ms,
        telemetry_max_bytes=telemetry.max_bytes(call.broker_id),
        delta_temporality=True,
        requested_metrics=list(instance.metrics),
    )


def client_facts(call: Call, instance_id: uuid.UUID) -> ClientFacts:
    """Return what the broker knows of the client, and let it hear when the connection closes."""
    session, software = call.session, call.session.software
    instances = call.cluster.telemetry.broker(call.broker_id)
    session.at_close["telemetry"] = partial(instances.connection_closed, session.connection_id)
    return ClientFacts(
        instance_id,
        call.client_id,
        software.name if software else None,
        software.version if software else None,
        session.host,
        session.peer.rpartition(":")[2],
    )
