"""kafka-python's calls for topics, configs, groups and offsets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import kafka.errors
from kafka import TopicPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ConfigResource,
    KafkaAdminClient,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.admin import ACLResourcePatternType as PatternType
from kafka.structs import OffsetAndMetadata

from kspec.adapters.python.lines import Failure, Raised, Returned, Unsupported, client_call, outcome
from kspec.adapters.python.values import (
    ascending,
    by_topic,
    elements,
    get,
    key_of,
    partition_of,
    rule_parts,
    rule_text,
)

__all__ = ["CALLS", "OPTIONS", "by_class", "by_code"]

OPTIONS: Final = {
    "timeout_ms of each call": "timeout_ms",
    "raise_errors of create_topics": False,
    "raise_errors of elect_leaders": False,
    "raise_errors of create_partitions": False,
    "raise_errors of delete_topics": False,
    "config_filter of describe_configs": "all",
}
_PRINTED: Final = re.compile(r"\[Error (?P<code>-?\d+)\] (?P<name>\w+)(?:: (?P<message>.*))?", re.S)
_NAMES_ONE: Final = re.compile(r"from topic (?P<topic>\S+) partition (?P<index>\d+)$")
_NAMES_SEVERAL: Final = re.compile(r"(?P<topic>[\w.-]+)\(partition=(?P<index>\d+)\): (?P<name>\w+)")
_TIMES: Final = {"latest": -1, "earliest": -2}

Call = dict[str, Any]


def by_code(row: Any) -> dict[str, Any] | None:
    """Return the error of a row in a result. It has a code and is not an exception."""
    code = get(row, "error_code")
    if not code:
        return None
    return outcome(Failure("error_code", code, get(row, "error_message") or ""))


def _by_text(text: Any) -> dict[str, Any] | None:
    """Return the error that the client gives as a text: the name of a class of its own, or what an
    exception prints, with its code."""
    if text in (None, "OK"):
        return None
    printed = _PRINTED.match(str(text))
    if printed is not None:
        return outcome(Failure(printed["name"], int(printed["code"]), printed["message"] or ""))
    return outcome(Failure(str(text), get(getattr(kafka.errors, str(text), None), "errno"), ""))


def _named(error: Exception) -> dict[str, Any]:
    """Return the partitions that the error of ``delete_records`` names in its text."""
    one = _NAMES_ONE.search(str(error))
    if one is not None:
        return {f"{one['topic']}-{one['index']}": outcome(error)}
    return {
        f"{each['topic']}-{each['index']}": _by_text(each["name"])
        for each in _NAMES_SEVERAL.finditer(str(error))
    }


def by_class(error: Any) -> dict[str, Any] | None:
    """Return the error that the client gives as a class, which a success has too. In kafka-python 2
    the class of a rule that was not created is behind the rule."""
    error = error[1] if isinstance(error, tuple) else error
    code = get(error, "errno")
    name = get(error, "__name__") or str(error)
    return outcome(Failure(name, code, get(error, "description") or "")) if code else None


def _partitions(keys: Any) -> list[TopicPartition]:
    return [TopicPartition(*partition_of(key)) for key in keys]


def _describe_cluster(admin: KafkaAdminClient, _call: Call) -> Returned:
    with client_call():
        cluster = admin.describe_cluster()
    ids = [
        get(row, "broker_id") if get(row, "node_id") is None else get(row, "node_id")
        for row in elements(get(cluster, "brokers"))
    ]
    return Returned(
        cluster, {"brokers": ascending(ids), "controller": get(cluster, "controller_id")}
    )


def _describe_topics(admin: KafkaAdminClient, call: Call) -> Returned:
    with client_call():
        topics = admin.describe_topics(call["topics"])
    found: dict[str, Any] = {}
    for topic in elements(topics):
        name = str(get(topic, "name"))
        found[name] = by_code(topic) or {
            str(get(row, "partition_index")): {
                "leader": get(row, "leader_id"),
                "replicas": get(row, "replica_nodes"),
                "isr": get(row, "isr_nodes"),
            }
            for row in elements(get(topic, "partitions"))
        }
    return Returned(topics, found)


def _list_topics(admin: KafkaAdminClient, _call: Call) -> Returned:
    with client_call():
        names = admin.list_topics()
    return Returned(names, ascending(elements(names)))


def _create_topics(admin: KafkaAdminClient, call: Call) -> Returned:
    wanted = {
        name: {
            "num_partitions": each.get("partitions", 1),
            "replication_factor": each.get("replication_factor", 1),
        }
        for name, each in call["topics"].items()
    }
    with client_call():
        answer = admin.create_topics(
            wanted,
            timeout_ms=call["timeout_ms"],
            validate_only=call.get("validate_only", False),
            raise_errors=False,
        )
    return Returned(
        answer, {str(get(row, "name")): by_code(row) for row in elements(get(answer, "topics"))}
    )


def _alter_reassignments(admin: KafkaAdminClient, call: Call) -> Returned:
    if call.get("allow_replication_factor_change") is False:
        raise Unsupported("alter_partition_reassignments has no such option")
    wanted = {
        TopicPartition(*partition_of(key)): replicas
        for key, replicas in call["assignments"].items()
    }
    with client_call():
        results = admin.alter_partition_reassignments(wanted, timeout_ms=call["timeout_ms"])
    return Returned(
        results,
        {
            key_of(partition): None
            if error is None
            else {
                "error": get(error, "__name__") or type(error).__name__,
                "code": get(error, "errno"),
                "message": get(error, "description") or "",
            }
            for partition, error in results.items()
        },
    )


def _list_reassignments(admin: KafkaAdminClient, call: Call) -> Returned:
    keys = call.get("partitions")
    wanted = None if keys is None else by_topic(keys)
    with client_call():
        ongoing = admin.list_partition_reassignments(wanted, timeout_ms=call["timeout_ms"])
    return Returned(
        ongoing,
        {
            key_of(partition): {
                "replicas": get(state, "replicas"),
                "adding": get(state, "adding_replicas"),
                "removing": get(state, "removing_replicas"),
            }
            for partition, state in ongoing.items()
        },
    )


def _elect_leaders(admin: KafkaAdminClient, call: Call) -> Returned:
    keys = call.get("partitions")
    kind = int(call.get("type") == "unclean")
    wanted = None if keys is None else by_topic(keys)
    with client_call():
        response = admin.elect_leaders(
            kind, wanted, timeout_ms=call["timeout_ms"], raise_errors=False
        )
    code = get(response, "error_code")
    if code:
        raise Failure("error_code", code, repr(response))
    return Returned(
        response,
        {
            f"{get(topic, 'topic')}-{get(row, 'partition_id')}": by_code(row)
            for topic in elements(get(response, "replica_election_results"))
            for row in elements(get(topic, "partition_result"))
        },
    )


def _create_partitions(admin: KafkaAdminClient, call: Call) -> Returned:
    with client_call():
        answer = admin.create_partitions(
            call["counts"], timeout_ms=call["timeout_ms"], raise_errors=False
        )
    rows = elements(get(answer, "results"))
    return Returned(answer, {str(get(row, "name")): by_code(row) for row in rows})


def _delete_topics(admin: KafkaAdminClient, call: Call) -> Returned:
    with client_call():
        answer = admin.delete_topics(
            call["topics"], timeout_ms=call["timeout_ms"], raise_errors=False
        )
    rows = elements(get(answer, "topics"))
    return Returned(answer, {str(get(row, "name")): by_code(row) for row in rows})


def _delete_records(admin: KafkaAdminClient, call: Call) -> Returned:
    wanted = {TopicPartition(*partition_of(key)): each for key, each in call["offsets"].items()}
    try:
        with client_call():
            found = admin.delete_records(wanted, timeout_ms=call["timeout_ms"])
    except Raised as raised:
        raise Raised(raised.error, partitions=_named(raised.error)) from raised.error
    return Returned(found, {key_of(partition): by_code(row) for partition, row in found.items()})


def _list_offsets(admin: KafkaAdminClient, call: Call) -> Returned:
    wanted = {
        TopicPartition(*partition_of(key)): _TIMES.get(each, each)
        for key, each in call["times"].items()
    }
    with client_call():
        found = admin.list_partition_offsets(wanted, timeout_ms=call["timeout_ms"])
    return Returned(found, {key_of(each): get(row, "offset") for each, row in found.items()})


def _describe_configs(admin: KafkaAdminClient, call: Call) -> Returned:
    wanted = [ConfigResource(*each.split(":", 1)) for each in call["resources"]]
    with client_call():
        found = admin.describe_configs(wanted, config_filter="all")
    return Returned(
        found,
        {
            f"{kind}:{name}": {key: get(config, "value") for key, config in configs.items()}
            for kind, resources in found.items()
            for name, configs in resources.items()
        },
    )


def _alter_configs(admin: KafkaAdminClient, call: Call) -> Returned:
    wanted = [
        ConfigResource(
            *resource.split(":", 1),
            {
                name: ("DELETE", None) if value is None else ("SET", value)
                for name, value in configs.items()
            },
        )
        for resource, configs in call["configs"].items()
    ]
    with client_call():
        found = admin.alter_configs(wanted)
    return Returned(
        found,
        {
            f"{kind}:{name}": _by_text(text)
            for kind, resources in found.items()
            for name, text in resources.items()
        },
    )


def _list_groups(admin: KafkaAdminClient, call: Call) -> Returned:
    with client_call():
        found = admin.list_groups(states_filter=call.get("states"), types_filter=call.get("types"))
    groups = ascending(get(each, "group_id") for each in elements(found))
    return Returned(found, {"groups": groups, "errors": []})


def _describe_groups(admin: KafkaAdminClient, call: Call) -> Returned:
    with client_call():
        found = admin.describe_groups(call["groups"])
    return Returned(
        found,
        {
            group: _by_text(get(row, "error"))
            or {"state": get(row, "group_state"), "members": len(elements(get(row, "members")))}
            for group, row in found.items()
        },
    )


def _delete_groups(admin: KafkaAdminClient, call: Call) -> Returned:
    with client_call():
        found = admin.delete_groups(call["groups"])
    return Returned(found, {group: _by_text(text) for group, text in found.items()})


def _delete_offsets(admin: KafkaAdminClient, call: Call) -> Returned:
    with client_call():
        found = admin.delete_group_offsets(call["group"], _partitions(call["partitions"]))
    return Returned(found, {key_of(each): by_class(error) for each, error in found.items()})


def _alter_offsets(admin: KafkaAdminClient, call: Call) -> Returned:
    wanted = {
        TopicPartition(*partition_of(key)): OffsetAndMetadata(each, "", -1)
        for key, each in call["offsets"].items()
    }
    with client_call():
        found = admin.alter_group_offsets(call["group"], wanted)
    return Returned(found, {key_of(each): by_class(error) for each, error in found.items()})


def _rule(text: str) -> ACL:
    permission, principal, operation, kind, name = rule_parts(text)
    return ACL(
        principal,
        "*",
        ACLOperation[operation.upper()],
        ACLPermissionType[permission.upper()],
        ResourcePattern(ResourceType[kind.upper()], name),
    )


def _filter(text: str) -> ACLFilter:
    permission, principal, operation, kind, name = rule_parts(text)
    return ACLFilter(
        None if principal == "any" else principal,
        None,
        ACLOperation[operation.upper()],
        ACLPermissionType[permission.upper()],
        ResourcePatternFilter(ResourceType[kind.upper()], name or None, PatternType.LITERAL),
    )


def _rules(acls: Any) -> list[str]:
    return ascending(
        rule_text(
            get(each, "permission_type"),
            get(each, "principal"),
            get(each, "operation"),
            get(each, "resource_pattern", "resource_type"),
            get(each, "resource_pattern", "resource_name"),
        )
        for each in elements(acls)
    )


def _create_acls(admin: KafkaAdminClient, call: Call) -> Returned:
    """It returns the rules that it created, and the errors of the others in their order."""
    wanted = [_rule(each) for each in call["acls"]]
    with client_call():
        found = admin.create_acls(wanted)
    created = set(_rules(get(found, "succeeded")))
    others = [each for each in call["acls"] if each not in created]
    errors = map(by_class, elements(get(found, "failed")))
    return Returned(found, {**dict.fromkeys(created), **dict(zip(others, errors, strict=False))})


def _describe_acls(admin: KafkaAdminClient, call: Call) -> Returned:
    with client_call():
        found = admin.describe_acls(_filter(call["filter"]))
    return Returned(found, _rules(get(found, 0)))


def _delete_acls(admin: KafkaAdminClient, call: Call) -> Returned:
    with client_call():
        found = admin.delete_acls([_filter(each) for each in call["filters"]])
    return Returned(
        found,
        {
            text: by_class(get(row, 2))
            for text, row in zip(call["filters"], elements(found), strict=False)
        },
    )


def _describe_log_dirs(admin: KafkaAdminClient, call: Call) -> Returned:
    with client_call():
        found = admin.describe_log_dirs(brokers=call["brokers"])
    return Returned(
        found,
        {
            f"{get(each, 'broker')}:{get(row, 'log_dir')}": by_code(row)
            or ascending(
                f"{get(topic, 'name')}-{get(one, 'partition_index')}"
                for topic in elements(get(row, "topics"))
                for one in elements(get(topic, "partitions"))
            )
            for each in elements(found)
            for row in elements(get(each, "log_dirs"))
        },
    )


def _alter_log_dirs(admin: KafkaAdminClient, call: Call) -> Returned:
    wanted = {}
    for replica, path in call["moves"].items():
        broker, _, partition = replica.partition(":")
        wanted[(*partition_of(partition), int(broker))] = path
    with client_call():
        found = admin.alter_replica_log_dirs(wanted)
    return Returned(
        found,
        {f"{get(each, 'broker_id')}:{key_of(each)}": by_class(one) for each, one in found.items()},
    )


CALLS: Final[Mapping[str, Callable[[KafkaAdminClient, Call], Returned]]] = {
    "describe_cluster": _describe_cluster,
    "describe_topics": _describe_topics,
    "list_topics": _list_topics,
    "create_topics": _create_topics,
    "alter_reassignments": _alter_reassignments,
    "list_reassignments": _list_reassignments,
    "elect_leaders": _elect_leaders,
    "create_acls": _create_acls,
    "describe_acls": _describe_acls,
    "delete_acls": _delete_acls,
    "describe_log_dirs": _describe_log_dirs,
    "alter_log_dirs": _alter_log_dirs,
    "create_partitions": _create_partitions,
    "delete_topics": _delete_topics,
    "delete_records": _delete_records,
    "list_offsets": _list_offsets,
    "describe_configs": _describe_configs,
    "alter_configs": _alter_configs,
    "list_groups": _list_groups,
    "describe_groups": _describe_groups,
    "delete_groups": _delete_groups,
    "delete_offsets": _delete_offsets,
    "alter_offsets": _alter_offsets,
}
