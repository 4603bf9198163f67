"""IncrementalAlterConfigs (44, KIP-339): set, delete, append to or subtract from configs.

Versions: 1 flexible. Any broker takes topic configs, with or without forwarding; a named broker's
own go to that broker.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.messages.incremental_alter_configs_request import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from mockbroker.apis.describe_configs import wrong_broker
from mockbroker.apis.registry import Call, register

__all__ = ["incremental_alter_configs"]


@register(44, "0-1")
def incremental_alter_configs(call: Call) -> IncrementalAlterConfigsResponse:
    request: IncrementalAlterConfigsRequest = call.body
    return IncrementalAlterConfigsResponse(
        responses=[
            _alter(call, resource, validate_only=request.validate_only)
            for resource in request.resources
        ]
    )


def _alter(
    call: Call, resource: AlterConfigsResource, *, validate_only: bool
) -> AlterConfigsResourceResponse:
    kind, name = resource.resource_type, resource.resource_name
    if wrong_broker(call.broker_id, kind, name):
        return AlterConfigsResourceResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message=f"Unexpected broker id, expected {call.broker_id}, but received {name}",
            resource_type=kind,
            resource_name=name,
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
