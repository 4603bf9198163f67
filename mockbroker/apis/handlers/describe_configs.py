"""DescribeConfigs (32): configs of topics, brokers, groups and others, and brokers' loggers.

Versions: 0 has ``is_default`` and 1 a source instead; 1 synonyms; 3 types and documentation; 4
flexible. Clients send a named broker's resource to that broker, and another broker refuses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode, message
from kproto.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kproto.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from mockbroker.apis.common.authorization import config_refusal, may_config
from mockbroker.apis.common.config_types import config_type_name, known_config_type
from mockbroker.apis.common.refusals import refusal
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_state import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
)
from mockbroker.simulation.state.results import ConfigEntry

__all__ = ["describe_configs"]

_NO_SUBSCRIPTIONS: Final = "Config type client-metrics is only supported on KRaft clusters"

_EVER: Final = (TOPIC, BROKER)
"""The resource types of every release."""


@register(32, "0-4")
def describe_configs(call: Call) -> Message:
    request: DescribeConfigsRequest = call.body
    resources: Sequence[DescribeConfigsResource] = request.resources
    is_mapped = call.release.has(facts.DESCRIBED_RESOURCES_MAPPED)
    if is_mapped:
        resources = _mapped(call, resources)
    unknown = next((each for each in resources if not _is_known(call, each)), None)
    if unknown is not None:
        text = message(ErrorCode.INVALID_REQUEST)
        if call.release.has(facts.UNKNOWN_CONFIG_TYPE_NAMED):
            named = config_type_name(call, unknown.resource_type)
            text = f"Unexpected resource type {named} for resource {unknown.resource_name}"
        if is_mapped:
            return DescribeConfigsResponse(
                results=[_refused(each, ErrorCode.INVALID_REQUEST, text) for each in resources]
            )
        return refusal(call, ErrorCode.INVALID_REQUEST, text)
    answered, refused = [], []
    for resource in resources:
        if may_config(
            call, AclOperation.DESCRIBE_CONFIGS, resource.resource_type, resource.resource_name
        ):
            answered.append(_describe(call, request, resource))
        else:
            refused.append(_refused(resource, *config_refusal(resource.resource_type)))
    return DescribeConfigsResponse(results=answered + refused)


def _mapped(
    call: Call, resources: Sequence[DescribeConfigsResource]
) -> list[DescribeConfigsResource]:
    """The resources as a map that has 0 for unknown types."""
    known = [
        replace(each, resource_type=known_config_type(call, each.resource_type))
        for each in resources
    ]
    return list({(each.resource_type, each.resource_name): each for each in known}.values())


def _refused(
    resource: DescribeConfigsResource, code: ErrorCode, text: str | None
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=text,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _is_known(call: Call, resource: DescribeConfigsResource) -> bool:
    """Whether the release has resources of this type; one that it lacks fails the whole request."""
    kind = resource.resource_type
    if kind == BROKER_LOGGER:
        return call.release.has(facts.BROKER_LOGGERS)
    if kind == CLIENT_METRICS:
        return bool(call.cluster.configs.definitions.client_metrics)
    return kind in _EVER or (kind == GROUP and bool(call.cluster.configs.definitions.group))


def _describe(
    call: Call, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    kind, name = resource.resource_type, resource.resource_name
    keys = resource.configuration_keys
    if kind == CLIENT_METRICS and name and call.cluster.controller.keeps_znodes:
        return _refused(resource, ErrorCode.INVALID_REQUEST, _NO_SUBSCRIPTIONS)
    if kind == BROKER_LOGGER:
        result = call.cluster.loggers.describe(name, keys, call.broker_id)
    else:
        receiver = call.session.node_id
        result = call.cluster.configs.describe(kind, name, keys, receiver=receiver)
    entries = result.configs
    if keys == [] and call.release.has(facts.DESCRIBED_RESOURCES_MAPPED):
        entries = ()
    return DescribeConfigsResult(
        error_code=result.error_code,
        error_message=result.error_message
        or (None if call.release.has(facts.NULL_TEXT_OF_CONFIGS) else ""),
        resource_type=kind,
        resource_name=name,
        configs=[_config(call, request, entry) for entry in entries],
    )


def _config(
    call: Call, request: DescribeConfigsRequest, entry: ConfigEntry
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
    if call.version == 0:
        row.is_default = entry.is_default and call.profile.reports_defaults
    if request.include_synonyms:
        row.synonyms = [
            DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source)
            for each in entry.synonyms
        ]
    return row
