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

from kspec.adapters.python.lines import (
    Failure,
    Raised,
    Returned,
    ascending,
    client_call,
    elements,
    get,
    outcome,
    partition_of,
    rule_parts,
    rule_text,
)

__all__ = ["CALLS", "OPTIONS", "by_code", "key_of"]

OPTIONS: Final = {
    "raise_errors of create_partitions": False,
    "raise_errors of delete_topics": False,
    "config_filter of describe_configs": "all",
}
_PRINTED: Final = re.compile(r"\[Error (?P<code>-?\d+)\] (?P<name>\w+)(?:: (?P<message>.*))?", re.S)
_NAMES_ONE: Final = re.compile(r"from topic (?P<topic>\S+) partition (?P<index>\d+)$")
_NAMES_SEVERAL: Final = re.compile(r"(?P<topic>[\w.-]+)\(partition=(?P<index>\d+)\): (?P<name>\w+)")
_TIMES: Final = {"latest": -1, "earliest": -2}

Call = dict[str, Any]
Made = Callable[[], KafkaAdminClient]
"""Returns the client, which the first call makes. Only for use inside ``client_call``."""


def key_of(partition: Any) -> str:
    return f"{get(partition, 'topic')}-{get(partition, 'partition')}"


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


def _by_class(error: Any) -> dict[str, Any] | None:
    """Return the error that the client gives as a class, which a success has too."""
    code = get(error, "errno")
    name = get(error, "__name__") or str(error)
    return outcome(Failure(name, code, get(error, "description") or "")) if code else None


def _partitions(keys: Any) -> list[TopicPartition]:
    return [TopicPartition(*partition_of(key)) for key in keys]


def _create_partitions(admin: Made, call: Call) -> Returned:
    with client_call():
        answer = admin().create_partitions(
            call["counts"], timeout_ms=call["timeout_ms"], raise_errors=False
        )
    rows = elements(get(answer, "results"))
    return Returned(answer, {str(get(row, "name")): by_code(row) for row in rows})


def _delete_topics(admin: Made, call: Call) -> Returned:
    with client_call():
        answer = admin().delete_topics(
            call["topics"], timeout_ms=call["timeout_ms"], raise_errors=False
        )
    rows = elements(get(answer, "topics"))
    return Returned(answer, {str(get(row, "name")): by_code(row) for row in rows})


def _delete_records(admin: Made, call: Call) -> Returned:
    wanted = {TopicPartition(*partition_of(key)): each for key, each in call["offsets"].items()}
    try:
        with client_call():
            found = admin().delete_records(wanted, timeout_ms=call["timeout_ms"])
    except Raised as raised:
        raise Raised(raised.error, partitions=_named(raised.error)) from raised.error
    return Returned(found, {key_of(partition): by_code(row) for partition, row in found.items()})


def _list_offsets(admin: Made, call: Call) -> Returned:
    wanted = {
        TopicPartition(*partition_of(key)): _TIMES.get(each, each)
        for key, each in call["times"].items()
    }
    with client_call():
        found = admin().list_partition_offsets(wanted, timeout_ms=call["timeout_ms"])
    return Returned(found, {key_of(each): get(row, "offset") for each, row in found.items()})


def _describe_configs(admin: Made, call: Call) -> Returned:
    wanted = [ConfigResource(*each.split(":", 1)) for each in call["resources"]]
    with client_call():
        found = admin().describe_configs(wanted, config_filter="all")
    return Returned(
        found,
        {
            f"{kind}:{name}": {key: get(config, "value") for key, config in configs.items()}
            for kind, resources in found.items()
            for name, configs in resources.items()
        },
    )


def _alter_configs(admin: Made, call: Call) -> Returned:
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
        found = admin().alter_configs(wanted)
    return Returned(
        found,
        {
            f"{kind}:{name}": _by_text(text)
            for kind, resources in found.items()
            for name, text in resources.items()
        },
    )


def _list_groups(admin: Made, call: Call) -> Returned:
    with client_call():
        found = admin().list_groups(
            states_filter=call.get("states"), types_filter=call.get("types")
        )
    groups = ascending(get(each, "group_id") for each in elements(found))
    return Returned(found, {"groups": groups, "errors": []})


def _describe_groups(admin: Made, call: Call) -> Returned:
    with client_call():
        found = admin().describe_groups(call["groups"])
    return Returned(
        found,
        {
            group: _by_text(get(row, "error"))
            or {"state": get(row, "group_state"), "members": len(elements(get(row, "members")))}
            for group, row in found.items()
        },
    )


def _delete_groups(admin: Made, call: Call) -> Returned:
    with client_call():
        found = admin().delete_groups(call["groups"])
    return Returned(found, {group: _by_text(text) for group, text in found.items()})


def _delete_offsets(admin: Made, call: Call) -> Returned:
    with client_call():
        found = admin().delete_group_offsets(call["group"], _partitions(call["partitions"]))
    return Returned(found, {key_of(each): _by_class(error) for each, error in found.items()})


def _alter_offsets(admin: Made, call: Call) -> Returned:
    wanted = {
        TopicPartition(*partition_of(key)): OffsetAndMetadata(each, "", -1)
        for key, each in call["offsets"].items()
    }
    with client_call():
        found = admin().alter_group_offsets(call["group"], wanted)
    return Returned(found, {key_of(each): _by_class(error) for each, error in found.items()})


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


def _create_acls(admin: Made, call: Call) -> Returned:
    """It returns the rules that it created, and the errors of the others in their order."""
    wanted = [_rule(each) for each in call["acls"]]
    with client_call():
        found = admin().create_acls(wanted)
    created = set(_rules(get(found, "succeeded")))
    others = [each for each in call["acls"] if each not in created]
    errors = map(_by_class, elements(get(found, "failed")))
    return Returned(found, {**dict.fromkeys(created), **dict(zip(others, errors, strict=False))})


def _describe_acls(admin: Made, call: Call) -> Returned:
    with client_call():
        found = admin().describe_acls(_filter(call["filter"]))
    return Returned(found, _rules(get(found, 0)))


def _delete_acls(admin: Made, call: Call) -> Returned:
    with client_call():
        found = admin().delete_acls([_filter(each) for each in call["filters"]])
    return Returned(
        found,
        {
            text: _by_class(get(row, 2))
            for text, row in zip(call["filters"], elements(found), strict=False)
        },
    )


def _describe_log_dirs(admin: Made, call: Call) -> Returned:
    with client_call():
        found = admin().describe_log_dirs(brokers=call["brokers"])
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


def _alter_log_dirs(admin: Made, call: Call) -> Returned:
    wanted = {}
    for replica, path in call["moves"].items():
        broker, _, partition = replica.partition(":")
        wanted[(*partition_of(partition), int(broker))] = path
    with client_call():
        found = admin().alter_replica_log_dirs(wanted)
    return Returned(
        found,
        {f"{get(each, 'broker_id')}:{key_of(each)}": _by_class(one) for each, one in found.items()},
    )


CALLS: Final[Mapping[str, Callable[[Made, Call], Returned]]] = {
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
