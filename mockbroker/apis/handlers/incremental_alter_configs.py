"""IncrementalAlterConfigs (44, KIP-339): set, delete, append to or subtract from configs.

Versions: 1 flexible.
"""

from __future__ import annotations

from collections.abc import Sequence

from kproto.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from kproto.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from mockbroker.apis.common.config_alterations import Resource, alter_each
from mockbroker.apis.registry import Call, register
from mockbroker.errors import Refusal
from mockbroker.simulation.configs.changes import ConfigOperation
from mockbroker.simulation.releases import facts
from mockbroker.simulation.state.cluster_state import BROKER_LOGGER
from mockbroker.simulation.state.results import AlterConfigsResult

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
            _alter_loggers,
        )
    )


def _alter_loggers(
    call: Call, name: str, operations: Sequence[ConfigOperation]
) -> AlterConfigsResult:
    """Change levels of the receiving broker's loggers."""
    checks_nulls = call.release.has(facts.NULLS_CHECKED)
    try:
        call.cluster.config_changes.check_operations(operations, nulls_too=checks_nulls)
    except Refusal as refusal:
        return AlterConfigsResult(BROKER_LOGGER, name, refusal.code, refusal.message)
    return call.cluster.loggers.alter(
        name, operations, call.broker_id, validate_only=call.body.validate_only
    )
