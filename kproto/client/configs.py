"""DescribeConfigs (32) and IncrementalAlterConfigs (44): build bodies and interpret responses. No
I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kproto.client.calls import Attempt
from kproto.client.errors import BrokerError, UnknownServerError, broker_error
from kproto.client.values import AlterConfigOp, ConfigEntry, ConfigResource

__all__ = ["alter_incrementally", "by_broker", "describe", "silent"]

DESCRIBE_CONFIGS: Final = 32

_DEFAULT_CONFIG: Final = 5


def by_broker(resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    """Group resources by the only broker that can respond for them, None for any."""
    groups: dict[int | None, list[ConfigResource]] = {}
    for each in resources:
        groups.setdefault(each.broker_id, []).append(each)
    return groups


async def alter_incrementally(
    attempt: Attempt,
    changes: Mapping[ConfigResource, Sequence[AlterConfigOp]],
    *,
    validate_only: bool,
) -> Mapping[ConfigResource, BrokerError | None]:
    """Return the outcome of each resource."""
    request: Any = attempt.dialect.message("IncrementalAlterConfigsRequest")
    resource, config = request.STRUCTS["AlterConfigsResource"], request.STRUCTS["AlterableConfig"]
    body = request(
        resources=[
            resource(
                resource_type=int(key.type),
                resource_name=key.name,
                configs=[
                    config(name=each.name, config_operation=int(each.operation), value=each.value)
                    for each in operations
                ],
            )
            for key, operations in changes.items()
        ],
        validate_only=validate_only,
    )
    response = await attempt.request(body)
    by_code = _by_code(changes)
    return {
        by_code[key]: broker_error(row.error_code, row.error_message) if row.error_code else None
        for row in response.responses
        if (key := (row.resource_type, row.resource_name)) in by_code
    }


async def describe(
    attempt: Attempt, resources: Sequence[ConfigResource]
) -> Mapping[ConfigResource, dict[str, ConfigEntry] | BrokerError]:
    """Return all configs of each resource, by name."""
    version = attempt.version(DESCRIBE_CONFIGS)
    request: Any = attempt.dialect.message("DescribeConfigsRequest")
    resource = request.STRUCTS["DescribeConfigsResource"]
    body = request(
        resources=[
            resource(resource_type=int(each.type), resource_name=each.name, configuration_keys=None)
            for each in resources
        ]
    )
    response = await attempt.request(body, version)
    by_code = _by_code(resources)
    return {
        by_code[key]: broker_error(row.error_code, row.error_message)
        if row.error_code
        else {each.name: _entry(each, version) for each in row.configs}
        for row in response.results
        if (key := (row.resource_type, row.resource_name)) in by_code
    }


def _by_code(resources: Iterable[ConfigResource]) -> dict[tuple[int, str], ConfigResource]:
    return {(int(each.type), each.name): each for each in resources}


def _entry(row: Any, version: int) -> ConfigEntry:
    return ConfigEntry(
        name=row.name,
        value=row.value,
        source=row.config_source,
        is_default=row.is_default if version == 0 else row.config_source == _DEFAULT_CONFIG,
        is_read_only=row.read_only,
        is_sensitive=row.is_sensitive,
    )


def silent(resource: ConfigResource) -> UnknownServerError:
    return UnknownServerError(
        f"The response did not contain a result for {resource.type.name.lower()} {resource.name}"
    )
