"""aiokafka's calls for topics, configs, groups and offsets. Most return the broker's answers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from kspec.adapters.python.lines import Failure, Returned, Unsupported, client_call, outcome
from kspec.adapters.python.values import ascending, elements, get, key_of, partition_of

__all__ = ["CALLS"]

Call = dict[str, Any]


def _by_code(code: Any, message: Any = None) -> dict[str, Any] | None:
    """The client returned an error code instead of raising."""
    return outcome(Failure("error_code", code, message or "")) if code else None


def _by_name(rows: Iterable[Any]) -> dict[str, Any]:
    """Rows are (name, code), and in later versions of answers (name, code, message)."""
    return {str(get(row, 0)): _by_code(get(row, 1), get(row, 2)) for row in rows}


async def _describe_cluster(admin: AIOKafkaAdminClient, _call: Call) -> Returned:
    with client_call():
        cluster = await admin.describe_cluster()
    ids = [get(broker, "node_id") for broker in elements(get(cluster, "brokers"))]
    return Returned(
        cluster, {"brokers": ascending(ids), "controller": get(cluster, "controller_id")}
    )


async def _describe_topics(admin: AIOKafkaAdminClient, call: Call) -> Returned:
    with client_call():
        topics = await admin.describe_topics(call["topics"])
    found: dict[str, Any] = {}
    for topic in elements(topics):
        found[str(get(topic, "topic"))] = _by_code(get(topic, "error_code")) or {
            str(get(row, "partition")): {
                "leader": get(row, "leader"),
                "replicas": get(row, "replicas"),
                "isr": get(row, "isr"),
            }
            for row in elements(get(topic, "partitions"))
        }
    return Returned(topics, found)


async def _list_topics(admin: AIOKafkaAdminClient, _call: Call) -> Returned:
    with client_call():
        names = await admin.list_topics()
    return Returned(names, ascending(elements(names)))


async def _create_topics(admin: AIOKafkaAdminClient, call: Call) -> Returned:
    wanted = [
        NewTopic(name, each.get("partitions", 1), each.get("replication_factor", 1))
        for name, each in call["topics"].items()
    ]
    with client_call():
        answer = await admin.create_topics(wanted, validate_only=call.get("validate_only", False))
    return Returned(answer, _by_name(elements(get(answer, "topic_errors"))))


async def _create_partitions(admin: AIOKafkaAdminClient, call: Call) -> Returned:
    wanted = {name: NewPartitions(count) for name, count in call["counts"].items()}
    with client_call():
        answer = await admin.create_partitions(wanted)
    return Returned(answer, _by_name(elements(get(answer, "topic_errors"))))


async def _delete_topics(admin: AIOKafkaAdminClient, call: Call) -> Returned:
    with client_call():
        answer = await admin.delete_topics(call["topics"])
    return Returned(answer, _by_name(elements(get(answer, "topic_error_codes"))))


async def _delete_records(admin: AIOKafkaAdminClient, call: Call) -> Returned:
    wanted = {
        TopicPartition(*partition_of(key)): RecordsToDelete(each)
        for key, each in call["offsets"].items()
    }
    with client_call():
        found = await admin.delete_records(wanted)
    return Returned(found, {key_of(each): None for each in found})


async def _describe_configs(admin: AIOKafkaAdminClient, call: Call) -> Returned:
    resources = [each.split(":", 1) for each in call["resources"]]
    wanted = [ConfigResource(ConfigResourceType[kind.upper()], name) for kind, name in resources]
    with client_call():
        answers = await admin.describe_configs(wanted)
    found: dict[str, Any] = {}
    for row in [row for each in elements(answers) for row in elements(get(each, "resources"))]:
        code, message, kind, name, configs = (get(row, place) for place in range(5))
        key = f"{ConfigResourceType(kind).name.lower()}:{name}"
        found[key] = _by_code(code, message) or {
            str(get(one, 0)): get(one, 1) for one in elements(configs)
        }
    return Returned(answers, found)


async def _list_groups(admin: AIOKafkaAdminClient, call: Call) -> Returned:
    if call.get("states") or call.get("types"):
        raise Unsupported("list_consumer_groups has no filter")
    with client_call():
        found = await admin.list_consumer_groups()
    groups = ascending(get(each, 0) for each in elements(found))
    return Returned(found, {"groups": groups, "errors": []})


async def _describe_groups(admin: AIOKafkaAdminClient, call: Call) -> Returned:
    with client_call():
        answers = await admin.describe_consumer_groups(call["groups"])
    rows = [row for each in elements(answers) for row in elements(get(each, "groups"))]
    return Returned(
        answers,
        {
            str(get(row, 1)): _by_code(get(row, 0))
            or {"state": get(row, 2), "members": len(elements(get(row, 5)))}
            for row in rows
        },
    )


CALLS: Final[Mapping[str, Callable[[AIOKafkaAdminClient, Call], Coroutine[Any, Any, Returned]]]] = {
    "describe_cluster": _describe_cluster,
    "describe_topics": _describe_topics,
    "list_topics": _list_topics,
    "create_topics": _create_topics,
    "create_partitions": _create_partitions,
    "delete_topics": _delete_topics,
    "delete_records": _delete_records,
    "describe_configs": _describe_configs,
    "list_groups": _list_groups,
    "describe_groups": _describe_groups,
}
