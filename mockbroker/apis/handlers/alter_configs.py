"""AlterConfigs (33, KIP-133): replace all configs of a resource.

Versions: 2 flexible. Configs that the request does not name return to their defaults. Brokers of
3.9.2 and 4.4.0 never answer a request that names a resource twice; the mock refuses the resource.
"""

from __future__ import annotations

from collections.abc import Sequence

from kproto.error_codes import ErrorCode
from kproto.messages.alter_configs_request import AlterConfigsRequest
from kproto.messages.alter_configs_response import (
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from mockbroker.apis.common.config_alterations import Resource, alter_each
from mockbroker.apis.registry import Call, register
from mockbroker.errors import Refusal
from mockbroker.simulation.configs.changes import SET, ConfigOperation
from mockbroker.simulation.releases import facts
from mockbroker.simulation.state.cluster_state import BROKER_LOGGER
from mockbroker.simulation.state.results import AlterConfigsResult

__all__ = ["alter_configs"]


@register(33, "0-2")
def alter_configs(call: Call) -> AlterConfigsResponse:
    request: AlterConfigsRequest = call.body
    resources: list[Resource] = [
        (
            resource.resource_type,
            resource.resource_name,
            [(each.name, SET, each.value) for each in resource.configs],
        )
        for resource in request.resources
    ]
    return AlterConfigsResponse(
        responses=alter_each(
            call,
            resources,
            call.cluster.config_changes.replace,
            AlterConfigsResourceResponse,
            _refuse_loggers,
        )
    )


def _refuse_loggers(
    call: Call, name: str, operations: Sequence[ConfigOperation]
) -> AlterConfigsResult:
    try:
        call.cluster.config_changes.check_operations(operations)
    except Refusal as refusal:
        return AlterConfigsResult(BROKER_LOGGER, name, refusal.code, refusal.message)
    text = call.release.value_of(facts.LOGGERS_REPLACED)
    return AlterConfigsResult(BROKER_LOGGER, name, ErrorCode.INVALID_REQUEST, text)
