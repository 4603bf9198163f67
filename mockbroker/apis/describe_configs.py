"""DescribeConfigs (32): configs of topics and brokers.

Versions: 0 had ``is_default`` where 1 has a source; 1 synonyms; 3 types and documentation; 4
flexible. Clients send a named broker's resource to that broker, and another broker refuses it.
"""

from __future__ import annotations

from typing import Final

from kproto.error_codes import ErrorCode
from kproto.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kproto.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from mockbroker.apis.registry import Call, register
from mockbroker.results import ConfigEntry

__all__ = ["BROKER", "describe_configs", "wrong_broker"]

BROKER: Final = 4
"""The wire's number of a broker's config resource."""


@register(32, "0-4")
def describe_configs(call: Call) -> DescribeConfigsResponse:
    request: DescribeConfigsRequest = call.body
    return DescribeConfigsResponse(
        results=[_describe(call, request, resource) for resource in request.resources]
    )


def wrong_broker(broker_id: int, resource_type: int, name: str) -> bool:
    """Whether the resource is a broker other than the one asked ("" is the whole cluster)."""
    return resource_type == BROKER and name not in ("", str(broker_id))


def _describe(
    call: Call, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    kind, name = resource.resource_type, resource.resource_name
    if wrong_broker(call.broker_id, kind, name):
        return DescribeConfigsResult(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message=(
                f"Unexpected broker id, expected {call.broker_id} or empty string, "
                f"but received {name}"
            ),
            resource_type=kind,
            resource_name=name,
        )
    result = call.cluster.describe_configs(kind, name, resource.configuration_keys)
    return DescribeConfigsResult(
        error_code=result.error_code,
        error_message=result.error_message,
        resource_type=kind,
        resource_name=name,
        configs=[_config(call.version, request, entry) for entry in result.configs],
    )


def _config(
    version: int, request: DescribeConfigsRequest, entry: ConfigEntry
) -> DescribeConfigsResourceResult:
    row = DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        config_type=entry.config_type,
        documentation=entry.documentation if request.include_documentation else None,
    )
    if version == 0:
        row.is_default = entry.is_default
    if request.include_synonyms:
        row.synonyms = [
            DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source)
            for each in entry.synonyms
        ]
    return row
