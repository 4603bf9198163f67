"""confluent-kafka's calls for topics, configs, groups and offsets. Each has a future per item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaException,
    TopicPartition,
)

# Documented as names of this module, although its types do not export them.
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)
from confluent_kafka.cimpl import NewPartitions

from kspec.adapters.python.lines import (
    Returned,
    ascending,
    client_call,
    elements,
    partition_of,
    rule_parts,
    rule_text,
)

__all__ = ["CALLS", "awaited", "shown"]

Call = dict[str, Any]
Describe = Callable[[Any], dict[str, Any]]
"""Turns a KafkaError or a KafkaException into the members of an error."""


def awaited(future: Any) -> tuple[Any, KafkaException | None]:
    """Return a future's result or error. An error that is not a KafkaException is the call's."""
    with client_call():
        try:
            return future.result(), None
        except KafkaException as error:
            return None, error


def shown(value: Any) -> Any:
    """Represent a value with the members of objects that would print as an address."""
    if isinstance(value, dict):
        return {key: shown(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shown(each) for each in value]
    return {type(value).__name__: shown(vars(value))} if hasattr(value, "__dict__") else value


def _by_future(
    futures: Mapping[Any, Any],
    describe: Describe,
    key: Callable[[Any], str] = str,
    value: Callable[[Any], Any] = lambda _result: None,
) -> Returned:
    """Return an item for each future: its error, or what ``value`` makes of its result."""
    answers = {key(each): awaited(future) for each, future in futures.items()}
    found = {
        name: value(result) if error is None else describe(error)
        for name, (result, error) in answers.items()
    }
    return Returned(
        {name: error or shown(result) for name, (result, error) in answers.items()}, found
    )


def _key(partition: Any) -> str:
    return f"{partition.topic}-{partition.partition}"


def _resource_key(resource: Any) -> str:
    return f"{resource.restype.name.lower()}:{resource.name}"


def _at(offsets: Mapping[str, int]) -> list[TopicPartition]:
    return [TopicPartition(*partition_of(key), each) for key, each in offsets.items()]


def _resource(text: str, configs: Mapping[str, str | None] | None = None) -> ConfigResource:
    kind, name = text.split(":", 1)
    if configs is None:
        return ConfigResource(kind, name)
    entries = [
        ConfigEntry(
            key,
            value,
            incremental_operation=AlterConfigOpType.DELETE
            if value is None
            else AlterConfigOpType.SET,
        )
        for key, value in configs.items()
    ]
    return ConfigResource(kind, name, incremental_configs=entries)


def _create_partitions(admin: AdminClient, call: Call, describe: Describe) -> Returned:
    wanted = [NewPartitions(name, count) for name, count in call["counts"].items()]
    with client_call():
        futures = admin.create_partitions(wanted, request_timeout=call["seconds"])
    return _by_future(futures, describe)


def _delete_topics(admin: AdminClient, call: Call, describe: Describe) -> Returned:
    with client_call():
        futures = admin.delete_topics(call["topics"], request_timeout=call["seconds"])
    return _by_future(futures, describe)


def _delete_records(admin: AdminClient, call: Call, describe: Describe) -> Returned:
    with client_call():
        futures = admin.delete_records(_at(call["offsets"]), request_timeout=call["seconds"])
    return _by_future(futures, describe, _key)


def _list_offsets(admin: AdminClient, call: Call, describe: Describe) -> Returned:
    spec: Any = OffsetSpec
    named = {"latest": spec.latest, "earliest": spec.earliest}
    wanted = {
        TopicPartition(*partition_of(key)): named[each]()
        if each in named
        else spec.for_timestamp(each)
        for key, each in call["times"].items()
    }
    with client_call():
        futures = admin.list_offsets(wanted, request_timeout=call["seconds"])
    return _by_future(futures, describe, _key, lambda result: result.offset)


def _describe_configs(admin: AdminClient, call: Call, describe: Describe) -> Returned:
    wanted = [_resource(each) for each in call["resources"]]
    with client_call():
        futures = admin.describe_configs(wanted, request_timeout=call["seconds"])
    return _by_future(
        futures,
        describe,
        _resource_key,
        lambda result: {name: entry.value for name, entry in result.items()},
    )


def _alter_configs(admin: AdminClient, call: Call, describe: Describe) -> Returned:
    wanted = [_resource(each, configs) for each, configs in call["configs"].items()]
    with client_call():
        futures = admin.incremental_alter_configs(wanted, request_timeout=call["seconds"])
    return _by_future(futures, describe, _resource_key)


def _list_groups(admin: AdminClient, call: Call, describe: Describe) -> Returned:
    filters = {
        "states": {ConsumerGroupState[_name(each)] for each in call.get("states", ())},
        "types": {ConsumerGroupType[_name(each)] for each in call.get("types", ())},
    }
    given = {name: value for name, value in filters.items() if value}
    with client_call():
        result = admin.list_consumer_groups(request_timeout=call["seconds"], **given).result()
    groups = ascending(each.group_id for each in result.valid)
    errors = [describe(each) for each in result.errors]
    return Returned(shown(result), {"groups": groups, "errors": errors})


def _name(text: str) -> str:
    """Return ``PREPARING_REBALANCING`` for ``PreparingRebalance``, as the enumerations have it."""
    special = {"PreparingRebalance": "PREPARING_REBALANCING", "CompletingRebalance":
               "COMPLETING_REBALANCING"}  # fmt: skip
    return special.get(text, text.upper())


def _describe_groups(admin: AdminClient, call: Call, describe: Describe) -> Returned:
    with client_call():
        futures = admin.describe_consumer_groups(call["groups"], request_timeout=call["seconds"])
    return _by_future(
        futures,
        describe,
        value=lambda row: {"state": row.state.name.capitalize(), "members": len(row.members)},
    )


def _delete_groups(admin: AdminClient, call: Call, describe: Describe) -> Returned:
    with client_call():
        futures = admin.delete_consumer_groups(call["groups"], request_timeout=call["seconds"])
    return _by_future(futures, describe)


def _alter_offsets(admin: AdminClient, call: Call, describe: Describe) -> Returned:
    wanted = [ConsumerGroupTopicPartitions(call["group"], _at(call["offsets"]))]
    with client_call():
        futures = admin.alter_consumer_group_offsets(wanted, request_timeout=call["seconds"])
        (future,) = futures.values()
        result = future.result()
    partitions = result.topic_partitions
    found = {
        _key(each): None if each.error is None else describe(each.error) for each in partitions
    }
    return Returned(partitions, found)


def _rule(kind: Any, text: str) -> Any:
    """Return a binding or a filter; both are made of the same parts."""
    permission, principal, operation, resource, name = rule_parts(text)
    is_filter = kind is AclBindingFilter
    return kind(
        ResourceType[resource.upper()],
        name or None,
        ResourcePatternType.LITERAL,
        None if principal == "any" else principal,
        None if is_filter else "*",
        AclOperation[operation.upper()],
        AclPermissionType[permission.upper()],
    )


def _rule_text(rule: Any) -> str:
    return rule_text(rule.permission_type, rule.principal, rule.operation, rule.restype, rule.name)


def _create_acls(admin: AdminClient, call: Call, describe: Describe) -> Returned:
    wanted = [_rule(AclBinding, each) for each in call["acls"]]
    with client_call():
        futures = admin.create_acls(wanted, request_timeout=call["seconds"])
    return _by_future(futures, describe, _rule_text)


def _describe_acls(admin: AdminClient, call: Call, _describe: Describe) -> Returned:
    wanted = _rule(AclBindingFilter, call["filter"])
    with client_call():
        found = admin.describe_acls(wanted, request_timeout=call["seconds"]).result()
    return Returned(shown(found), ascending(map(_rule_text, elements(found))))


def _delete_acls(admin: AdminClient, call: Call, describe: Describe) -> Returned:
    names = {_rule(AclBindingFilter, each): each for each in call["filters"]}
    with client_call():
        futures = admin.delete_acls(list(names), request_timeout=call["seconds"])
    return _by_future(futures, describe, lambda each: names[each])


CALLS: Final[Mapping[str, Callable[[AdminClient, Call, Describe], Returned]]] = {
    "create_acls": _create_acls,
    "describe_acls": _describe_acls,
    "delete_acls": _delete_acls,
    "create_partitions": _create_partitions,
    "delete_topics": _delete_topics,
    "delete_records": _delete_records,
    "list_offsets": _list_offsets,
    "describe_configs": _describe_configs,
    "alter_configs": _alter_configs,
    "list_groups": _list_groups,
    "describe_groups": _describe_groups,
    "delete_groups": _delete_groups,
    "alter_offsets": _alter_offsets,
}
