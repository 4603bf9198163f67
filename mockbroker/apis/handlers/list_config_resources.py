"""ListConfigResources (74): what has configs.

Versions: 0 is ListClientMetricsResources (KIP-1000) and lists subscriptions to clients' metrics; 1
lists every kind of resource (KIP-1142): brokers and topics whether or not a config of theirs is
set. Groups that have configs are not listed.
"""

from __future__ import annotations

from typing import Final

from kproto.error_codes import ErrorCode
from kproto.messages.list_config_resources_request import ListConfigResourcesRequest
from kproto.messages.list_config_resources_response import (
    ConfigResource,
    ListConfigResourcesResponse,
)
from mockbroker.apis.common.requirements import cluster_access
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_state import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
)

__all__ = ["list_config_resources"]

_KINDS: Final = (
    frozenset({CLIENT_METRICS}),
    frozenset({TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP}),
)
"""The kinds that each version knows."""


@register(74, "0-1", requires=(cluster_access(AclOperation.DESCRIBE_CONFIGS),))
def list_config_resources(call: Call) -> ListConfigResourcesResponse:
    body: ListConfigResourcesRequest = call.body
    known = _KINDS[call.version]
    requested = set(body.resource_types) or known
    if not requested <= known:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    view = call.cluster.controller.metadata_view(call.broker_id)
    brokers = [str(each.broker_id) for each in view.live_brokers()]
    metrics = call.cluster.telemetry.subscription_names()
    configs = call.cluster.state.configs
    groups = sorted(name for (kind, name), values in configs.items() if kind == GROUP and values)
    names = (
        (GROUP, groups),
        (CLIENT_METRICS, metrics),
        (BROKER_LOGGER, brokers),
        (BROKER, brokers),
        (TOPIC, sorted(view.topics)),
    )
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind, found in names
            if kind in requested
            for name in found
        ]
    )
