"""confluent-kafka's calls for topics, configs, groups and offsets. Each has a future per item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    ElectionType,
    KafkaError,
    KafkaException,
    TopicCollection,
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
from confluent_kafka.cimpl import NewPartitions, NewTopic

from kspec.adapters.python.confluent_errors import described
from kspec.adapters.python.lines import Returned, client_call
from kspec.adapters.python.values import (
    ascending,
    by_topic,
    elements,
    key_of,
    partition_of,
    rule_parts,
    rule_text,
)

__all__ = ["CALLS"]

Call = dict[str, Any]


def _seconds(call: Call) -> float:
    return float(call["timeout_ms"] / 1000)


def _outcome(error: KafkaException | KafkaError | None) -> dict[str, Any] | None:
    return None if error is None else described(error)


def _awaited(future: Any) -> tuple[Any, KafkaException | None]:
    """Return a future's result or error. An error that is not a KafkaException is the call's."""
    with client_call():
        try:
            return future.result(), None
        except KafkaException as error:
            return None, error


def _shown(value: Any) -> Any:
    """Represent a value with the members of objects that would print as an address."""
    if isinstance(value, dict):
        return {key: _shown(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shown(each) for each in value]
    return {type(value).__name__: _shown(vars(value))} if hasattr(value, "__dict__") else value


def _by_future(
    futures: Mapping[Any, Any],
    key: Callable[[Any], str] = str,
    value: Callable[[Any], Any] = lambda _result: None,
) -> Returned:
    """Return an item for each future: its error, or what ``value`` makes of its result."""
    answers = {key(each): _awaited(future) for each, future in futures.items()}
    found = {
        name: value(result) if error is None else described(error)
        for name, (result, error) in answers.items()
    }
    return Returned(
        {name: error or _shown(result) for name, (result, error) in answers.items()}, found
    )


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


def _describe_cluster(admin: AdminClient, call: Call) -> Returned:
    with client_call():
        cluster = admin.describe_cluster(request_timeout=_seconds(call)).result()
    ids = [None if node is None else node.id for node in cluster.nodes or ()]
    controller = -1 if cluster.controller is None else cluster.controller.id
    raw = {"nodes": cluster.nodes, "controller": cluster.controller}
    return Returned(_shown(raw), {"brokers": ascending(ids), "controller": controller})


def _describe_topics(admin: AdminClient, call: Call) -> Returned:
    with client_call():
        futures = admin.describe_topics(
            TopicCollection(call["topics"]), request_timeout=_seconds(call)
        )
    found: dict[str, Any] = {}
    raw: dict[str, Any] = {}
    for name, future in futures.items():
        topic, error = _awaited(future)
        raw[name] = error or _shown(topic)
        found[name] = _outcome(error) or {
            str(row.id): {
                "leader": -1 if row.leader is None else row.leader.id,
                "replicas": [node.id for node in row.replicas],
                "isr": [node.id for node in row.isr],
            }
            for row in topic.partitions
        }
    return Returned(raw, found)


def _list_topics(admin: AdminClient, call: Call) -> Returned:
    with client_call():
        metadata = admin.list_topics(timeout=_seconds(call))
    return Returned(metadata.topics, ascending(metadata.topics))


def _create_topics(admin: AdminClient, call: Call) -> Returned:
    wanted = [
        NewTopic(name, each.get("partitions", 1), each.get("replication_factor", 1))
        for name, each in call["topics"].items()
    ]
    with client_call():
        futures = admin.create_topics(
            wanted, request_timeout=_seconds(call), validate_only=call.get("validate_only", False)
        )
    answers = {name: _awaited(future) for name, future in futures.items()}
    return Returned(answers, {name: _outcome(error) for name, (_, error) in answers.items()})


def _elect_leaders(admin: AdminClient, call: Call) -> Returned:
    kind = ElectionType.UNCLEAN if call.get("type") == "unclean" else ElectionType.PREFERRED
    keys = call.get("partitions")
    partitions = None if keys is None else [
        TopicPartition(topic, index)
        for topic, indexes in by_topic(keys).items()
        for index in indexes
    ]  # fmt: skip
    # No timeout here: 2.16.1 fails on either option, although both are documented. The socket
    # timeout applies.
    with client_call():
        results = admin.elect_leaders(kind, partitions).result()
    return Returned(
        results,
        {
            f"{partition.topic}-{partition.partition}": _outcome(error)
            for partition, error in results.items()
        },
    )


def _create_partitions(admin: AdminClient, call: Call) -> Returned:
    wanted = [NewPartitions(name, count) for name, count in call["counts"].items()]
    with client_call():
        futures = admin.create_partitions(wanted, request_timeout=_seconds(call))
    return _by_future(futures)


def _delete_topics(admin: AdminClient, call: Call) -> Returned:
    with client_call():
        futures = admin.delete_topics(call["topics"], request_timeout=_seconds(call))
    return _by_future(futures)


def _delete_records(admin: AdminClient, call: Call) -> Returned:
    with client_call():
        futures = admin.delete_records(_at(call["offsets"]), request_timeout=_seconds(call))
    return _by_future(futures, key_of)


def _list_offsets(admin: AdminClient, call: Call) -> Returned:
    spec: Any = OffsetSpec
    named = {"latest": spec.latest, "earliest": spec.earliest}
    wanted = {
        TopicPartition(*partition_of(key)): named[each]()
        if each in named
        else spec.for_timestamp(each)
        for key, each in call["times"].items()
    }
    with client_call():
        futures = admin.list_offsets(wanted, request_timeout=_seconds(call))
    return _by_future(futures, key_of, lambda result: result.offset)


def _describe_configs(admin: AdminClient, call: Call) -> Returned:
    wanted = [_resource(each) for each in call["resources"]]
    with client_call():
        futures = admin.describe_configs(wanted, request_timeout=_seconds(call))
    return _by_future(
        futures, _resource_key, lambda result: {name: entry.value for name, entry in result.items()}
    )


def _alter_configs(admin: AdminClient, call: Call) -> Returned:
    wanted = [_resource(each, configs) for each, configs in call["configs"].items()]
    with client_call():
        futures = admin.incremental_alter_configs(wanted, request_timeout=_seconds(call))
    return _by_future(futures, _resource_key)


def _list_groups(admin: AdminClient, call: Call) -> Returned:
    filters = {
        "states": {ConsumerGroupState[_name(each)] for each in call.get("states", ())},
        "types": {ConsumerGroupType[_name(each)] for each in call.get("types", ())},
    }
    given = {name: value for name, value in filters.items() if value}
    with client_call():
        result = admin.list_consumer_groups(request_timeout=_seconds(call), **given).result()
    groups = ascending(each.group_id for each in result.valid)
    errors = [described(each) for each in result.errors]
    return Returned(_shown(result), {"groups": groups, "errors": errors})


def _name(text: str) -> str:
    """Return ``PREPARING_REBALANCING`` for ``PreparingRebalance``, as the enumerations have it."""
    special = {"PreparingRebalance": "PREPARING_REBALANCING", "CompletingRebalance":
               "COMPLETING_REBALANCING"}  # fmt: skip
    return special.get(text, text.upper())


def _describe_groups(admin: AdminClient, call: Call) -> Returned:
    with client_call():
        futures = admin.describe_consumer_groups(call["groups"], request_timeout=_seconds(call))
    return _by_future(
        futures,
        value=lambda row: {"state": row.state.name.capitalize(), "members": len(row.members)},
    )


def _delete_groups(admin: AdminClient, call: Call) -> Returned:
    with client_call():
        futures = admin.delete_consumer_groups(call["groups"], request_timeout=_seconds(call))
    return _by_future(futures)


def _alter_offsets(admin: AdminClient, call: Call) -> Returned:
    wanted = [ConsumerGroupTopicPartitions(call["group"], _at(call["offsets"]))]
    with client_call():
        futures = admin.alter_consumer_group_offsets(wanted, request_timeout=_seconds(call))
        (future,) = futures.values()
        result = future.result()
    partitions = result.topic_partitions
    found = {
        key_of(each): None if each.error is None else described(each.error) for each in partitions
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


def _create_acls(admin: AdminClient, call: Call) -> Returned:
    wanted = [_rule(AclBinding, each) for each in call["acls"]]
    with client_call():
        futures = admin.create_acls(wanted, request_timeout=_seconds(call))
    return _by_future(futures, _rule_text)


def _describe_acls(admin: AdminClient, call: Call) -> Returned:
    wanted = _rule(AclBindingFilter, call["filter"])
    with client_call():
        found = admin.describe_acls(wanted, request_timeout=_seconds(call)).result()
    return Returned(_shown(found), ascending(map(_rule_text, elements(found))))


def _delete_acls(admin: AdminClient, call: Call) -> Returned:
    names = {_rule(AclBindingFilter, each): each for each in call["filters"]}
    with client_call():
        futures = admin.delete_acls(list(names), request_timeout=_seconds(call))
    return _by_future(futures, lambda each: names[each])


CALLS: Final[Mapping[str, Callable[[AdminClient, Call], Returned]]] = {
    "describe_cluster": _describe_cluster,
    "describe_topics": _describe_topics,
    "list_topics": _list_topics,
    "create_topics": _create_topics,
    "elect_leaders": _elect_leaders,
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
