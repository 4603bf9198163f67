"""IncrementalAlterConfigs (44, KIP-339): set, delete, append to or subtract from configs.

Versions: 1 flexible. Any broker accepts topic configs, with or without forwarding. Configs of a
named broker must go to that broker.
"""

from __future__ import annotations

from collections import Counter

from kproto.error_codes import ErrorCode
from kproto.messages.incremental_alter_configs_request import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from mockbroker.apis.authorization import BROKER_CONFIG_TYPES, config_refusal, may_config
from mockbroker.apis.registry import Call, register
from mockbroker.configs.effective import integer
from mockbroker.state.cluster_state import BROKER

__all__ = ["incremental_alter_configs"]


@register(44, "0-1")
def incremental_alter_configs(call: Call) -> IncrementalAlterConfigsResponse:
    request: IncrementalAlterConfigsRequest = call.body
    times = Counter((each.resource_type, each.resource_name) for each in request.resources)
    return IncrementalAlterConfigsResponse(
        responses=[
            _refuse(resource, "Each resource must appear at most once.")
            if times[resource.resource_type, resource.resource_name] > 1
            else _unauthorized(resource)
            if not may_config(call, resource.resource_type, resource.resource_name)
            else _alter(call, resource, validate_only=request.validate_only)
            for resource in request.resources
        ]
    )


def _alter(
    call: Call, resource: AlterConfigsResource, *, validate_only: bool
) -> AlterConfigsResourceResponse:
    kind, name = resource.resource_type, resource.resource_name
    if kind == BROKER and name not in ("", str(call.broker_id)):
        if integer(name) is None:
            return _refuse(resource, f"Node id must be an integer, but it is: {name}")
        return _refuse(
            resource, f"Unexpected broker id, expected {call.broker_id}, but received {name}"
        )
    operations = [(each.name, each.config_operation, each.value) for each in resource.configs]
    (result,) = call.cluster.incremental_alter_configs(
        [(kind, name, operations)], validate_only=validate_only
    )
    return AlterConfigsResourceResponse(
        error_code=result.error_code,
        error_message=result.error_message,
        resource_type=kind,
        resource_name=name,
    )


def _unauthorized(resource: AlterConfigsResource) -> AlterConfigsResourceResponse:
    kind = resource.resource_type
    code, text = config_refusal(kind)
    return AlterConfigsResourceResponse(
        error_code=code,
        # The receiving broker already refuses this, with a shorter text.
        error_message=None if kind in BROKER_CONFIG_TYPES else text,
        resource_type=kind,
        resource_name=resource.resource_name,
    )


def _refuse(resource: AlterConfigsResource, text: str) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=text,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
