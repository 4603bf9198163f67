"""IncrementalAlterConfigs (44, KIP-339): set, delete, append to or subtract from configs.

Versions: 1 flexible.
"""

from __future__ import annotations

from kproto.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from kproto.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from mockbroker.apis.common.config_alterations import Resource, alter_each
from mockbroker.apis.registry import Call, register

__all__ = ["incremental_alter_configs"]


@register(44, "0-1")
def incremental_alter_configs(call: Call) -> IncrementalAlterConfigsResponse:
    request: IncrementalAlterConfigsRequest = call.body
    resources: list[Resource] = [
        (
            resource.resource_type,
            resource.resource_name,
            [(each.name, each.config_operation, each.value) for each in resource.configs],
        )
        for resource in request.resources
    ]
    return IncrementalAlterConfigsResponse(
        responses=alter_each(
            call,
            resources,
            call.cluster.config_changes.alter_incrementally,
            AlterConfigsResourceResponse,
        )
    )
